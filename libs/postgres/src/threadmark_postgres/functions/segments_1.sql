-- Returns the segments of a thread with these keys. OFFSET 0 makes it one look-up in the index for each, as in
-- `sql.finding.SEGMENTS`.
CREATE OR REPLACE FUNCTION tm.segments_1(p_thread text, p_keys bytea[])
RETURNS TABLE (key bytea, data bytea) LANGUAGE plpgsql STABLE AS $body$
BEGIN
    RETURN QUERY
    SELECT s.key, s.data
    FROM unnest(p_keys) AS asked (key)
    CROSS JOIN LATERAL (
        SELECT x.key, x.data
        FROM tm.segment AS x
        WHERE x.thread_id = p_thread AND x.key = asked.key
        OFFSET 0
    ) AS s;
END
$body$
