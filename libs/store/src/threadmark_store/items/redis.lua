-- Change items: all, or none if the owner of one is not as expected. KEYS: for each change the namespace's items and
-- their keys, the order of its bucket, and the shard's namespaces, owners and expiries. ARGV: eight bytes that no
-- other call has, which become the version of every namespace that changes; then for each change an array: what to do;
-- the item's key; its member among the expiries, to refresh it only what stands there before the owner; the mark of
-- the owner that it is expected to have, and of the one that a new item gets; whether one of another owner stays; the
-- members among namespaces and owners; then for `put` the row and when it expires or '', for `sweep` and `refresh` the
-- time. Returns `done` and the numbers of the changes that swept an item; `refused` and the numbers of the puts that
-- meet one of another owner; or `others`, with the numbers of the changes whose item has not the owner that is
-- expected, each with the mark that it has.
--
-- A row has its form, how it ends, its order by update, when it was created, its check, when it expires and its time to
-- live unless it never ends, the measured mark of its owner, and the value.

local STRIDE = 6
local FIRST = 2
local VERSION = '\255'
local NEVER, LIVES_ON = '-', 'l'
local CREATED = 11 -- the place of a time of 8 bytes
local EXPIRES = 27 -- the place of a time of 8 bytes, with the time to live behind it

local function owner_at(row)
    return row:sub(2, 2) == NEVER and EXPIRES or EXPIRES + 16
end

-- The owner's mark behind its length, as members of the expiries have it.
local function measured_mark(row)
    local at = owner_at(row)
    local high, low = row:byte(at, at + 1)
    return row:sub(at, at + 1 + (high or 0) * 256 + (low or 0))
end

local function mark_of(row)
    return measured_mark(row):sub(3)
end

local function expired_by(row, time)
    return row:sub(2, 2) ~= NEVER and struct.unpack('>i8', row, EXPIRES) <= time
end

local function place_of(row, key)
    return row:sub(3, 10) .. key
end

local function put(base, change, row)
    local key, stored, expires = change[2], change[9], change[10]
    if row then
        if not expired_by(row, struct.unpack('>i8', stored, CREATED)) then
            stored = stored:sub(1, CREATED - 1) .. row:sub(CREATED, CREATED + 7) .. stored:sub(CREATED + 8)
        end
        redis.call('ZREM', KEYS[base + 3], place_of(row, key))
    else
        redis.call('ZADD', KEYS[base + 2], 0, key)
        redis.call('ZADD', KEYS[base + 4], 0, change[7])
        if change[4] ~= '' then
            redis.call('ZADD', KEYS[base + 5], 0, change[8])
        end
    end
    redis.call('HSET', KEYS[base + 1], key, stored, VERSION, ARGV[1])
    redis.call('ZADD', KEYS[base + 3], 0, place_of(stored, key))
    if expires ~= '' then
        redis.call('ZADD', KEYS[base + 6], expires, change[3])
    elseif row then
        redis.call('ZREM', KEYS[base + 6], change[3])
    end
end

local function remove(base, change, row)
    local key = change[2]
    redis.call('HDEL', KEYS[base + 1], key)
    redis.call('HSET', KEYS[base + 1], VERSION, ARGV[1])
    redis.call('ZREM', KEYS[base + 2], key)
    if redis.call('EXISTS', KEYS[base + 2]) == 0 then
        redis.call('UNLINK', KEYS[base + 1])
    end
    redis.call('ZREM', KEYS[base + 3], place_of(row, key))
    redis.call('ZREM', KEYS[base + 6], change[3])
    if redis.call('EXISTS', KEYS[base + 3]) == 0 then
        redis.call('ZREM', KEYS[base + 4], change[7])
        redis.call('ZREM', KEYS[base + 5], change[8])
    end
end

-- Remove an item that has expired. Returns whether it had. A member that has no such item leaves the expiries.
local function sweep(base, change, row)
    local expires = tonumber(redis.call('ZSCORE', KEYS[base + 6], change[3]) or '')
    if not row then
        redis.call('ZREM', KEYS[base + 6], change[3])
    elseif expires and expires <= tonumber(change[9]) then
        remove(base, change, row)
        return true
    end
end

local function refresh(base, change, row)
    if row:sub(2, 2) == LIVES_ON then
        local expires = tonumber(change[9]) + struct.unpack('>i8', row, EXPIRES + 8)
        local stored = row:sub(1, EXPIRES - 1) .. struct.pack('>i8', expires) .. row:sub(EXPIRES + 8)
        redis.call('HSET', KEYS[base + 1], change[2], stored, VERSION, ARGV[1])
        redis.call('ZADD', KEYS[base + 6], expires, change[3] .. measured_mark(row) .. change[2])
    end
end

local changes, rows, refused, others = {}, {}, { 'refused' }, { 'others' }
for number = 1, #ARGV - FIRST + 1 do
    local change = cmsgpack.unpack(ARGV[number + FIRST - 1])
    local base = (number - 1) * STRIDE
    local row = redis.call('HGET', KEYS[base + 1], change[2])
    local mark = row and mark_of(row) or change[5]
    if change[1] ~= 'refresh' and mark ~= change[4] then
        if not change[6] then
            others[#others + 1] = number
            others[#others + 1] = mark
        elseif change[1] == 'put' then
            refused[#refused + 1] = number
        end
        row = false
    end
    changes[number], rows[number] = change, row
end
if #refused > 1 or #others > 1 then
    return #others > 1 and others or refused
end

local reply = { 'done' }
for number, change in ipairs(changes) do
    local base, row = (number - 1) * STRIDE, rows[number]
    if change[1] == 'put' then
        put(base, change, row)
    elseif change[1] == 'sweep' then
        if sweep(base, change, row) then
            reply[#reply + 1] = number
        end
    elseif row then
        (change[1] == 'delete' and remove or refresh)(base, change, row)
    end
end
return reply
