-- Replace the vectors of items. KEYS: the shard's names of namespaces, then for each item its namespace's items, keys,
-- heads and rows. ARGV: for each item an array: the namespace, the item's key, and the head and the rows to store, or
-- false to remove them, or nothing to remove them if the item is gone.

for number = 1, #ARGV do
    local base = 1 + (number - 1) * 4
    local items, keys, heads, rows = KEYS[base + 1], KEYS[base + 2], KEYS[base + 3], KEYS[base + 4]
    local change = cmsgpack.unpack(ARGV[number])
    local namespace, key = change[1], change[2]
    if change[3] then
        redis.call('ZADD', KEYS[1], 0, namespace)
        redis.call('ZADD', keys, 0, key)
        redis.call('HSET', heads, key, change[3])
        redis.call('HSET', rows, key, change[4])
    elseif change[3] == false or redis.call('HEXISTS', items, key) == 0 then
        redis.call('ZREM', keys, key)
        redis.call('HDEL', heads, key)
        redis.call('HDEL', rows, key)
        if redis.call('EXISTS', keys) == 0 then
            redis.call('ZREM', KEYS[1], namespace)
        end
    end
end
