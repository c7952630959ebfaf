-- Adds the rows of one change to a thread, all or nothing: checkpoints, pending writes and segments, an array for each
-- column. The outcome is NULL then, and otherwise says why nothing was added:
--
-- begin     the thread is not there or deleted: call again with p_begins. Without p_waits: or it is locked, or the newest
--           checkpoint matters, and the transaction is not READ COMMITTED, and so would fail after each wait for others
-- exists    one of its checkpoints is there already
-- others    are `Refusal`, "epoch" and "too_late" of `threadmark.store.contract`, where the parameters stand, too
--
-- p_looks asks first whether one of the checkpoints is there. It may be left out for one whose rank is its id: mostly
-- its head tells. With p_replaces those that are there go first, and where one had another header the epoch ends.
CREATE OR REPLACE FUNCTION tm.add_1(
    p_thread text, p_epoch bigint, p_now bigint, p_continues text, p_token bigint,
    p_owner text, p_expires_at bigint, p_check bytea,
    p_begins boolean, p_only_owner boolean, p_expects text, p_sorts_last boolean, p_touches boolean,
    p_looks boolean, p_replaces boolean, p_waits boolean,
    p_keys bytea[] DEFAULT NULL, p_data bytea[] DEFAULT NULL,
    p_ns text[] DEFAULT NULL, p_id text[] DEFAULT NULL, p_rank text[] DEFAULT NULL, p_parent text[] DEFAULT NULL,
    p_created_at bigint[] DEFAULT NULL, p_metadata text[] DEFAULT NULL, p_header bytea[] DEFAULT NULL,
    p_checksum bytea[] DEFAULT NULL, p_run bigint[] DEFAULT NULL, p_needs bytea[] DEFAULT NULL,
    p_w_ns text[] DEFAULT NULL, p_w_checkpoint_id text[] DEFAULT NULL, p_w_task_id bytea[] DEFAULT NULL,
    p_w_idx bigint[] DEFAULT NULL, p_w_task_path text[] DEFAULT NULL, p_w_channel text[] DEFAULT NULL,
    p_w_value bytea[] DEFAULT NULL, p_w_checksum bytea[] DEFAULT NULL,
    p_term bigint DEFAULT NULL, p_entry bytea DEFAULT NULL,
    p_previous bigint DEFAULT NULL, p_position bigint DEFAULT NULL, p_copied_epoch bigint DEFAULT NULL,
    OUT epoch bigint, OUT outcome text, OUT renewal bigint, OUT expires_at bigint,
    OUT entered bigint, OUT entered_after bigint,
    OUT pack_left_out boolean, OUT replaced boolean, OUT old_idx bigint[], OUT old_values bytea[]
) LANGUAGE plpgsql AS $body$
DECLARE
    v_owner text;
    v_newest text;
    v_is_alone boolean := p_replaces OR p_sorts_last OR p_expects IS NOT NULL OR p_previous IS NOT NULL;
    v_ns text;
    v_id text;
    v_rank text;
    v_created_at bigint;
    v_needs bytea[] := '{}';
    v_idx bigint;
    v_checkpoint_id text;
    v_task_id bytea;
    v_text text;
    v_more text;
    v_bytes bytea;
    v_old bytea;
    v_checksum bytea;
    v_number bigint;
