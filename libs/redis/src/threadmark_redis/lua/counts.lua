-- Derive the counts of a thread. ARGV: whether the sizes are wanted, the greatest number of fields to go through, and
-- what headers of unfinished threads begin or end with (`UNFINISHED` of threadmark.backends).
-- Returns: whether the thread is live (or 'torn', or 'large' if there are more fields), its checkpoints, namespaces
-- and bytes, the id of the newest checkpoint, and whether it is leased, failed, interrupted, or unfinished.

local fields = redis.call('HGETALL', KEYS[1])
local head = {}
for at = 1, #fields, 2 do
    head[fields[at]] = fields[at + 1]
end
if is_torn(0, head[MASK]) then
    return { 'torn' }
end
if head.v ~= '1' then
    return { '0' }
end

-- Whether nodes are still to run after a checkpoint, by its stored header: `is_unfinished` of threadmark.backends.
local function is_unfinished(header, check)
    if check == '' then
        return header:sub(1, #ARGV[3]) == ARGV[3]
    elseif header:byte(1) == 0 then
        return header:sub(1, #ARGV[4]) == ARGV[4]
    end
    return header:sub(-#ARGV[5]) == ARGV[5]
end

local newest, failed, interrupted, unfinished = false, 0, 0, 0
if head.n then
    local rank = text_in(list_in(head.n), 2)
    local value = redis.call('HGET', KEYS[2], '\0\0' .. rank)
    if value then
        local columns = list_in(value)
        newest = columns[1] and text_in(columns, 1) or rank
        unfinished = is_unfinished(text_in(columns, 5), text_in(columns, 6)) and 1 or 0
        local reference = '\0\0' .. measured(newest)
        local main = redis.call('HGET', KEYS[4], reference)
        for _, group in ipairs((groups_in(main or ''))) do
            if #group == 1 then
                local own = redis.call('HGET', KEYS[4], reference .. group[1])
                for _, each in ipairs((groups_in(own or ''))) do
                    for at = 3, #each, 4 do
                        failed = each[at] == -1 and 1 or failed
                        interrupted = each[at] == -3 and 1 or interrupted
                    end
                end
            end
            for at = 3, #group, 4 do
                failed = group[at] == -1 and 1 or failed
                interrupted = group[at] == -3 and 1 or interrupted
            end
        end
    end
end
local leased = left_of(head.z, head.l) > 0 and 1 or 0
if ARGV[1] == '0' then
    return { '1', 0, 0, 0, newest, leased, failed, interrupted, unfinished }
end

local number = redis.call('HLEN', KEYS[2]) + redis.call('HLEN', KEYS[4]) + redis.call('HLEN', KEYS[5])
if number > tonumber(ARGV[2]) then
    return { 'large', 0, 0, 0, newest, leased, failed, interrupted, unfinished }
end
local size, namespaces = 0, 0
for name in pairs(head) do
    if name:byte(1) == 110 then
        namespaces = namespaces + 1
    end
end
for _, key in ipairs(redis.call('HKEYS', KEYS[5])) do
    size = size + redis.call('HSTRLEN', KEYS[5], key)
end
local rows = redis.call('HGETALL', KEYS[2])
for at = 1, #rows, 2 do
    if rows[at]:byte(1) ~= 255 then
        local columns = list_in(rows[at + 1])
        size = size + #text_in(columns, 4) + #text_in(columns, 5)
    end
end
for _, field in ipairs(redis.call('HVALS', KEYS[4])) do
    for _, group in ipairs((groups_in(field))) do
        for at = 3, #group, 4 do
            size = size + #group[at + 2]
        end
    end
end
return { '1', redis.call('ZCARD', KEYS[3]), namespaces, size, newest, leased, failed, interrupted, unfinished }
