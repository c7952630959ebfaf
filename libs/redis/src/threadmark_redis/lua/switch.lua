-- Name the format in which is written from now on. KEYS: the format. ARGV: its number, the least format that a process
-- must know to read, the same to write, and in how many microseconds every process will have read this.

local written = tonumber(redis.call('HGET', KEYS[1], 'w')) or 1
if tonumber(ARGV[3]) > written then
    redis.call('HSET', KEYS[1], 's', clock() + tonumber(ARGV[4]))
end
redis.call('HSET', KEYS[1], 'n', ARGV[1], 'r', ARGV[2], 'w', ARGV[3])
return 1
