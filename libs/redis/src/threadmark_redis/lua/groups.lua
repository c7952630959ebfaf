-- Pending writes. The field of a checkpoint holds groups of them behind one byte, which is 1 where some tasks have a
-- field of their own; then a group with nothing but the task stands for it. A group is a msgpack array: the task, its
-- path, and for each write its number, channel, value and check.

local INLINE = 1024
local PACK = 536870912 -- the number of a row of several writes

local function groups_in(field)
    local found, at = {}, 1
    while at ~= -1 and at < #field do
        at, found[#found + 1] = cmsgpack.unpack_one(field, at)
    end
    return found
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

-- Add writes of one task. `rows` has for each its number, channel, value and check, one behind the other. What was
-- replaced is appended to `replaced`: its place in the whole change, and the old value. Returns whether a row of several
-- writes was left out, because the task had one.
local function add_group(key, reference, task, path, rows, first, replaced)
    local main = redis.call('HGET', key, reference) or '\0'
    local own = redis.call('HGET', key, reference .. task)
    local there = {}
    for _, field in ipairs({ main, own or '' }) do
        for _, group in ipairs(groups_in(field)) do
            if group[1] == task then
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
    if any then
        main = field_without(main, task, doomed)
        own = own and field_without(own, task, doomed)
    end
    local packed = cmsgpack.pack(fresh)
    if own then
        own = own .. packed
    elseif #main + #packed <= INLINE then
        main = main .. packed
    else
        own = '\0' .. packed
        main = '\1' .. main:sub(2) .. cmsgpack.pack({ task })
    end
    redis.call('HSET', key, reference, main)
    if own then
        redis.call('HSET', key, reference .. task, own)
    end
    return pack_left_out
end
