-- Find entries of a place. ARGV: the thread's epoch, the token of a place that begins, for how many milliseconds it
-- stays, how many bytes may come, and the keys. Returns: the token, '' if nothing may be added, then keys and entries.
-- Entries from before the thread lost rows are removed.

local epoch, most = tonumber(ARGV[1]), tonumber(ARGV[4])
local known = redis.call('HMGET', KEYS[1], 'e', 't')
local at_epoch = tonumber(known[1] or '') or -1
if at_epoch < epoch then
    redis.call('UNLINK', KEYS[1])
    redis.call('HSET', KEYS[1], 'e', ARGV[1], 't', ARGV[2])
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
    return { ARGV[2] }
end
local reply = { at_epoch == epoch and known[2] or '' }
for at = 5, #ARGV do
    local entry = redis.call('HGET', KEYS[1], ARGV[at])
    if entry then
        most = most - #entry
        if most < 0 then
            break
        end
        reply[#reply + 1] = ARGV[at]
        reply[#reply + 1] = entry
    end
end
return reply
