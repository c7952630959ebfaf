-- Bring the index up to date. ARGV[1]: an array of id, created, updated, owner, expires, the owner before; without
-- `created` the thread is taken out. With `seen` behind, only if that is still its place by update.

local thread = cmsgpack.unpack(ARGV[1])
local id, created, updated, owner, expires, before, seen =
    thread[1], thread[2], thread[3], thread[4], thread[5], thread[6], thread[7]
if seen and tonumber(redis.call('ZSCORE', KEYS[3], id) or -1) ~= seen then
    return 0
end
if before and before ~= owner then
    unindex_owner(0, id, before)
end
if created then
    index_thread(0, id, created, updated, owner, expires)
else
    for number = 1, 5 do
        redis.call('ZREM', KEYS[number], id)
    end
end
return 1
