-- Take a thread out of the index of copied threads. KEYS: its shard. ARGV: its id.

return redis.call('ZREM', KEYS[1], ARGV[1])
