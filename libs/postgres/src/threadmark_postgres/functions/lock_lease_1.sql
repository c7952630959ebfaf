-- Locks a thread like lock_1, and returns its lease. A thread without a row gets one for it, which is not live.
CREATE OR REPLACE FUNCTION tm.lock_lease_1(
    p_thread text, OUT token bigint, OUT lease_left bigint, OUT holder text, OUT began text
) LANGUAGE plpgsql AS $body$
DECLARE
    v_clock bigint;
    v_ends bigint;
BEGIN
    -- A second round finds the row, unless the removal of old marks was quicker. After so many rounds it is hidden.
    FOR i IN 1 .. 16 LOOP
        SELECT l.token, l.lease_ends, coalesce(l.holder, ''), l.began
        INTO token, v_ends, holder, began
        FROM tm.lock_1(p_thread) AS l;
        v_clock := extract(epoch FROM clock_timestamp()) * 1000000;
        EXIT WHEN token IS NOT NULL;
        INSERT INTO tm.thread (thread_id, epoch, live, created_at, token)
        VALUES (p_thread, v_clock, false, v_clock, 0)
        ON CONFLICT DO NOTHING;
    END LOOP;
    IF token IS NULL THEN
        RAISE EXCEPTION 'thread % has a row that this role cannot see: the tables of Threadmark are not for row-level '
            'security, use for_owner', p_thread;
    END IF;
    lease_left := greatest(v_ends - v_clock, 0);
END
$body$
