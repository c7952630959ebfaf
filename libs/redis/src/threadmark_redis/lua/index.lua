-- The index of threads. Its keys: ids, created, updated, owners, expiries.

local function index_thread(base, id, created, updated, owner, expires)
    redis.call('ZADD', KEYS[base + 1], 0, id)
    redis.call('ZADD', KEYS[base + 2], created, id)
    redis.call('ZADD', KEYS[base + 3], updated, id)
    if owner then
        local size = string.char(math.floor(#owner / 256), #owner % 256)
        redis.call('ZADD', KEYS[base + 4], 0, size .. owner .. id)
    end
    if expires then
        redis.call('ZADD', KEYS[base + 5], expires, id)
    else
        redis.call('ZREM', KEYS[base + 5], id)
    end
end

local function unindex_owner(base, id, owner)
    if owner then
        local size = string.char(math.floor(#owner / 256), #owner % 256)
        redis.call('ZREM', KEYS[base + 4], size .. owner .. id)
    end
end
