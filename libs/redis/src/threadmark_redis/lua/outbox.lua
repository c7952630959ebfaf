-- The outbox of a thread: a sorted set of the changes to copy to another database, by position. A member is the
-- position in 16 digits and the body. Behind thread.lua.

local function is_raised(key, term)
    return (tonumber(redis.call('HGET', key, 't')) or 0) > term
end

local function enter(outbox, position, body)
    redis.call('ZADD', outbox, position, string.format('%016.0f', position) .. body)
end

-- Add an entry behind the last one. Returns its position and that of the last one.
local function record(head, outbox, body)
    local previous = tonumber(redis.call('HGET', head, 'p')) or 0
    local position = math.max(previous + 1, clock())
    redis.call('HSET', head, 'p', position)
    enter(outbox, position, body)
    return position, previous
end

local function remove_up_to(outbox, position)
    return redis.call('ZREMRANGEBYSCORE', outbox, '-inf', position)
end

-- Return the position of the first entry, nil if there is none.
local function first_position(outbox)
    return tonumber(redis.call('ZRANGE', outbox, 0, 0, 'WITHSCORES')[2])
end

-- Let the index of pending threads say since when something of a thread waits, or leave it out.
local function keep_pending(pending, outbox, id)
    local first = first_position(outbox)
    if first then
        redis.call('ZADD', pending, first, id)
    else
        redis.call('ZREM', pending, id)
    end
end
