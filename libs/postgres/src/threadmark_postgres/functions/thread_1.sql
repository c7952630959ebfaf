-- Returns a live thread for a listing: its row, and when it was last updated.
CREATE OR REPLACE FUNCTION tm.thread_1(p_thread text)
RETURNS TABLE (
    thread_id text, created_at bigint, owner text, title text, metadata text, expires_at bigint, checksum bytea,
    updated_at bigint
) LANGUAGE plpgsql STABLE AS $body$
BEGIN
    -- Where a thread's head is lost, reading the thread tells it; so the row is found all the same.
    RETURN QUERY
    SELECT t.thread_id, t.created_at, t.owner, t.title, t.metadata, t.expires_at, t.checksum,
        coalesce(h.updated_at, t.created_at)
    FROM tm.thread AS t
    LEFT JOIN tm.head AS h ON h.thread_id = t.thread_id AND h.thread_id = p_thread AND h.ns = ''
    WHERE t.thread_id = p_thread AND t.live;
END
$body$
