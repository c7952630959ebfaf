-- Add entries to a place, unless it was forgotten since. ARGV: its token, then keys and entries.

if redis.call('HGET', KEYS[1], 't') ~= ARGV[1] then
    return 0
end
for at = 2, #ARGV, 2 do
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
end
return 1