BEGIN
    IF p_term IS NOT NULL AND tm.is_outdated_1(p_term) THEN
        epoch := 0;
        outcome := 'term';
        RETURN;
    END IF;
    IF v_is_alone AND NOT p_waits AND current_setting('transaction_isolation') <> 'read committed' THEN
        epoch := 0;
        outcome := 'begin';
        RETURN;
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
        epoch := 0;
        outcome := 'behind';
        RETURN;
    END IF;
    IF p_begins THEN
        -- A deleted thread is revived only by a call that waits, as it needs the gate first.
        PERFORM FROM tm.thread AS t WHERE t.thread_id = p_thread AND (t.live OR NOT p_waits);
        IF NOT FOUND THEN
            outcome := tm.begin_1(
                p_thread, p_epoch, p_now, p_continues, p_token, p_owner, p_expires_at, p_check, p_expects
            );
            IF outcome IS NOT NULL THEN
                SELECT t.epoch INTO epoch FROM tm.thread AS t WHERE t.thread_id = p_thread;
                RETURN;
            END IF;
        END IF;
    END IF;

    SELECT j.epoch, j.outcome, j.renewal, j.expires_at, j.owner
    INTO epoch, outcome, renewal, expires_at, v_owner
    FROM tm.judge_1(p_thread, p_epoch, p_token, p_only_owner, p_owner, p_continues, p_waits) AS j;
    IF outcome IS NOT NULL THEN
        RETURN;
    END IF;
    IF p_looks OR v_is_alone THEN
        FOR i IN 1 .. coalesce(cardinality(p_ns), 0) LOOP
            v_ns := p_ns[i];
            PERFORM FROM tm.head AS h WHERE h.thread_id = p_thread AND h.ns = v_ns FOR UPDATE;
            IF tm.has_checkpoint_1(p_thread, v_ns, coalesce(p_id[i], p_rank[i])) THEN
                outcome := 'exists';
            END IF;
        END LOOP;
        IF outcome IS NULL AND (p_sorts_last OR p_expects IS NOT NULL) THEN
            v_ns := coalesce(p_ns[1], '');
            SELECT h.rank INTO v_newest FROM tm.head AS h WHERE h.thread_id = p_thread AND h.ns = v_ns;
            IF p_expects <> coalesce(v_newest, '') OR p_sorts_last AND p_rank[1] <= v_newest THEN
                outcome := 'conflict';
            END IF;
        END IF;
        IF outcome = 'exists' AND p_replaces THEN
            outcome := NULL;
            FOR i IN 1 .. cardinality(p_ns) LOOP
                IF tm.unset_1(p_thread, p_ns[i], coalesce(p_id[i], p_rank[i]), p_header[i]) THEN
                    replaced := true;
                END IF;
            END LOOP;
            IF replaced THEN
                UPDATE tm.thread AS t
                SET epoch = t.epoch + 1
                WHERE t.thread_id = p_thread
                RETURNING t.epoch INTO epoch;
            END IF;
        END IF;
        IF outcome IS NOT NULL THEN
            RETURN;
        END IF;
    END IF;

    -- Rows are added in one order, heads first, so that two callers that add never wait for each other.
    IF p_touches THEN
        UPDATE tm.head AS h
        SET updated_at = greatest(h.updated_at, p_now), minute = greatest(h.minute, p_now / 60000000)
        WHERE h.thread_id = p_thread AND h.ns = '';
    END IF;
    FOR i IN 1 .. coalesce(cardinality(p_ns), 0) LOOP
        v_ns := p_ns[i];
        v_id := p_id[i];
        v_rank := p_rank[i];
        v_created_at := p_created_at[i];
        IF p_needs IS NOT NULL THEN
            v_needs := p_needs;
        END IF;
        UPDATE tm.head AS h
        SET rank = v_rank,
            needs = v_needs,
            checkpoints = h.checkpoints + 1,
            updated_at = greatest(CASE WHEN h.checkpoints > 0 THEN h.updated_at END, v_created_at),
            minute = greatest(CASE WHEN h.checkpoints > 0 THEN h.minute END, v_created_at / 60000000)
        WHERE h.thread_id = p_thread AND h.ns = v_ns AND h.rank < v_rank;
        IF NOT FOUND THEN
            -- A rank is never smaller than its id. So where the head's is smaller, no checkpoint has this id.
            IF NOT p_looks AND NOT v_is_alone THEN
                PERFORM FROM tm.head AS h WHERE h.thread_id = p_thread AND h.ns = v_ns FOR UPDATE;
                IF tm.has_checkpoint_1(p_thread, v_ns, v_rank) THEN
                    outcome := 'exists';
                    RETURN;
                END IF;
            END IF;
            INSERT INTO tm.head AS h (thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)
            VALUES (
                p_thread, v_ns, v_rank, v_needs, 1, v_created_at, v_created_at / 60000000,
                CASE WHEN v_ns = '' THEN v_owner END
            )
            ON CONFLICT (thread_id, ns) DO UPDATE
            SET rank = greatest(h.rank, excluded.rank),
                needs = CASE WHEN excluded.rank > h.rank THEN excluded.needs ELSE h.needs END,
                checkpoints = h.checkpoints + 1,
                updated_at = greatest(CASE WHEN h.checkpoints > 0 THEN h.updated_at END, excluded.updated_at),
                minute = greatest(CASE WHEN h.checkpoints > 0 THEN h.minute END, excluded.minute);
        END IF;
        v_text := p_parent[i];
        v_more := p_metadata[i];
        v_bytes := p_header[i];
        v_checksum := p_checksum[i];
        v_number := p_run[i];
        INSERT INTO tm.checkpoint (thread_id, ns, id, rank, parent, created_at, metadata, header, checksum, run)
        VALUES (p_thread, v_ns, v_id, v_rank, v_text, v_created_at, v_more, v_bytes, v_checksum, v_number);
    END LOOP;
    FOR i IN 1 .. coalesce(cardinality(p_keys), 0) LOOP
        v_checksum := p_keys[i];
        v_bytes := p_data[i];
        INSERT INTO tm.segment (thread_id, key, data) VALUES (p_thread, v_checksum, v_bytes) ON CONFLICT DO NOTHING;
    END LOOP;
    pack_left_out := false;
    FOR i IN 1 .. coalesce(cardinality(p_w_idx), 0) LOOP
        v_ns := p_w_ns[i];
        v_checkpoint_id := p_w_checkpoint_id[i];
        v_task_id := p_w_task_id[i];
        v_idx := p_w_idx[i];
        v_text := p_w_task_path[i];
        v_more := p_w_channel[i];
        v_bytes := p_w_value[i];
        v_checksum := p_w_checksum[i];
        IF v_idx < 0 THEN
            -- What a task wrote to a special channel takes the place of what it wrote there before.
            SELECT w.value
            INTO v_old
            FROM tm.write AS w
            WHERE w.thread_id = p_thread AND w.ns = v_ns AND w.checkpoint_id = v_checkpoint_id
                AND w.task_id = v_task_id AND w.idx = v_idx
            FOR UPDATE;
            IF FOUND THEN
                old_idx := old_idx || v_idx;
                old_values := old_values || v_old;
            END IF;
            INSERT INTO tm.write (thread_id, ns, checkpoint_id, task_id, idx, task_path, channel, value, checksum)
            VALUES (p_thread, v_ns, v_checkpoint_id, v_task_id, v_idx, v_text, v_more, v_bytes, v_checksum)
            ON CONFLICT (thread_id, ns, checkpoint_id, task_id, idx) DO UPDATE
            SET task_path = excluded.task_path,
                channel = excluded.channel,
                value = excluded.value,
                checksum = excluded.checksum;
            CONTINUE;
        END IF;
        INSERT INTO tm.write (thread_id, ns, checkpoint_id, task_id, idx, task_path, channel, value, checksum)
        VALUES (p_thread, v_ns, v_checkpoint_id, v_task_id, v_idx, v_text, v_more, v_bytes, v_checksum)
        ON CONFLICT DO NOTHING;
        IF NOT FOUND AND v_idx = 536870912 THEN
            pack_left_out := true;
        END IF;
    END LOOP;
    IF p_entry IS NOT NULL THEN
        SELECT e.entered, e.entered_after INTO entered, entered_after FROM tm.enter_1(p_thread, p_entry) AS e;
    END IF;
    IF p_previous IS NOT NULL THEN
        INSERT INTO tm.copied AS f (thread_id, position, epoch)
        VALUES (p_thread, p_position, p_copied_epoch)
        ON CONFLICT (thread_id) DO UPDATE
        SET position = excluded.position, epoch = excluded.epoch;
    END IF;
END
$body$
