-- In a cluster, before and after a change: look at the term, and name the threads that will have, or have, something
-- in their outbox. KEYS: the term, the index of pending threads. ARGV: the term that the change is made under, '' for
-- none, and ids. Returns 0, having named none, if the term is greater.

if ARGV[1] ~= '' and is_raised(KEYS[1], tonumber(ARGV[1])) then
    return 0
end
local moment = clock()
for number = 2, #ARGV do
    redis.call('ZADD', KEYS[2], 'NX', moment, ARGV[number])
end
return 1
