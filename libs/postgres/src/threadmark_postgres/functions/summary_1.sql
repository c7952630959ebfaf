-- Sums up a live thread for a comparison with another database: how many checkpoints and pending writes it has, and
-- the sum of the marks of all its rows (`threadmark.store.replica.sum_of_marks`).
CREATE OR REPLACE FUNCTION tm.summary_1(p_thread text)
RETURNS TABLE (epoch bigint, recorded bigint, newest text, checkpoints bigint, writes bigint, total bigint)
LANGUAGE plpgsql STABLE AS $body$
DECLARE
    v_checksum bytea;
    v_of_checkpoints numeric;
    v_of_writes numeric;
BEGIN
    SELECT t.epoch, t.checksum INTO epoch, v_checksum FROM tm.thread AS t WHERE t.thread_id = p_thread AND t.live;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    recorded := coalesce(tm.position_1(p_thread), 0);
    SELECT coalesce(max(CASE WHEN c.ns = '' THEN c.rank END), ''), count(*), sum(tm.mark_1(c.checksum, c.header))
    INTO newest, checkpoints, v_of_checkpoints
    FROM tm.checkpoint AS c
    WHERE c.thread_id = p_thread;
    SELECT count(*), sum(tm.mark_1(w.checksum, w.value))
    INTO writes, v_of_writes
    FROM tm.write AS w
    WHERE w.thread_id = p_thread;
    total := mod(
        coalesce(v_of_checkpoints, 0) + coalesce(v_of_writes, 0) + coalesce(tm.mark_1(v_checksum, ''), 0),
        9223372036854775808
    );
    RETURN NEXT;
END
$body$
