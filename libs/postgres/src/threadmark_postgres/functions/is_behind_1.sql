-- Whether a change of another database does not follow what a thread has from there, or the thread has changes of its
-- own for that one. The thread is locked by then.
CREATE OR REPLACE FUNCTION tm.is_behind_1(p_thread text, p_previous bigint, p_epoch bigint)
RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
    v_follows boolean;
BEGIN
    SELECT f.position = p_previous AND f.epoch IN (0, p_epoch)
    INTO v_follows
    FROM tm.copied AS f
    WHERE f.thread_id = p_thread;
    IF NOT coalesce(v_follows, p_previous = -1) THEN
        RETURN true;
    END IF;
    PERFORM FROM tm.outbox AS o WHERE o.thread_id = p_thread LIMIT 1;
    RETURN FOUND;
END
$body$
