-- Records an entry of a thread in the outbox. Returns its position, and the thread's last one before.
CREATE OR REPLACE FUNCTION tm.enter_1(p_thread text, p_entry bytea, OUT entered bigint, OUT entered_after bigint)
LANGUAGE plpgsql AS $body$
DECLARE
    v_clock bigint := extract(epoch FROM clock_timestamp()) * 1000000;
BEGIN
    -- Positions of one thread follow each other in the order of commits: a transaction that takes one holds this row
    -- until then.
    INSERT INTO tm.position AS p (thread_id, position, previous)
    VALUES (p_thread, v_clock, 0)
    ON CONFLICT (thread_id) DO UPDATE
    SET position = greatest(p.position + 1, v_clock), previous = p.position
    RETURNING p.position, p.previous INTO entered, entered_after;
    INSERT INTO tm.outbox (thread_id, position, body) VALUES (p_thread, entered, p_entry);
END
$body$
