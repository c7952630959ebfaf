-- Returns the number of a row's mark (`threadmark.store.replica.mark_of`): the last seven bytes of its check, or of its
-- body where it has none. Of a damaged one that is shorter it is what they make. A single expression, like refusal_1.
CREATE OR REPLACE FUNCTION tm.mark_1(p_check bytea, p_body bytea) RETURNS bigint LANGUAGE sql IMMUTABLE AS $body$
    SELECT ('x' || right('00000000000000' || encode(
        CASE
            WHEN p_check = '' THEN substring(p_body FROM greatest(octet_length(p_body) - 6, 1))
            ELSE substring(p_check FROM greatest(octet_length(p_check) - 6, 1))
        END,
        'hex'
    ), 14))::bit(56)::bigint
$body$
