-- Whether a namespace of a thread has a checkpoint with this id, whatever its rank is.
CREATE OR REPLACE FUNCTION tm.has_checkpoint_1(p_thread text, p_ns text, p_id text)
RETURNS boolean LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM FROM tm.checkpoint AS c
    WHERE c.thread_id = p_thread AND c.ns = p_ns AND c.rank = p_id AND c.id IS NULL;
    IF NOT FOUND THEN
        PERFORM FROM tm.checkpoint AS c WHERE c.thread_id = p_thread AND c.ns = p_ns AND c.id = p_id;
    END IF;
    RETURN FOUND;
END
$body$
