-- Bring places in the index of pending threads up to date. KEYS: the index. ARGV: for how many microseconds the place
-- of a thread stays that has nothing in its outbox; then, for each thread, its id, the place that it had, and the new
-- one, '' if it has nothing. One that has another place by now is left as it is.

local moment = clock()
for at = 2, #ARGV, 3 do
    local id, seen, place = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2]
    if tonumber(redis.call('ZSCORE', KEYS[1], id)) == seen then
        if place ~= '' then
            redis.call('ZADD', KEYS[1], place, id)
        elseif moment - seen > tonumber(ARGV[1]) then
            redis.call('ZREM', KEYS[1], id)
        end
    end
end
return 1
