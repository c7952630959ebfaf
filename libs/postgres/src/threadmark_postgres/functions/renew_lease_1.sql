-- Lets a lease last for p_left from now on, if its token is still the thread's. Returns whether it is.
CREATE OR REPLACE FUNCTION tm.renew_lease_1(p_thread text, p_token bigint, p_left bigint)
RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
    v_clock bigint := extract(epoch FROM clock_timestamp()) * 1000000;
BEGIN
    UPDATE tm.thread AS t
    SET lease_ends = v_clock + p_left, lease_ttl = p_left
    WHERE t.thread_id = p_thread AND t.token = p_token AND tm.gate_1();
    RETURN FOUND;
END
$body$
