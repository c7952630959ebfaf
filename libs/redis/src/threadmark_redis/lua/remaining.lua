-- In how many microseconds every process will have read the format. KEYS: the format.

return math.max(0, (tonumber(redis.call('HGET', KEYS[1], 's')) or 0) - clock())
