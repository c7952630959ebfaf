-- Removes the marks of threads that were deleted before p_before, a thousand at most, with their rows for replication.
-- A mark stays while a lease of its thread lives, and until another database has learned of the deletion. A mark that
-- another transaction has locked is left to the next call.
CREATE OR REPLACE FUNCTION tm.forget_1(p_before bigint) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    v_clock bigint := extract(epoch FROM clock_timestamp()) * 1000000;
    v_thread text;
BEGIN
    FOR v_thread IN
        SELECT t.thread_id
        FROM tm.thread AS t
        LEFT JOIN tm.outbox AS o ON o.thread_id = t.thread_id
        WHERE NOT t.live AND t.epoch < p_before AND coalesce(t.lease_ends <= v_clock, true) AND o.thread_id IS NULL
        LIMIT 1000
    LOOP
        PERFORM FROM tm.thread AS t
        WHERE t.thread_id = v_thread AND NOT t.live AND t.epoch < p_before
            AND coalesce(t.lease_ends <= v_clock, true)
        FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        PERFORM FROM tm.outbox AS o WHERE o.thread_id = v_thread LIMIT 1;
        CONTINUE WHEN FOUND;
        DELETE FROM tm.thread AS t WHERE t.thread_id = v_thread;
        DELETE FROM tm.position AS p WHERE p.thread_id = v_thread;
        DELETE FROM tm.copied AS c WHERE c.thread_id = v_thread;
    END LOOP;
END
$body$
