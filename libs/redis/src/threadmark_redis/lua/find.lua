-- Find one checkpoint. ARGV: its namespace, its id or '' for the newest, the rank of one whose segments the caller has,
-- and how many bytes of segments may come along. Returns: the outcome, epoch, revision, recorded newest rank,
-- owner, expiry, its place among the ranks, its row, its writes, those in separate fields ('' for a missing one),
-- and segments.

local ns, id, held, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local rows, ranks, writes, segments = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local stored = redis.call('HMGET', KEYS[1], 'e', 'o', 'x', MASK, 'n' .. ns, 'r')
if is_torn(0, stored[4]) then
    return { 'torn', stored[1], stored[6] }
end

local prefix = measured(ns)
local newest, member, value = false, false, false
if id ~= '' then
    local rank = redis.call('HGET', rows, '\255\255' .. prefix .. id)
    member = prefix .. (rank or id)
    value = redis.call('HGET', rows, member)
    if not value or (not rank and value:byte(2) ~= 192) then
        return { 'none', stored[1], stored[6] }
    end
else
    newest = ''
    if stored[5] then
        newest = text_in(list_in(stored[5]), 2)
        member = prefix .. newest
        value = redis.call('HGET', rows, member)
    end
    if not value then
        -- The recorded one is missing, or none is recorded: the caller decides by the rows that are there.
        local others = redis.call('ZREVRANGEBYLEX', ranks, '(' .. prefix .. '\255', '[' .. prefix, 'LIMIT', 0, 1)
        member = others[1] or false
        value = member and redis.call('HGET', rows, member)
        if not value and not stored[5] then
            return { 'none', stored[1], stored[6] }
        end
    end
end

local reply = { 'found', stored[1], stored[6], newest, stored[2], stored[3], member, value, false, {}, {} }
if not value then
    return reply
end
local columns = list_in(value)
local own_id = columns[1] and text_in(columns, 1) or member:sub(#prefix + 1)
local is_held = id == '' and member == prefix .. held

-- All segments of the newest are recorded. For another one the header's segments come along, which names the others;
-- a stored value begins with how many segments it has, and their keys.
local keys, seen = {}, {}
local function add_keys(text, first, last)
    for at = first, last, 12 do
        local key = text:sub(at, at + 11)
        if not seen[key] then
            seen[key] = true
            keys[#keys + 1] = key
        end
    end
end
local function add_keys_of(body)
    add_keys(body, 2, 12 * (body:byte(1) or 0))
end

if not is_held then
    local needs = id == '' and redis.call('HGET', rows, '\255\254' .. ns)
    add_keys(needs or '', 1, #(needs or ''))
    add_keys_of(text_in(columns, 5))
end
local reference = prefix .. measured(own_id)
local main = redis.call('HGET', writes, reference)
if not main and redis.call('HEXISTS', rows, WRITTEN .. reference) == 1 then
    main = ''
end
reply[9] = main
for _, group in ipairs((groups_in(main or ''))) do
    local own = #group == 1 and (redis.call('HGET', writes, reference .. group[1]) or '')
    if own then
        reply[10][#reply[10] + 1] = own
    end
    for _, each in ipairs(own and (groups_in(own)) or { group }) do
        for at = 5, #each, 4 do
            add_keys_of(each[at])
        end
    end
end
for _, key in ipairs(keys) do
    local data = redis.call('HGET', segments, key)
    if data then
        most = most - #data
        if most < 0 then
            break
        end
        reply[11][#reply[11] + 1] = key
        reply[11][#reply[11] + 1] = data
    end
end
return reply
