-- A checkpoint and then its ancestors. ARGV: their namespace, the id or '' for the newest, and how many; as many bytes
-- as ARGV[4] may come along. Returns whether a key was evicted, epoch, revision, and places and rows.

local ns, id, most, bytes = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local stored = redis.call('HMGET', KEYS[1], 'e', 'r', MASK)
if is_torn(0, stored[3]) then
    return { 1, stored[1], stored[2], {} }
end

local function text_of(packed)
    if packed:byte(1) == 0 then
        return packed:sub(2)
    end
    local digits = packed:sub(2):gsub('.', function(each)
        return string.format('%02x', each:byte())
    end)
    return table.concat({
        digits:sub(1, 8), digits:sub(9, 12), digits:sub(13, 16), digits:sub(17, 20), digits:sub(21),
    }, '-')
end

local prefix, found, member = measured(ns), {}, nil
if id == '' then
    member = redis.call('ZREVRANGEBYLEX', KEYS[3], '(' .. prefix .. '\255', '[' .. prefix, 'LIMIT', 0, 1)[1]
end
while #found < 2 * most and bytes > 0 do
    local rank
    if not member then
        if id == '' then
            break
        end
        rank = redis.call('HGET', KEYS[2], '\255\255' .. prefix .. id)
        member = prefix .. (rank or id)
    end
    local value = redis.call('HGET', KEYS[2], member)
    if not value or (id ~= '' and not rank and value:byte(2) ~= 192) then
        break
    end
    found[#found + 1] = member
    found[#found + 1] = value
    bytes = bytes - #value
    local parent = text_in(list_in(value), 2)
    if parent == '' then
        break
    end
    id, member = text_of(parent), nil
end
return { 0, stored[1], stored[2], found }
