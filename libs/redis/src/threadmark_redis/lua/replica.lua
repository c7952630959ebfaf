-- Write the record of the pair, unless the term that is there is greater. KEYS: the term. ARGV: the term, and the
-- body. Returns the record afterwards.

if not is_raised(KEYS[1], tonumber(ARGV[1])) then
    redis.call('HSET', KEYS[1], 't', ARGV[1], 'b', ARGV[2])
end
return redis.call('HMGET', KEYS[1], 't', 'b')
