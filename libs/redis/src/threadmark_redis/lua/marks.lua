-- The marks of all rows of a thread (`RowMarks`). ARGV: how long a mark is. Returns whether a key was evicted, epoch,
-- revision, and three flat arrays: field, id or nil, and mark of each checkpoint; field, task, number and mark of each
-- write; key, size and mark of each segment.

local CHUNK = 200
local ONE = 1 -- a segment may have megabytes
local stored = redis.call('HMGET', KEYS[1], 'e', 'r', MASK)
if is_torn(0, stored[3]) then
    return { 1, stored[1], stored[2] }
end

local size = tonumber(ARGV[1])
local checkpoints, writes, segments = {}, {}, {}
local function append(list, one, two, three, four)
    for _, each in ipairs({ one, two, three, four }) do
        list[#list + 1] = each
    end
end
each_field(KEYS[2], redis.call('ZRANGE', KEYS[3], 0, -1), CHUNK, function(member, value)
    local columns = columns_in(value)
    local own_id = type(columns[1]) == 'string' and columns[1]
    append(checkpoints, member, own_id, mark_of(columns[6], columns[5], size))
end)
each_field(KEYS[4], redis.call('HKEYS', KEYS[4]), CHUNK, function(field, value)
    for _, group in ipairs((groups_in(value))) do
        for at = 3, #group, 4 do
            append(writes, field, group[1], group[at], mark_of(group[at + 3], group[at + 2], size))
        end
    end
end)
each_field(KEYS[5], redis.call('HKEYS', KEYS[5]), ONE, function(key, data)
    append(segments, key, #data, mark_of('', data, size))
end)
return { 0, stored[1], stored[2], checkpoints, writes, segments }
