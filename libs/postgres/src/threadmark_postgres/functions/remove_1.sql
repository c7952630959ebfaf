-- Removes checkpoints with their pending writes, and segments, from a thread that is locked by then. Returns the epoch
-- that begins with it. The checkpoints are named by their namespaces and ids, in two arrays of one length.
CREATE OR REPLACE FUNCTION tm.remove_1(p_thread text, p_ns text[], p_ids text[], p_keys bytea[])
RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
    v_ns text;
    v_ids text[];
    v_removed bigint;
    v_ranked_otherwise bigint;
    v_newest text;
    v_epoch bigint;
BEGIN
    FOR v_ns, v_ids IN SELECT d.ns, array_agg(d.id) FROM unnest(p_ns, p_ids) AS d (ns, id) GROUP BY d.ns LOOP
        DELETE FROM tm.checkpoint AS c
        WHERE c.thread_id = p_thread AND c.ns = v_ns AND c.rank = ANY (v_ids) AND c.id IS NULL;
        GET DIAGNOSTICS v_removed = ROW_COUNT;
        DELETE FROM tm.checkpoint AS c
        WHERE c.thread_id = p_thread AND c.ns = v_ns AND c.id = ANY (v_ids);
        GET DIAGNOSTICS v_ranked_otherwise = ROW_COUNT;
        v_removed := v_removed + v_ranked_otherwise;
        DELETE FROM tm.write AS w
        WHERE w.thread_id = p_thread AND w.ns = v_ns AND w.checkpoint_id = ANY (v_ids);

        -- The newest may be gone. Rows that were lost before stay counted, and so are missed.
        SELECT max(c.rank) INTO v_newest FROM tm.checkpoint AS c WHERE c.thread_id = p_thread AND c.ns = v_ns;
        UPDATE tm.head AS h
        SET checkpoints = h.checkpoints - v_removed,
            rank = coalesce(v_newest, CASE WHEN h.checkpoints = v_removed THEN '' ELSE h.rank END),
            needs = CASE WHEN h.rank = v_newest THEN h.needs ELSE '{}' END
        WHERE h.thread_id = p_thread AND h.ns = v_ns;
    END LOOP;
    IF cardinality(p_ns) > 0 THEN
        DELETE FROM tm.head AS h WHERE h.thread_id = p_thread AND h.checkpoints = 0 AND h.ns <> '';
    END IF;
    IF cardinality(p_keys) > 0 THEN
        DELETE FROM tm.segment AS s WHERE s.thread_id = p_thread AND s.key = ANY (p_keys);
    END IF;
    UPDATE tm.thread AS t
    SET epoch = t.epoch + 1,
        removed_up_to = greatest(
            t.removed_up_to,
            (SELECT max(d.id COLLATE "C") FROM unnest(p_ns, p_ids) AS d (ns, id) WHERE d.ns <> '__messages__')
        )
    WHERE t.thread_id = p_thread
    RETURNING t.epoch INTO v_epoch;
    RETURN v_epoch;
END
$body$
