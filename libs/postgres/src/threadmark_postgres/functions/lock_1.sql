-- Locks a thread, also one that is deleted, until the transaction ends. Returns its epoch, whether it is live,
-- and its lease; NULLs where it has no row.
CREATE OR REPLACE FUNCTION tm.lock_1(
    p_thread text,
    OUT epoch bigint, OUT live boolean, OUT token bigint, OUT lease_ends bigint, OUT holder text, OUT began text
) LANGUAGE plpgsql AS $body$
BEGIN
    -- The gate in front of the row first (decision 11), also shared: what this transaction adds later asks for it without
    -- waiting. After the waits, FOR UPDATE reads the row as it is by then.
    SELECT t.epoch, t.live, t.token, t.lease_ends, t.holder, t.began
    INTO epoch, live, token, lease_ends, holder, began
    FROM tm.thread AS t
    WHERE t.thread_id = p_thread AND tm.gate_1()
        AND pg_advisory_xact_lock(hashtextextended(t.thread_id, t.tableoid::bigint))::text = ''
        AND pg_advisory_xact_lock_shared(hashtextextended(t.thread_id, t.tableoid::bigint))::text = ''
    FOR UPDATE;
END
$body$
