-- The marks of all rows of a thread (`RowMarks`). ARGV: how long a mark is. Returns whether a key was evicted, epoch,
-- revision, and three flat arrays: field, id or nil, and mark of each checkpoint; field, task, number and mark of each
-- write; key, size and mark of each segment.

local CHUNK = 200
local ONE = 1 -- a segment may have megabytes
local stored = redis.call('HMGET', KEYS[1], 'e', 'r', MASK)
if is_torn(0, stored[3]) then
    return { 1, stored[1], stored[2] }
end

local function mark_of(check, body)
    return (check ~= '' and check or body):sub(-tonumber(ARGV[1]))
end

local function each_field(key, fields, size, call)
    for first = 1, #fields, size do
        local last = math.min(first + size - 1, #fields)
        local values = redis.call('HMGET', key, unpack(fields, first, last))
        for at = 1, last - first + 1 do
            if values[at] then
                call(fields[first + at - 1], values[at])
            end
        end
    end
end

local checkpoints, writes, segments = {}, {}, {}
local function append(list, one, two, three, four)
    for _, each in ipairs({ one, two, three, four }) do
        list[#list + 1] = each
    end
end
each_field(KEYS[2], redis.call('ZRANGE', KEYS[3], 0, -1), CHUNK, function(member, value)
    local columns = cmsgpack.unpack(value)
    append(checkpoints, member, columns[1] or false, mark_of(columns[6], columns[5]))
end)
each_field(KEYS[4], redis.call('HKEYS', KEYS[4]), CHUNK, function(field, value)
    for _, group in ipairs(groups_in(value)) do
        for at = 3, #group, 4 do
            append(writes, field, group[1], group[at], mark_of(group[at + 3], group[at + 2]))
        end
    end
end)
each_field(KEYS[5], redis.call('HKEYS', KEYS[5]), ONE, function(key, data)
    append(segments, key, #data, mark_of('', data))
end)
return { 0, stored[1], stored[2], checkpoints, writes, segments }
