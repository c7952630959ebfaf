-- Pending writes. The field of a checkpoint holds groups of them behind one byte, which is 1 if some tasks have a
-- separate field; then a group with nothing but the task stands for it. A group is a msgpack array: the task, its
-- path, and for each write its number, channel, value and check.

local INLINE = 1024
local PACK = 536870912 -- the number of a row of several writes

-- Before a reference: such a field of the checkpoints says that there are writes under it.
local WRITTEN = '\255\240'
-- The first byte of a field of which something is missing. A reader of it says so.
local LOST = '\2'

-- Whether a group is one that add_group packs.
local function is_group(group)
    if type(group) ~= 'table' or type(group[1]) ~= 'string' then
        return false
    end
    if #group == 1 then
        return true
    end
    if #group < 6 or #group % 4 ~= 2 or type(group[2]) ~= 'string' then
        return false
    end
    for at = 3, #group, 4 do
        if type(group[at]) ~= 'number' or type(group[at + 1]) ~= 'string' then
            return false
        end
        if type(group[at + 2]) ~= 'string' or type(group[at + 3]) ~= 'string' then
            return false
        end
    end
    return true
end

-- The groups in a field, and whether that is all: of a damaged field those that can be read.
local function groups_in(field)
    local found, at, is_whole = {}, 1, #field > 0 and field:byte(1) < 2
    while at ~= -1 and at < #field do
        local is_read, next_at, group = pcall(cmsgpack.unpack_one, field, at)
        if not is_read then
            return found, false
        end
        at = next_at
        if is_group(group) then
            found[#found + 1] = group
        else
            is_whole = false
        end
    end
    return found, is_whole
end

-- The group without those of its writes whose numbers are in `doomed`; nil if none is left.
local function group_without(group, doomed)
    local left = { group[1], group[2] }
    for at = 3, #group, 4 do
        if not doomed[group[at]] then
            for offset = 0, 3 do
                left[#left + 1] = group[at + offset]
            end
        end
    end
    return #left > 2 and left or nil
end

local function field_without(field, task, doomed)
    local left = { field:sub(1, 1) }
    for _, group in ipairs(groups_in(field)) do
        if group[1] == task and #group > 1 then
            group = group_without(group, doomed)
        end
        if group then
            left[#left + 1] = cmsgpack.pack(group)
        end
    end
    return table.concat(left)
end

-- Add writes of one task. Damage stays as it is, so that nothing that was lost seems never to have been. `rows` has for each its number, channel, value and check, one behind the other. Each
-- replaced one is appended to `replaced`: its place in the change, and its old value. Returns whether a row of several
-- writes was left out, because the task had one.
local function add_group(key, checkpoints, reference, task, path, rows, first, replaced)
    local main = redis.call('HGET', key, reference)
    local own = redis.call('HGET', key, reference .. task)
    if not main then
        main = redis.call('HSETNX', checkpoints, WRITTEN .. reference, '') == 1 and '\0' or LOST
    end
    local there, is_whole, has_own = {}, true, false
    for _, field in ipairs({ main, own or '\0' }) do
        local groups, is_all = groups_in(field)
        is_whole = is_whole and is_all
        for _, group in ipairs(groups) do
            if group[1] == task then
                has_own = has_own or #group == 1
                for at = 3, #group, 4 do
                    there[group[at]] = group[at + 2]
                end
            end
        end
    end
    local fresh, doomed, any, pack_left_out = { task, path }, {}, false, false
    for at = 1, #rows, 4 do
        local number = rows[at]
        local old = there[number]
        if old and number < 0 then
            replaced[#replaced + 1] = first + (at - 1) / 4
            replaced[#replaced + 1] = old
            doomed[number], any = true, true
        end
        if not old or number < 0 then
            for offset = 0, 3 do
                fresh[#fresh + 1] = rows[at + offset]
            end
            there[number] = rows[at + 2]
        else
            pack_left_out = pack_left_out or number == PACK
        end
    end
    if #fresh == 2 then
        return pack_left_out
    end
    if any and is_whole then
        main = field_without(main, task, doomed)
        own = own and field_without(own, task, doomed)
    end
    local packed = cmsgpack.pack(fresh)
    if own then
        own = own .. packed
    elseif has_own or #main + #packed <= INLINE then
        main = main .. packed
    else
        own = '\0' .. packed
        main = string.char(math.max(main:byte(1), 1)) .. main:sub(2) .. cmsgpack.pack({ task })
    end
    redis.call('HSET', key, reference, main)
    if own then
        redis.call('HSET', key, reference .. task, own)
    end
    return pack_left_out
end
