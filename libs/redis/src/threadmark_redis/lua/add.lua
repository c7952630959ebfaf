-- Add the rows of one change, or say why not. KEYS: the thread's, and if they are in the same database of one
-- server, those of its shard of the index. For a change of a replicated database the thread's outbox is behind them,
-- and on one server the term and the index of pending threads. ARGV: the change (changes.py), how stale the index may
-- be in microseconds, and for how long an expired thread is kept, in milliseconds.

local NOWHERE = -1 -- the position of a thread that never came from another database
local change = cmsgpack.unpack(ARGV[1])
local epoch_expected, now, token, only_owner, continues, expects, sorts_last, touches =
    change[1], change[2], change[3], change[4], change[5], change[6], change[7], change[8]
local owner, expires, check, id = change[9], change[10], change[11], change[12]
local segments, checkpoints, groups, needs, written = change[13], change[14], change[15], change[16], change[17]
local term, entry, follows = change[18], change[19], change[20]
local head, rows, ranks, writes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local on_one_server = #KEYS > 6
local outbox, replica, pending = KEYS[on_one_server and 11 or 6], KEYS[12], KEYS[13]

if term and on_one_server and is_raised(replica, term) then
    return { 'term', 0 }
end
local stored = redis.call('HMGET', head, 'e', 'v', 'o', 'x', 't', 'z', 'l', 'd', 'u', 'y', MASK, 'a', HELD, FORM)
local epoch, live = tonumber(stored[1]), stored[2] == '1'
if is_of_later_form(stored[14]) then
    return { 'form', epoch or 0 }
end
if stored[13] and (tonumber(stored[13]) or 0) > clock() then
    return { 'held', epoch or 0 }
end
if follows then
    local known = redis.call('HGET', head, 'f')
    local position, copied = unpack(known and list_in(known) or { NOWHERE, 0 })
    local is_next = position == follows[1] and (copied == 0 or copied == follows[3])
    if not is_next or redis.call('EXISTS', outbox) == 1 then
        return { 'behind', epoch or 0 }
    end
end
if is_torn(0, stored[11]) then
    return { 'torn', epoch or 0 }
end
local heads, is_whole = {}, epoch ~= nil or not stored[1]
for _, row in ipairs(checkpoints) do
    local recorded = redis.call('HGET', head, 'n' .. row[1])
    local columns = recorded and list_in(recorded) or { 0, '' }
    is_whole = is_whole and type(columns[1]) == 'number' and type(columns[2]) == 'string'
    heads[row[1]] = columns
end
if not is_whole then
    return { 'damaged', 0 }
end
if epoch_expected and epoch ~= epoch_expected then
    return { 'epoch', epoch or 0 }
end

if only_owner and live and (stored[3] or nil) ~= owner then
    return { 'owner', epoch or 0 }
end
local last, ends = tonumber(stored[5]) or 0, tonumber(stored[6]) or 0
local left = ends > 0 and left_of(stored[6], stored[7]) or 0
if token == nil then
    if left > 0 then
        return { 'busy', epoch or 0 }
    end
elseif token ~= -1 and token ~= last then
    return { 'lost', epoch or 0 }
end

local function has(ns, id_of_row)
    return redis.call('HEXISTS', rows, measured(ns) .. id_of_row) == 1
        or redis.call('HEXISTS', rows, '\255\255' .. measured(ns) .. id_of_row) == 1
end

local deleted_up_to = stored[8]
if deleted_up_to and continues and continues ~= '' and not is_less(deleted_up_to, continues) then
    local is_there = false
    for _, field in ipairs(redis.call('HKEYS', head)) do
        is_there = is_there or (field:byte(1) == 110 and has(field:sub(2), continues))
    end
    if not is_there then
        return { 'late', epoch or 0 }
    end
end

for _, row in ipairs(checkpoints) do
    if has(row[1], row[3]) or redis.call('HEXISTS', rows, measured(row[1]) .. row[2]) == 1 then
        return { 'exists', epoch or 0, tonumber(stored[12]) or 0, tonumber(stored[9]) or 0, stored[3], stored[4] }
    end
end

