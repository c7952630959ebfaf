-- Make the changes of a transaction to some threads, unless one of them was changed since it was read. KEYS: the keys
-- of each thread and its outbox; on one server at the end the term and the index of pending threads. ARGV: for how long
-- an expired thread is kept, a name that no other commit has, the term that the transaction has read or '', then for
-- each thread an array: the epoch and revision it had (alone if nothing changes); whether everything is removed first;
-- fields of the head to set and to remove; for checkpoints, writes and segments the same, with the ranks that come and
-- go between them; the position up to which entries are removed from its outbox or nil, and those that are added
-- (positions and bodies); and its id.

local COMMIT = 'c' -- the names of the last commits, newest first
local KEPT = 4
local FIRST = 4
local STRIDE = 6
local on_one_server = #KEYS % STRIDE == 2
local replica, pending = KEYS[#KEYS - 1], KEYS[#KEYS]
local threads, names, is_changed = {}, {}, false

local function has(joined, name)
    for at = 1, #joined, #name do
        if joined:sub(at, at + #name - 1) == name then
            return true
        end
    end
    return false
end

for number = FIRST, #ARGV do
    local thread = cmsgpack.unpack(ARGV[number])
    local stored = redis.call('HMGET', KEYS[(number - FIRST) * STRIDE + 1], 'e', 'r', COMMIT)
    if #thread > 1 and has(stored[3] or '', ARGV[2]) then
        -- It was made when this was sent before, and the reply was lost. Others may have made theirs since.
        return 1
    end
    is_changed = is_changed or (stored[1] or '') .. ':' .. (stored[2] or '') ~= thread[1]
    threads[#threads + 1] = thread
    names[#threads] = ARGV[2] .. (stored[3] or ''):sub(1, #ARGV[2] * (KEPT - 1))
end
if is_changed or (on_one_server and ARGV[3] ~= '' and is_raised(replica, tonumber(ARGV[3]))) then
    return 0
end

local function each(command, key, items, size)
    for first = 1, #items, size do
        redis.call(command, key, unpack(items, first, math.min(first + size - 1, #items)))
    end
end

local CHUNK = 1000
local function make(base, thread, joined)
    if thread[2] then
        redis.call('UNLINK', KEYS[base + 2], KEYS[base + 3], KEYS[base + 4], KEYS[base + 5])
    end
    -- First, because a server whose memory is full refuses additions until the script has removed something.
    each('ZREM', KEYS[base + 3], thread[8], CHUNK)
    each('HSET', KEYS[base + 1], thread[3], CHUNK)
    each('HDEL', KEYS[base + 1], thread[4], CHUNK)
    redis.call('HSET', KEYS[base + 1], COMMIT, joined)
    redis.call('HDEL', KEYS[base + 1], HELD)
    each('HSET', KEYS[base + 2], thread[5], CHUNK)
    each('HDEL', KEYS[base + 2], thread[6], CHUNK)
    for _, member in ipairs(thread[7]) do
        redis.call('ZADD', KEYS[base + 3], 0, member)
    end
    each('HSET', KEYS[base + 4], thread[9], CHUNK)
    each('HDEL', KEYS[base + 4], thread[10], CHUNK)
    each('HSET', KEYS[base + 5], thread[11], CHUNK)
    each('HDEL', KEYS[base + 5], thread[12], CHUNK)

    local outbox, removed, entries, id = KEYS[base + 6], thread[13], thread[14], thread[15]
    if removed then
        remove_up_to(outbox, removed)
    end
    for at = 1, #entries, 2 do
        enter(outbox, entries[at], entries[at + 1])
    end
    if on_one_server and (removed or #entries > 0) then
        keep_pending(pending, outbox, id)
    end
    settle(base, tonumber(ARGV[1]), outbox)
end

for number, thread in ipairs(threads) do
    if #thread > 1 then
        make((number - 1) * STRIDE, thread, names[number])
    end
end
return 1
