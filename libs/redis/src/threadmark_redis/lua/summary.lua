-- A thread in few numbers. Returns whether it is live (or 'torn'), epoch, position, the greatest rank of the namespace
-- '', how many checkpoints and writes it has, and the sum of their marks modulo 2^63 in two numbers, of 31 and of 32
-- bits: a number of Lua is exact up to 53 bits only.

local CHUNK = 200
local stored = redis.call('HMGET', KEYS[1], 'v', 'e', 'p', 'q', MASK)
if is_torn(0, stored[5]) then
    return { 'torn' }
end
if stored[1] ~= '1' then
    return { '0' }
end

local high, low = 0, 0
local function add(check, body)
    local mark = mark_of(check, body, 7)
    local one, two, three, four, five, six, seven = (('\0'):rep(7 - #mark) .. mark):byte(1, 7)
    low = low + four * 16777216 + five * 65536 + six * 256 + seven
    high = high + one * 65536 + two * 256 + three
    if low >= 4294967296 then
        low = low - 4294967296
        high = high + 1
    end
    high = high % 2147483648
end

add(stored[4] or '', '')
each_field(KEYS[2], redis.call('ZRANGE', KEYS[3], 0, -1), CHUNK, function(_, value)
    local columns = columns_in(value)
    add(columns[6], columns[5])
end)
local writes = 0
each_field(KEYS[4], redis.call('HKEYS', KEYS[4]), CHUNK, function(_, value)
    for _, group in ipairs((groups_in(value))) do
        for at = 6, #group, 4 do
            add(group[at], group[at - 1])
            writes = writes + 1
        end
    end
end)
local newest = redis.call('ZREVRANGEBYLEX', KEYS[3], '(\0\0\255', '[\0\0', 'LIMIT', 0, 1)[1] or '\0\0'
return {
    '1', stored[2], stored[3], newest:sub(3), redis.call('ZCARD', KEYS[3]), writes, high, low,
}
