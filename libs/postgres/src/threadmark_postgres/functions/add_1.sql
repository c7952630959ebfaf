-- Adds the rows of one change to a thread, all or nothing: checkpoints, pending writes and segments, an array for each
-- column. The outcome is NULL then, and otherwise says why nothing was added:
--
-- begin     call again with p_waits, which also begins a thread that is not there, or deleted. Without p_waits: it is one
--           of these, or locked, or the checkpoint may be there; or this transaction is not READ COMMITTED, and so would
--           fail after each wait for others
-- exists    one of its checkpoints is there already
-- others    are `Refusal`, "epoch" and "too_late" of `threadmark.store.contract`, where the parameters stand, too
--
-- With p_replaces those that are there go first, and where one had another header the epoch ends.
CREATE OR REPLACE FUNCTION tm.add_1(
    p_thread text, p_epoch bigint, p_token bigint, p_only_owner boolean, p_owner text, p_continues text,
    p_now bigint, p_expires_at bigint, p_check bytea, p_expects text, p_sorts_last boolean, p_touches boolean,
    p_replaces boolean, p_waits boolean,
    p_ns text[], p_id text[], p_rank text[], p_parent text[], p_created_at bigint[], p_metadata text[],
    p_header bytea[], p_checksum bytea[], p_run bigint[], p_needs bytea[],
    p_w_ns text[], p_w_checkpoint_id text[], p_w_task_id bytea[], p_w_idx bigint[], p_w_task_path text[],
    p_w_channel text[], p_w_value bytea[], p_w_checksum bytea[],
    p_keys bytea[], p_data bytea[], p_term bigint, p_entry bytea,
    p_previous bigint, p_position bigint, p_copied_epoch bigint
) RETURNS tm.added_1 LANGUAGE plpgsql AS $body$
DECLARE
    added tm.added_1;
    v_is_alone boolean := p_replaces OR p_sorts_last OR p_expects IS NOT NULL OR p_previous IS NOT NULL;
    -- Of one checkpoint whose rank is its id, mostly the head tells whether it is there.
    v_looks boolean := v_is_alone OR p_waits OR p_touches OR p_id[1] IS NOT NULL OR cardinality(p_ns) > 1;
    v_there boolean := false;
    v_conflicts boolean := false;
    v_owner text;
    v_newest text COLLATE "C";
    v_row record;
    v_key bytea;
    v_bytes bytea;
