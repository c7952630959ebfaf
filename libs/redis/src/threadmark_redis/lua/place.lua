-- Give a thread its place in the index of pending threads. KEYS: the index. ARGV: 'XX' if it is named there only, or
-- 'NX' if it is not; the place; and its id.

return redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2], ARGV[3])
