-- Name a thread in the index of copied threads. KEYS: its shard. ARGV: its id.

return redis.call('ZADD', KEYS[1], 0, ARGV[1])
