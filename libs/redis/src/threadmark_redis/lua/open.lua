-- Read a thread's head. Returns whether a key of it was evicted, the server's clock, and the head's fields and values.

local fields = redis.call('HGETALL', KEYS[1])
return { is_torn(0, redis.call('HGET', KEYS[1], MASK)) and 1 or 0, clock(), fields }
