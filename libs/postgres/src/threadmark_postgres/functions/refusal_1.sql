-- Why a change to a live thread is refused, NULL where it may be made: the judgement of `threadmark.store.judging`. Its
-- parameters are those of the change, and what the thread's row has. A single expression, which the planner puts into
-- the statements that call this.
CREATE OR REPLACE FUNCTION tm.refusal_1(
    p_epoch bigint, p_token bigint, p_only_owner boolean, p_owner text, p_continues text,
    epoch bigint, token bigint, owner text, lease_ends bigint, deleted_up_to text
) RETURNS text LANGUAGE sql AS $body$
    SELECT CASE
        WHEN p_epoch <> epoch THEN 'epoch'
        WHEN p_only_owner AND owner IS DISTINCT FROM p_owner THEN 'owner'
        WHEN p_token NOT IN (token, 9223372036854775807) THEN 'lost'
        WHEN p_token IS NULL AND lease_ends > extract(epoch FROM clock_timestamp()) * 1000000 THEN 'busy'
        WHEN p_continues <> '' AND p_continues <= deleted_up_to COLLATE "C" THEN 'too_late'
    END
$body$
