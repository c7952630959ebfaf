-- Records an entry of a thread in the outbox, unless the database has a greater term. Returns its position, NULL then.
CREATE OR REPLACE FUNCTION tm.record_1(p_thread text, p_entry bytea, p_term bigint)
RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
    v_clock bigint := extract(epoch FROM clock_timestamp()) * 1000000;
    v_entered bigint;
BEGIN
    IF tm.is_outdated_1(p_term) THEN
        RETURN NULL;
    END IF;
    -- A thread of which something is to be remembered has a row, by which it is forgotten in time.
    INSERT INTO tm.thread (thread_id, epoch, live, created_at, token)
    VALUES (p_thread, v_clock, false, v_clock, 0)
    ON CONFLICT DO NOTHING;
    SELECT e.entered INTO v_entered FROM tm.enter_1(p_thread, p_entry) AS e;
    RETURN v_entered;
END
$body$
