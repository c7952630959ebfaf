-- Gives a thread, which is locked by then, a new lease with the next token, and returns it. Without p_left it is over.
CREATE OR REPLACE FUNCTION tm.set_lease_1(
    p_thread text, p_left bigint, p_holder text, p_began text,
    OUT token bigint, OUT lease_left bigint, OUT holder text, OUT began text
) LANGUAGE plpgsql AS $body$
DECLARE
    v_clock bigint := extract(epoch FROM clock_timestamp()) * 1000000;
BEGIN
    UPDATE tm.thread AS t
    SET token = greatest(t.token + 1, v_clock),
        lease_ends = CASE WHEN p_left > 0 THEN v_clock + p_left END,
        lease_ttl = p_left,
        holder = p_holder,
        began = p_began
    WHERE t.thread_id = p_thread
    RETURNING t.token, greatest(t.lease_ends - v_clock, 0), coalesce(t.holder, ''), t.began
    INTO token, lease_left, holder, began;
END
$body$
