-- Deletes a thread: everything of it goes, and its row becomes the mark of a deleted one, with the greatest id that the
-- thread may have had. Returns the epoch that the live thread had, NULL where there was none. An epoch is also returned
-- if the thread was deleted at p_now: this is another attempt then, after the reply of the first one was lost. The
-- outcome is "begin", and nothing is done, as in add_1: this waits for others, and so must see what they did.
--
-- p_greatest is the greatest id that is made at this time: a run that still goes on cannot have made a greater one. Ids
-- that tell no time are only compared with those that the thread had. Users choose the ids of messages, and no run
-- continues one.
--
-- The marks of threads that were deleted before p_forgotten go as well; with NULL none is looked for.
CREATE OR REPLACE FUNCTION tm.drop_1(
    p_thread text, p_now bigint, p_greatest text, p_forgotten bigint, OUT epoch bigint, OUT outcome text
) LANGUAGE plpgsql AS $body$
DECLARE
    v_live boolean;
    v_head record;
    v_greatest text COLLATE "C";
    v_is_time boolean;
    v_clock bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        outcome := 'begin';
        RETURN;
    END IF;
    -- Mostly nothing of the thread is locked, neither its row nor the gate in front of it (decision 11).
    SELECT t.epoch, t.live
    INTO epoch, v_live
    FROM tm.thread AS t
    WHERE t.thread_id = p_thread AND tm.gate_1()
        AND pg_try_advisory_xact_lock(hashtextextended(p_thread, t.tableoid::bigint))
        AND pg_try_advisory_xact_lock_shared(hashtextextended(p_thread, t.tableoid::bigint))
    FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        SELECT l.epoch, l.live INTO epoch, v_live FROM tm.lock_1(p_thread) AS l;
    END IF;
    IF epoch IS NULL OR epoch = p_now AND NOT v_live THEN
        RETURN;
    END IF;
    -- No checkpoint's id is greater than the rank of its namespace's head, and none that was made by now is greater than
    -- p_greatest. So where those ranks tell the time, the ids need not be read. Only writes of a checkpoint that was
    -- never stored, and whose id tells no time, could have a greater one.
    FOR v_head IN DELETE FROM tm.head AS h WHERE h.thread_id = p_thread RETURNING h.ns, h.rank LOOP
        IF v_head.ns <> '__messages__' THEN
            v_greatest := greatest(v_greatest, v_head.rank);
        END IF;
    END LOOP;
    v_is_time := v_greatest LIKE '________-____-6___-____-____________'
        AND translate(v_greatest, '0123456789abcdef', '') = '----';
    IF v_is_time IS NOT TRUE THEN
        SELECT greatest(
            t.deleted_up_to,
            t.removed_up_to,
            (
                SELECT max(coalesce(c.id, c.rank))
                FROM tm.checkpoint AS c
                WHERE c.thread_id = p_thread AND c.ns <> '__messages__'
            ),
            (SELECT max(w.checkpoint_id) FROM tm.write AS w WHERE w.thread_id = p_thread)
        )
        INTO v_greatest
        FROM tm.thread AS t
        WHERE t.thread_id = p_thread;
        v_is_time := coalesce(v_greatest, '') = '' OR v_greatest LIKE '________-____-6___-____-____________'
            AND translate(v_greatest, '0123456789abcdef', '') = '----';
    END IF;
    IF v_is_time THEN
        v_greatest := greatest(v_greatest, p_greatest COLLATE "C");
    END IF;
    DELETE FROM tm.checkpoint AS c WHERE c.thread_id = p_thread;
    DELETE FROM tm.write AS w WHERE w.thread_id = p_thread;
    DELETE FROM tm.segment AS s WHERE s.thread_id = p_thread;
    -- Where there ever was a lease it gets the next token: no earlier one is accepted in a thread of the same name. As
    -- in set_lease_1 the clock is the server's: that of a caller may be wrong by days, and tokens must grow. It is read
    -- before the change, in which Citus allows no volatile function.
    v_clock := extract(epoch FROM clock_timestamp()) * 1000000;
    UPDATE tm.thread AS t
    SET live = false,
        owner = NULL,
        title = NULL,
        folded_title = NULL,
        metadata = NULL,
        expires_at = NULL,
        checksum = NULL,
        token = CASE WHEN t.token > 0 THEN greatest(t.token + 1, v_clock) ELSE 0 END,
        lease_ends = NULL,
        lease_ttl = NULL,
        holder = NULL,
        began = NULL,
        -- Only the call that deletes a live thread leaves its p_now: by it another attempt of the same call is known.
        -- Deleting again keeps a mark for another day: its epoch is then a microsecond before p_now.
        epoch = greatest(t.epoch + 1, CASE WHEN t.live THEN p_now ELSE p_now - 1 END),
        deleted_up_to = greatest(t.deleted_up_to, t.removed_up_to, v_greatest),
        removed_up_to = NULL
    WHERE t.thread_id = p_thread;
    IF p_forgotten IS NOT NULL THEN
        PERFORM tm.forget_1(p_forgotten);
    END IF;
    IF NOT v_live THEN
        epoch := NULL;
    END IF;
    RETURN;
END
$body$
