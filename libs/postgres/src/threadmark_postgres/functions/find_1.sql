-- Finds one checkpoint with its pending writes and the segments of all its values: the newest of a namespace, or the
-- one with p_id. It is STABLE, so that all rows come from one snapshot. Their kind tells them apart:
--
-- 0  the checkpoint: its columns in the order of `sql.expressions.ROW`, then what its thread's row has
-- 1  a pending write: id is its channel, rank its task_path, created_at its idx, header its value
-- 2  a segment: header is its data, checksum its key
-- 3  the head, where the newest is looked for: where the thread or its checkpoints are not found, it tells that they
--    should be
--
-- Of the checkpoint with the rank p_held, which the caller holds, no segments come along but those of its writes. With
-- p_part 'rows' there are none at all, for callers who ask for each that they need; with 'header' there are those of
-- the checkpoint's header alone, and no writes.
CREATE OR REPLACE FUNCTION tm.find_1(p_thread text, p_ns text, p_id text, p_held text, p_part text)
RETURNS TABLE (
    kind integer, ns text, id text, rank text, parent text, created_at bigint, metadata text, header bytea,
    checksum bytea, task_id bytea, epoch bigint, owner text, expires_at bigint
) LANGUAGE plpgsql STABLE AS $body$
DECLARE
    t record;
    c record;
    h record;
    w record;
    v_needs bytea[] := '{}';
BEGIN
    SELECT x.epoch, x.owner, x.expires_at INTO t FROM tm.thread AS x WHERE x.thread_id = p_thread AND x.live;
    SELECT x.rank, x.needs, x.checkpoints INTO h FROM tm.head AS x WHERE x.thread_id = p_thread AND x.ns = p_ns;
    IF p_id IS NULL AND NOT (h.rank = '' AND h.checkpoints = 0) THEN
        kind := 3;
        rank := h.rank;
        owner := t.owner;
        RETURN NEXT;
    END IF;
    IF t.epoch IS NULL THEN
        RETURN;
    END IF;
    IF p_id IS NULL THEN
        SELECT x.id, x.rank, x.parent, x.created_at, x.metadata, x.header, x.checksum
        INTO c
        FROM tm.checkpoint AS x
        WHERE x.thread_id = p_thread AND x.ns = p_ns
        ORDER BY x.rank DESC
        LIMIT 1;
    ELSE
        -- Where a clock was set back, two callers that put one checkpoint at once after different parents may have
        -- stored it under two ranks; the next put of it leaves one.
        SELECT x.id, x.rank, x.parent, x.created_at, x.metadata, x.header, x.checksum
        INTO c
        FROM tm.checkpoint AS x
        WHERE x.thread_id = p_thread AND x.ns = p_ns AND x.id = p_id
        ORDER BY x.rank DESC
        LIMIT 1;
        IF NOT FOUND THEN
            SELECT x.id, x.rank, x.parent, x.created_at, x.metadata, x.header, x.checksum
            INTO c
            FROM tm.checkpoint AS x
            WHERE x.thread_id = p_thread AND x.ns = p_ns AND x.rank = p_id AND x.id IS NULL;
        END IF;
    END IF;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    kind := 0;
    ns := p_ns;
    id := coalesce(c.id, c.rank);
    rank := c.rank;
    parent := c.parent;
    created_at := c.created_at;
    metadata := c.metadata;
    header := c.header;
    checksum := c.checksum;
    epoch := t.epoch;
    owner := t.owner;
    expires_at := t.expires_at;
    RETURN NEXT;
    -- The head knows all segments of the newest checkpoint; of another one the header's come along, which names them.
    IF p_held IS DISTINCT FROM c.rank THEN
        IF h.rank = c.rank AND p_part IS NULL THEN
            v_needs := h.needs;
        END IF;
        -- A stored value begins with the number of its segments, and 12 bytes for each.
        IF length(c.header) > 0 THEN
            FOR place IN 0 .. get_byte(c.header, 0) - 1 LOOP
                v_needs := v_needs || substring(c.header FROM 2 + 12 * place FOR 12);
            END LOOP;
        END IF;
    END IF;
    kind := 1;
    ns := NULL;
    parent := NULL;
    metadata := NULL;
    epoch := NULL;
    owner := NULL;
    expires_at := NULL;
    FOR w IN
        SELECT x.task_id, x.idx, x.task_path, x.channel, x.value, x.checksum
        FROM tm.write AS x
        WHERE x.thread_id = p_thread AND x.ns = p_ns AND x.checkpoint_id = coalesce(c.id, c.rank)
            AND p_part IS DISTINCT FROM 'header'
    LOOP
        id := w.channel;
        rank := w.task_path;
        created_at := w.idx;
        header := w.value;
        checksum := w.checksum;
        task_id := w.task_id;
        RETURN NEXT;
        IF length(w.value) > 0 THEN
            FOR place IN 0 .. get_byte(w.value, 0) - 1 LOOP
                v_needs := v_needs || substring(w.value FROM 2 + 12 * place FOR 12);
            END LOOP;
        END IF;
    END LOOP;
    IF v_needs <> '{}' AND p_part IS DISTINCT FROM 'rows' THEN
        RETURN QUERY
        SELECT 2, NULL, NULL, NULL, NULL, NULL::bigint, NULL, s.data, s.key, NULL::bytea,
            NULL::bigint, NULL, NULL::bigint
        FROM tm.segment AS s
        WHERE s.thread_id = p_thread AND s.key = ANY (v_needs);
    END IF;
END
$body$
