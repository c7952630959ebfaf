-- Adds the rows of most changes: one checkpoint whose rank is its id, or the writes of one task, which are a pack and
-- its record; with their segments. The checkpoint p_continues is there. If the outcome is "begin", nothing was added,
-- and add_1 says why.
CREATE OR REPLACE FUNCTION tm.add_one_1(
    p_thread text, p_epoch bigint, p_token bigint, p_only_owner boolean, p_owner text, p_continues text, p_ns text,
    p_rank text, p_parent text, p_created_at bigint, p_metadata text, p_header bytea, p_run bigint, p_needs bytea[],
    p_task_id bytea, p_task_path text, p_value bytea, p_record_idx bigint, p_record bytea, p_record_checksum bytea,
    p_checksum bytea, p_keys bytea[], p_data bytea[], p_term bigint, p_entry bytea
) RETURNS tm.added_1 LANGUAGE plpgsql AS $body$
DECLARE
    added tm.added_1;
    v_owner text;
    v_key bytea;
    v_data bytea;
    v_added bigint;
BEGIN
    IF p_term IS NOT NULL AND tm.is_outdated_1(p_term) THEN
        added.outcome := 'term';
        RETURN added;
    END IF;
    -- The gate stands in front of the row (decision 11). A row that is held is passed over.
    SELECT t.epoch, t.expires_at, t.owner, tm.renewal_1(p_token, t.token, t.lease_ends, t.lease_ttl),
        tm.refusal_1(
            p_epoch, p_token, p_only_owner, p_owner, p_continues,
            t.epoch, t.token, t.owner, t.lease_ends, t.deleted_up_to
        )
    INTO added.epoch, added.expires_at, v_owner, added.renewal, added.outcome
    FROM tm.thread AS t
    WHERE t.thread_id = p_thread AND CASE
        WHEN t.live
        THEN pg_try_advisory_xact_lock_shared(hashtextextended(t.thread_id, t.tableoid::bigint))
    END
    FOR SHARE SKIP LOCKED;
    IF added.outcome IS NOT NULL OR added.epoch IS NULL THEN
        added.outcome := 'begin';
        RETURN added;
    END IF;
    IF p_rank IS NOT NULL THEN
        -- A rank is never smaller than its id. So where the head's is smaller, no checkpoint has this id. The head comes
        -- first in all that add, so that two callers never wait for each other.
        INSERT INTO tm.head AS h (thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)
        VALUES (
            p_thread, p_ns, p_rank, p_needs, 1, p_created_at, p_created_at / 60000000,
            CASE WHEN p_ns = '' THEN v_owner END
        )
        ON CONFLICT (thread_id, ns) DO UPDATE
        SET rank = excluded.rank,
            needs = excluded.needs,
            checkpoints = h.checkpoints + 1,
            updated_at = greatest(CASE WHEN h.checkpoints > 0 THEN h.updated_at END, excluded.updated_at),
            minute = greatest(CASE WHEN h.checkpoints > 0 THEN h.minute END, excluded.minute)
        WHERE h.rank < excluded.rank;
        IF NOT FOUND THEN
            added.outcome := 'begin';
            RETURN added;
        END IF;
        INSERT INTO tm.checkpoint (thread_id, ns, rank, parent, created_at, metadata, header, checksum, run)
        VALUES (p_thread, p_ns, p_rank, p_parent, p_created_at, p_metadata, p_header, p_checksum, p_run);
    END IF;
    IF p_keys IS NOT NULL THEN
        FOR i IN 1 .. cardinality(p_keys) LOOP
            v_key := p_keys[i];
            v_data := p_data[i];
            INSERT INTO tm.segment (thread_id, key, data) VALUES (p_thread, v_key, v_data) ON CONFLICT DO NOTHING;
        END LOOP;
    END IF;
    IF p_rank IS NULL THEN
        INSERT INTO tm.write (thread_id, ns, checkpoint_id, task_id, idx, task_path, channel, value, checksum)
        VALUES
            (p_thread, p_ns, p_continues, p_task_id, 536870912, p_task_path, '', p_value, p_checksum),
            (p_thread, p_ns, p_continues, p_task_id, p_record_idx, '', '', p_record, p_record_checksum)
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_added = ROW_COUNT;
        IF v_added < 2 THEN
            -- The pack that is there may be this one. The checks of sealed rows are all empty, so its value decides.
            PERFORM FROM tm.write AS w
            WHERE v_added = 1 AND w.thread_id = p_thread AND w.ns = p_ns AND w.checkpoint_id = p_continues
                AND w.task_id = p_task_id AND w.idx = 536870912 AND w.checksum = p_checksum AND w.value = p_value;
            added.pack_left_out := NOT FOUND;
        END IF;
    END IF;
    IF p_entry IS NOT NULL THEN
        SELECT e.* INTO added.entered, added.entered_after FROM tm.enter_1(p_thread, p_entry) AS e;
    END IF;
    RETURN added;
END
$body$
