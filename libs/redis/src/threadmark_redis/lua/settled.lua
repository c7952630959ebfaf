-- Remove the entries of a thread up to a position. KEYS: its head and its outbox, and if it is in the same database
-- of one server, the index of pending threads. ARGV: the position, and the thread's id. Returns the first position that
-- is left, or nil, and the clock.

local head, outbox, pending = KEYS[1], KEYS[2], KEYS[3]
if remove_up_to(outbox, ARGV[1]) > 0 then
    local stored = redis.call('HMGET', head, 'v', 'z')
    if stored[1] ~= '1' then
        bury(head, stored[2], outbox)
    end
end
if pending then
    keep_pending(pending, outbox, ARGV[2])
end
return { first_position(outbox) or false, clock() }
