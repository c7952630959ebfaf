-- Remove a place with its token and all its entries.

return redis.call('UNLINK', KEYS[1])
