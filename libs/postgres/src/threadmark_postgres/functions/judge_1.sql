-- Judges a change to a thread, whose row it shares from then on: who adds to a thread shares its row, what removes or
-- takes a lease has it alone. The caller's statements see afterwards what was committed before the lock was given.
--
-- The outcome is NULL where the change may be made, "begin" where the thread is not there, is deleted, or is locked
-- by a transaction for which this does not wait (without p_waits), and otherwise says why it is refused.
CREATE OR REPLACE FUNCTION tm.judge_1(
    p_thread text, p_epoch bigint, p_token bigint, p_only_owner boolean, p_owner text, p_continues text,
    p_waits boolean,
    OUT epoch bigint, OUT outcome text, OUT renewal bigint, OUT expires_at bigint, OUT owner text
) LANGUAGE plpgsql AS $body$
BEGIN
    IF p_waits THEN
        SELECT t.epoch, t.expires_at, t.owner, tm.renewal_1(p_token, t.token, t.lease_ends, t.lease_ttl),
            tm.refusal_1(
                p_epoch, p_token, p_only_owner, p_owner, p_continues,
                t.epoch, t.token, t.owner, t.lease_ends, t.deleted_up_to
            )
        INTO epoch, expires_at, owner, renewal, outcome
        FROM tm.thread AS t
        WHERE t.thread_id = p_thread AND t.live
        FOR SHARE;
    ELSE
        SELECT t.epoch, t.expires_at, t.owner, tm.renewal_1(p_token, t.token, t.lease_ends, t.lease_ttl),
            tm.refusal_1(
                p_epoch, p_token, p_only_owner, p_owner, p_continues,
                t.epoch, t.token, t.owner, t.lease_ends, t.deleted_up_to
            )
        INTO epoch, expires_at, owner, renewal, outcome
        FROM tm.thread AS t
        WHERE t.thread_id = p_thread AND CASE
            WHEN t.live
            THEN pg_try_advisory_xact_lock_shared(hashtextextended(t.thread_id, t.tableoid::bigint))
        END
        FOR SHARE SKIP LOCKED;
    END IF;
    IF NOT FOUND THEN
        outcome := 'begin';
    ELSIF outcome = 'too_late' THEN
        PERFORM FROM tm.checkpoint AS c
        WHERE c.thread_id = p_thread AND (c.rank = p_continues OR c.id = p_continues)
        LIMIT 1;
        IF FOUND THEN
            outcome := NULL;
        END IF;
    END IF;
END
$body$
