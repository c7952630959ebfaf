-- Removes a checkpoint whose place another one takes, and brings its head up to date. Returns whether that has another
-- header. The thread is locked by then.
CREATE OR REPLACE FUNCTION tm.unset_1(p_thread text, p_ns text, p_id text, p_header bytea)
RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
    v_row record;
    v_newest text;
    v_removed bigint := 0;
    v_differs boolean := false;
BEGIN
    FOR v_row IN
        DELETE FROM tm.checkpoint AS c
        WHERE c.thread_id = p_thread AND c.ns = p_ns AND (c.rank = p_id AND c.id IS NULL OR c.id = p_id)
        RETURNING c.header
    LOOP
        v_removed := v_removed + 1;
        v_differs := v_differs OR v_row.header <> p_header;
    END LOOP;
    IF v_removed > 0 THEN
        SELECT max(c.rank) INTO v_newest FROM tm.checkpoint AS c WHERE c.thread_id = p_thread AND c.ns = p_ns;
        UPDATE tm.head AS h
        SET checkpoints = h.checkpoints - v_removed,
            rank = coalesce(v_newest, CASE WHEN h.checkpoints = v_removed THEN '' ELSE h.rank END),
            needs = CASE WHEN h.rank = v_newest THEN h.needs ELSE '{}' END
        WHERE h.thread_id = p_thread AND h.ns = p_ns;
    END IF;
    RETURN v_differs;
END
$body$