-- A server that came back or took over may lack acknowledged changes. Then the epoch ends, and callers which relied on
-- bytes that are gone prepare the change again with all of them.
local function lacks(keys, given)
    for at = 1, #keys, 12 do
        local key = keys:sub(at, at + 11)
        if not given[key] and redis.call('HEXISTS', KEYS[5], key) == 0 then
            return true
        end
    end
    return false
end
if epoch_expected then
    local given = {}
    for at = 1, #segments, 2 do
        given[segments[at]] = true
    end
    if lacks(needs, given) or lacks(written, given) then
        epoch = redis.call('HINCRBY', head, 'e', 1)
        settle(0, tonumber(ARGV[3]), outbox)
        return { 'epoch', epoch }
    end
end
if expects or sorts_last then
    local newest = heads[checkpoints[1][1]][2]
    if (sorts_last and not is_less(newest, checkpoints[1][2])) or (expects and expects ~= newest) then
        return { 'conflict', epoch or 0 }
    end
end

-- From here on the change is made.
local updated, created, expires_at = tonumber(stored[9]) or 0, tonumber(stored[12]) or 0, stored[4] or nil
owner = owner or nil
if not live then
    epoch = epoch or now
    updated, created, expires_at = now, now, expires
    redis.call('HSET', head, 'i', id, 'e', epoch, 'v', '1', 'a', now)
    redis.call('PERSIST', head)
    if owner then
        redis.call('HSET', head, 'o', owner)
    end
    if expires then
        redis.call('HSET', head, 'x', expires)
    end
    if check and check ~= '' then
        redis.call('HSET', head, 'q', check)
    end
else
    owner = stored[3] or nil
end

for at = 1, #segments, 2 do
    redis.call('HSETNX', KEYS[5], segments[at], segments[at + 1])
end

local before = updated
local root_count
for _, row in ipairs(checkpoints) do
    local ns, rank, row_id, value, created_at = row[1], row[2], row[3], row[4], row[5]
    local member = measured(ns) .. rank
    redis.call('HSET', rows, member, value)
    redis.call('ZADD', ranks, 0, member)
    if row_id ~= rank then
        redis.call('HSET', rows, '\255\255' .. measured(ns) .. row_id, rank)
    end
    local count, newest = unpack(heads[ns])
    if count == 0 or is_less(newest, rank) then
        newest = rank
        if needs and needs ~= '' then
            redis.call('HSET', rows, '\255\254' .. ns, needs)
        else
            redis.call('HDEL', rows, '\255\254' .. ns)
        end
    end
    heads[ns] = { count + 1, newest }
    redis.call('HSET', head, 'n' .. ns, cmsgpack.pack(heads[ns]))
    if ns == '' then
        root_count = root_count or count
        updated = (root_count == 0 and row == checkpoints[1]) and created_at or math.max(updated, created_at)
    end
end
if touches then
    updated = math.max(updated, now)
end

local replaced, number, pack_left_out = {}, 0, 0
for _, group in ipairs(groups) do
    if add_group(writes, rows, group[1], group[2], group[3], group[4], number, replaced) then
        pack_left_out = 1
    end
    number = number + #group[4] / 4
end

if updated ~= before or not live then
    redis.call('HSET', head, 'u', updated)
end
local stale = not live or math.abs(updated - (tonumber(stored[10]) or 0)) >= tonumber(ARGV[2])
if stale then
    redis.call('HSET', head, 'y', updated)
    if on_one_server then
        index_thread(5, id, created, updated, owner, expires_at)
    end
end
local position, previous
if entry then
    position, previous = record(head, outbox, entry)
    if on_one_server then
        redis.call('ZADD', pending, 'NX', position, id)
    end
end
if follows then
    redis.call('HSET', head, 'f', cmsgpack.pack({ follows[2], follows[3] }))
end
settle(0, tonumber(ARGV[3]), outbox)

local renewal = 0
local ttl = tonumber(stored[7]) or 0
if token and token == last and ends > 0 and left < math.floor(ttl / 2) then
    renewal = ttl
end
return {
    'added', epoch, replaced, renewal, expires_at or false, stale and 1 or 0, created, updated, owner or false,
    pack_left_out, position, previous,
}
