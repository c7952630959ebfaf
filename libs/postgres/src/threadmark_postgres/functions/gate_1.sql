-- Whether processes of this format may write, which is true until a later release is switched to (`upgrade`): then this
-- raises an error. Called after the first lock on a table, because the switch waits for those who have one. Stable, as
-- Citus takes no volatile function in a statement that changes rows.
CREATE OR REPLACE FUNCTION tm.gate_1() RETURNS boolean LANGUAGE plpgsql STABLE AS $body$
BEGIN
    RETURN true;
END
$body$
