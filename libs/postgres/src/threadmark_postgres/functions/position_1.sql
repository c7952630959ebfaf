-- Returns the position of a thread's last change that was recorded for another database, NULL where there is none.
CREATE OR REPLACE FUNCTION tm.position_1(p_thread text) RETURNS bigint LANGUAGE plpgsql STABLE AS $body$
BEGIN
    RETURN (SELECT p.position FROM tm.position AS p WHERE p.thread_id = p_thread);
END
$body$
