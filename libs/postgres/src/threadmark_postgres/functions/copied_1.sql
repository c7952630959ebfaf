-- Returns how far a thread has come from another database, NULLs where it has nothing from there.
CREATE OR REPLACE FUNCTION tm.copied_1(p_thread text, OUT copied_to bigint, OUT epoch bigint)
LANGUAGE plpgsql STABLE AS $body$
BEGIN
    SELECT c.position, c.epoch INTO copied_to, epoch FROM tm.copied AS c WHERE c.thread_id = p_thread;
END
$body$
