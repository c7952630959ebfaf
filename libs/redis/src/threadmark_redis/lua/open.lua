-- Read a thread's head. ARGV: for how many microseconds those who add shall wait, 0 for not at all. They have had as
-- much time for themselves before they wait again. Returns whether a key of it was evicted, the server's clock, and the head's fields and values.

local hold = tonumber(ARGV[1])
if hold > 0 and redis.call('EXISTS', KEYS[1]) == 1 then
    local ends, moment = tonumber(redis.call('HGET', KEYS[1], HELD)) or 0, clock()
    if moment >= ends + hold or ends > moment + hold then
        redis.call('HSET', KEYS[1], HELD, moment + hold)
    end
end
local fields = redis.call('HGETALL', KEYS[1])
return { is_torn(0, redis.call('HGET', KEYS[1], MASK)) and 1 or 0, clock(), fields }
