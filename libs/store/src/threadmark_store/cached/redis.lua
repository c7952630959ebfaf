-- Change the cached entries of an owner, or of a part of them. KEYS: the hash of the entries, whose field `size` has the
-- bytes that they count, and the sets of the times of use and of expiry. ARGV: what to do, what an entry counts in
-- addition to its columns, and what the function of that name takes.

local entries, used, expiries = KEYS[1], KEYS[2], KEYS[3]
local own = tonumber(ARGV[2])
local FIRST = 3
local size = tonumber(redis.call('HGET', entries, 'size') or '0')

local function remove(field)
    if redis.call('HEXISTS', entries, field) == 1 then
        size = size - redis.call('HSTRLEN', entries, field) - own
        redis.call('HDEL', entries, field)
    end
    redis.call('ZREM', used, field)
    redis.call('ZREM', expiries, field)
end

local change = {}

-- Add entries. Takes the most bytes, the time, and for each entry its field, its columns, and its expiry or ''. Returns
-- how many more bytes the bound leaves. A bound that was lowered is reached in several calls, so that none takes long.
function change.add()
    local most, now = tonumber(ARGV[FIRST]), ARGV[FIRST + 1]
    for _, field in ipairs(redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'LIMIT', 0, 1000)) do
        remove(field)
    end
    local added = 0
    for at = FIRST + 2, #ARGV, 3 do
        remove(ARGV[at])
        added = added + #ARGV[at + 1] + own
    end
    local evictions = 10000
    while size > 0 and size + added > most and evictions > 0 do
        local oldest = redis.call('ZRANGE', used, 0, 0)[1]
        if oldest then
            remove(oldest)
            evictions = evictions - 1
        else
            redis.call('UNLINK', entries, expiries)
            size = 0
        end
    end
    for at = FIRST + 2, #ARGV, 3 do
        redis.call('HSET', entries, ARGV[at], ARGV[at + 1])
        redis.call('ZADD', used, now, ARGV[at])
        if ARGV[at + 2] ~= '' then
            redis.call('ZADD', expiries, ARGV[at + 2], ARGV[at])
        end
    end
    size = size + added
    return string.format('%.0f', most - size)
end

-- Note that entries were used. Takes the time, and fields.
function change.touch()
    for at = FIRST + 1, #ARGV do
        if redis.call('HEXISTS', entries, ARGV[at]) == 1 then
            redis.call('ZADD', used, ARGV[FIRST], ARGV[at])
        end
    end
end

-- Remove those of the fields that have expired. Takes the time, and fields.
function change.drop()
    for at = FIRST + 1, #ARGV do
        local expiry = redis.call('ZSCORE', expiries, ARGV[at])
        if expiry and tonumber(expiry) <= tonumber(ARGV[FIRST]) then
            remove(ARGV[at])
        end
    end
end

-- Remove entries that have expired. Takes the time, and how many at most. Returns how many.
function change.sweep()
    local expired = redis.call('ZRANGEBYSCORE', expiries, '-inf', ARGV[FIRST], 'LIMIT', 0, ARGV[FIRST + 1])
    for _, field in ipairs(expired) do
        remove(field)
    end
    return #expired
end

-- Remove the entries of namespaces, some at each call. Takes the cursor of HSCAN, and the beginnings of their fields.
-- Returns the next cursor.
function change.clear()
    local asked = {}
    for at = FIRST + 1, #ARGV do
        asked[ARGV[at]] = true
    end
    local scanned = redis.call('HSCAN', entries, ARGV[FIRST], 'COUNT', 1000)
    for at = 1, #scanned[2], 2 do
        local field = scanned[2][at]
        if asked[string.sub(field, 1, #ARGV[FIRST + 1])] then
            remove(field)
        end
    end
    return scanned[1]
end

-- Replace an entry, or remove it if the new columns are ''. Takes its field, and the old and the new columns. Returns
-- whether it was still the old one.
function change.replace()
    local field, old, new = ARGV[FIRST], ARGV[FIRST + 1], ARGV[FIRST + 2]
    if redis.call('HGET', entries, field) ~= old then
        return 0
    end
    if new == '' then
        remove(field)
    else
        size = size - #old + #new
        redis.call('HSET', entries, field, new)
    end
    return 1
end

-- Remove all entries.
function change.clear_all()
    size = 0
end

local reply = change[ARGV[1]]()
if size > 0 then
    redis.call('HSET', entries, 'size', string.format('%.0f', size))
else
    redis.call('UNLINK', entries, used, expiries)
end
return reply or 1
