-- The index of threads. Its keys: ids, created, updated, owners, expiries. Behind thread.lua, whose `measured` it uses.

-- It begins with a removal, so that a server whose memory is full allows the rest, too: the thread is stored already.
local function index_thread(base, id, created, updated, owner, expires)
    redis.call('ZREM', KEYS[base + 5], id)
    redis.call('ZADD', KEYS[base + 1], 0, id)
    redis.call('ZADD', KEYS[base + 2], created, id)
    redis.call('ZADD', KEYS[base + 3], updated, id)
    if owner then
        redis.call('ZADD', KEYS[base + 4], 0, measured(owner) .. id)
    end
    if expires then
        redis.call('ZADD', KEYS[base + 5], expires, id)
    end
end

local function unindex_owner(base, id, owner)
    if owner then
        redis.call('ZREM', KEYS[base + 4], measured(owner) .. id)
    end
end
