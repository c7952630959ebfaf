-- Deletes a thread: everything of it goes, and its row becomes the mark of a deleted one, with the greatest id that the
-- thread may have had. Returns the epoch that the live thread had, NULL where there was none.
--
-- p_greatest is the greatest id that is made at this time: a run that still goes on cannot have made a greater one. Ids
-- that tell no time are only compared with those that the thread had. Users choose the ids of messages, and no run
-- continues one.
--
-- The marks of threads that were deleted before p_forgotten go as well; with NULL none is looked for.
CREATE OR REPLACE FUNCTION tm.drop_1(p_thread text, p_now bigint, p_greatest text, p_forgotten bigint)
RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
    v_clock bigint;
    v_epoch bigint;
    v_live boolean;
BEGIN
    SELECT l.epoch, l.live INTO v_epoch, v_live FROM tm.lock_1(p_thread) AS l;
    IF v_epoch IS NULL THEN
        RETURN NULL;
    END IF;
    -- Where there ever was a lease it gets the next token: no earlier one is accepted in a thread of the same name.
    v_clock := extract(epoch FROM clock_timestamp()) * 1000000;
    WITH
    gone AS (
        DELETE FROM tm.checkpoint AS c WHERE c.thread_id = p_thread
        RETURNING CASE WHEN c.ns <> '__messages__' THEN coalesce(c.id, c.rank) END AS id
    ),
    written AS (
        DELETE FROM tm.write AS w WHERE w.thread_id = p_thread RETURNING w.checkpoint_id
    ),
    segments AS (
        DELETE FROM tm.segment AS s WHERE s.thread_id = p_thread
    ),
    heads AS (
        DELETE FROM tm.head AS h WHERE h.thread_id = p_thread
    )
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
        epoch = greatest(t.epoch + 1, p_now),
        deleted_up_to = CASE
            WHEN coalesce(had.greatest, '') = ''
                OR had.greatest ~ '^[0-9a-f]{8}-[0-9a-f]{4}-6[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$'
            THEN greatest(had.greatest, p_greatest COLLATE "C")
            ELSE had.greatest
        END,
        removed_up_to = NULL
    FROM (
        SELECT greatest(
            b.deleted_up_to,
            b.removed_up_to,
            (SELECT max(g.id) FROM gone AS g),
            (SELECT max(w.checkpoint_id) FROM written AS w)
        ) AS greatest
        FROM tm.thread AS b
        WHERE b.thread_id = p_thread
    ) AS had
    WHERE t.thread_id = p_thread;
    IF p_forgotten IS NOT NULL THEN
        PERFORM tm.forget_1(p_forgotten);
    END IF;
    RETURN CASE WHEN v_live THEN v_epoch END;
END
$body$
