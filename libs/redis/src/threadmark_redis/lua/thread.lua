-- The part that every script on a thread shares. KEYS: head, checkpoints, ranks, writes, segments.
--
-- The head's fields have one letter (docs/reference/format.md). Text is compared byte by byte: Lua's own comparison would follow
-- the server's locale.

local DAY = 86400000
local MASK = 'k'
local HELD = 'w' -- until when those who add wait for a transaction that has read the thread
local FORM, KNOWN = 'format', 1 -- the least format that a process must know to change a thread, and the one known here
local NEVER = 9007199254740992 -- microseconds: a damaged time

local function clock()
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
end

-- How long a lease lives still: no longer than its full length, whatever its end says. Negative since it has ended.
local function left_of(ends, ttl)
    return math.min((tonumber(ends) or 0) - clock(), tonumber(ttl) or 0)
end

-- Which of the keys besides the head are there, as four digits.
local function present(base)
    local found = ''
    for number = base + 2, base + 5 do
        found = found .. redis.call('EXISTS', KEYS[number])
    end
    return found
end

-- Whether a key was evicted, or expired without the others: the head says which should be there.
local function is_torn(base, mask)
    return present(base) ~= (mask or '0000')
end

local function is_of_later_form(form)
    return form and (tonumber(form) or 0) > KNOWN
end

-- The packed list; an empty one if it is damaged.
local function list_in(packed)
    local is_read, list = pcall(cmsgpack.unpack, packed)
    return is_read and type(list) == 'table' and list or {}
end

local function text_in(list, at)
    return type(list[at]) == 'string' and list[at] or ''
end

local function is_less(one, other)
    for number = 1, math.min(#one, #other) do
        local mine, theirs = one:byte(number), other:byte(number)
        if mine ~= theirs then
            return mine < theirs
        end
    end
    return #one < #other
end

-- A text behind its length, in two bytes.
local function measured(text)
    return string.char(math.floor(#text / 256), #text % 256) .. text
end

-- Let the memory of a deleted thread, or a lease, expire after a day, but not while something is to be copied. `ends`
-- is when the last lease does.
local function bury(head, ends, outbox)
    if outbox and redis.call('EXISTS', outbox) == 1 then
        redis.call('PERSIST', head)
    else
        local moment = math.floor(clock() / 1000)
        redis.call('PEXPIREAT', head, math.max(moment, math.floor(math.min(tonumber(ends) or 0, NEVER) / 1000)) + DAY)
    end
end

-- After a change: note which keys are there, raise the revision, and let all expire together. `grace` is for how many
-- milliseconds a thread that has expired stays to be found, `outbox` the thread's, if the script has it.
local function settle(base, grace, outbox)
    local head = KEYS[base + 1]
    local fields = redis.call('HMGET', head, MASK, 'v', 'x', 'z', 'r')
    local mask = present(base)
    if fields[1] ~= mask then
        redis.call('HSET', head, MASK, mask)
    end
    -- A server that took over may lack changes, and must not count up to the revisions that they had.
    local last = tonumber(fields[5])
    redis.call('HSET', head, 'r', math.max(last and last < NEVER and last + 1 or 0, clock()))
    if fields[2] ~= '1' then
        bury(head, fields[4], outbox)
    elseif fields[3] then
        local moment = math.floor(clock() / 1000)
        local at = math.max(moment, math.floor(math.min(tonumber(fields[3]) or NEVER, NEVER) / 1000)) + grace
        for number = base + 1, base + 5 do
            redis.call('PEXPIREAT', KEYS[number], at)
        end
    elseif redis.call('PTTL', head) > 0 then
        for number = base + 1, base + 5 do
            redis.call('PERSIST', KEYS[number])
        end
    end
end