BEGIN
    added.outcome := CASE
        WHEN p_term IS NOT NULL AND tm.is_outdated_1(p_term) THEN 'term'
        WHEN v_is_alone AND NOT p_waits AND current_setting('transaction_isolation') <> 'read committed' THEN 'begin'
    END;
    IF added.outcome IS NOT NULL THEN
        RETURN added;
    END IF;
    IF v_is_alone THEN
        PERFORM FROM tm.lock_1(p_thread);
    ELSIF p_waits THEN
        -- This waits for a removal, and keeps the next one away. It shares the row so weakly that of those who waited
        -- one can revive the thread.
        PERFORM FROM tm.thread AS t
        WHERE t.thread_id = p_thread
            AND pg_advisory_xact_lock_shared(hashtextextended(t.thread_id, t.tableoid::bigint))::text = ''
        FOR KEY SHARE;
    END IF;
    IF p_previous IS NOT NULL AND tm.is_behind_1(p_thread, p_previous, p_copied_epoch) THEN
        added.outcome := 'behind';
        RETURN added;
    END IF;
    IF p_waits OR coalesce(p_continues, '') = '' THEN
        SELECT b.epoch, b.outcome
        INTO added.epoch, added.outcome
        FROM tm.begin_1(
            p_thread, p_epoch, p_token, p_owner, p_continues, p_now, p_expires_at, p_check, p_expects, p_waits
        ) AS b;
        IF added.outcome IS NOT NULL THEN
            RETURN added;
        END IF;
    END IF;
    -- A call that adds shares the thread's row; one that removes or takes a lease has it alone. The statements after
    -- the lock see all changes that were committed before it.
    IF p_waits THEN
        PERFORM FROM tm.thread AS t WHERE t.thread_id = p_thread AND t.live FOR SHARE;
    END IF;
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
    IF NOT FOUND THEN
        added.outcome := 'begin';
    ELSIF added.outcome = 'too_late' THEN
        PERFORM FROM tm.checkpoint AS c
        WHERE c.thread_id = p_thread AND (c.rank = p_continues OR c.id = p_continues)
        LIMIT 1;
        IF FOUND THEN
            added.outcome := NULL;
        END IF;
    END IF;
    IF added.outcome IS NULL AND v_looks THEN
        FOR i IN 1 .. cardinality(p_ns) LOOP
            SELECT p_ns[i] AS ns, coalesce(p_id[i], p_rank[i]) AS id INTO v_row;
            SELECT h.rank INTO v_newest FROM tm.head AS h WHERE h.thread_id = p_thread AND h.ns = v_row.ns FOR UPDATE;
            v_conflicts := v_conflicts OR p_expects <> coalesce(v_newest, '') OR p_sorts_last AND p_rank[1] <= v_newest;
            v_there := v_there OR tm.has_checkpoint_1(p_thread, v_row.ns, v_row.id);
        END LOOP;
        added.outcome := CASE
            WHEN v_there AND NOT p_replaces THEN 'exists'
            WHEN v_conflicts AND NOT v_there THEN 'conflict'
        END;
    END IF;
    IF added.outcome IS NOT NULL THEN
        RETURN added;
    END IF;

    -- Rows are added in one order, heads first, so that two callers that add never wait for each other.
    IF p_touches THEN
        UPDATE tm.head AS h
        SET updated_at = greatest(h.updated_at, p_now), minute = greatest(h.minute, p_now / 60000000)
        WHERE h.thread_id = p_thread AND h.ns = '';
    END IF;
    FOR i IN 1 .. cardinality(p_ns) LOOP
        SELECT p_ns[i] AS ns, p_id[i] AS id, p_rank[i] AS rank, p_parent[i] AS parent, p_created_at[i] AS created_at,
            p_metadata[i] AS metadata, p_header[i] AS header, p_checksum[i] AS checksum, p_run[i] AS run
        INTO v_row;
        IF v_there AND tm.unset_1(p_thread, v_row.ns, coalesce(v_row.id, v_row.rank), v_row.header) THEN
            added.replaced := true;
        END IF;
        -- A rank is never smaller than its id. So where the head's is smaller, no checkpoint has this id; elsewhere the
        -- next call looks.
        INSERT INTO tm.head AS h (thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)
        VALUES (
            p_thread, v_row.ns, v_row.rank, coalesce(p_needs, '{}'), 1, v_row.created_at, v_row.created_at / 60000000,
            CASE WHEN v_row.ns = '' THEN v_owner END
        )
        ON CONFLICT (thread_id, ns) DO UPDATE
        SET rank = greatest(h.rank, excluded.rank),
            needs = CASE WHEN excluded.rank > h.rank THEN excluded.needs ELSE h.needs END,
            checkpoints = h.checkpoints + 1,
            updated_at = greatest(CASE WHEN h.checkpoints > 0 THEN h.updated_at END, excluded.updated_at),
            minute = greatest(CASE WHEN h.checkpoints > 0 THEN h.minute END, excluded.minute)
        WHERE v_looks OR h.rank < excluded.rank;
        IF NOT FOUND THEN
            added.outcome := 'begin';
            RETURN added;
        END IF;
        INSERT INTO tm.checkpoint (thread_id, ns, id, rank, parent, created_at, metadata, header, checksum, run)
        VALUES (
            p_thread, v_row.ns, v_row.id, v_row.rank, v_row.parent, v_row.created_at, v_row.metadata, v_row.header,
            v_row.checksum, v_row.run
        );
    END LOOP;
    IF added.replaced THEN
        UPDATE tm.thread AS t SET epoch = t.epoch + 1 WHERE t.thread_id = p_thread RETURNING t.epoch INTO added.epoch;
    END IF;
    FOR i IN 1 .. coalesce(cardinality(p_keys), 0) LOOP
        v_key := p_keys[i];
        v_bytes := p_data[i];
        INSERT INTO tm.segment (thread_id, key, data) VALUES (p_thread, v_key, v_bytes) ON CONFLICT DO NOTHING;
    END LOOP;
    FOR i IN 1 .. cardinality(p_w_ns) LOOP
        SELECT p_w_ns[i] AS ns, p_w_checkpoint_id[i] AS checkpoint_id, p_w_task_id[i] AS task_id, p_w_idx[i] AS idx,
            p_w_task_path[i] AS task_path, p_w_channel[i] AS channel, p_w_value[i] AS value, p_w_checksum[i] AS checksum
        INTO v_row;
        -- A write to a special channel replaces the task's earlier one.
        IF v_row.idx < 0 THEN
            SELECT w.value
            INTO v_bytes
            FROM tm.write AS w
            WHERE w.thread_id = p_thread AND w.ns = v_row.ns AND w.checkpoint_id = v_row.checkpoint_id
                AND w.task_id = v_row.task_id AND w.idx = v_row.idx
            FOR UPDATE;
            IF FOUND THEN
                added.old_idx := added.old_idx || v_row.idx;
                added.old_values := added.old_values || v_bytes;
            END IF;
        END IF;
        INSERT INTO tm.write (thread_id, ns, checkpoint_id, task_id, idx, task_path, channel, value, checksum)
        VALUES (
            p_thread, v_row.ns, v_row.checkpoint_id, v_row.task_id, v_row.idx, v_row.task_path, v_row.channel,
            v_row.value, v_row.checksum
        )
        ON CONFLICT (thread_id, ns, checkpoint_id, task_id, idx) DO UPDATE
        SET task_path = excluded.task_path,
            channel = excluded.channel,
            value = excluded.value,
            checksum = excluded.checksum
        WHERE excluded.idx < 0;
        IF NOT FOUND AND v_row.idx = 536870912 THEN
            added.pack_left_out := true;
        END IF;
    END LOOP;
    IF p_entry IS NOT NULL THEN
        SELECT e.* INTO added.entered, added.entered_after FROM tm.enter_1(p_thread, p_entry) AS e;
    END IF;
    IF p_previous IS NOT NULL THEN
        INSERT INTO tm.copied AS f (thread_id, position, epoch)
        VALUES (p_thread, p_position, p_copied_epoch)
        ON CONFLICT (thread_id) DO UPDATE
        SET position = excluded.position, epoch = excluded.epoch;
    END IF;
    RETURN added;
END
$body$
