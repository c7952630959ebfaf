-- For how long to renew the lease under which a change is made, NULL while more than half of it is left. A single
-- expression, like refusal_1.
CREATE OR REPLACE FUNCTION tm.renewal_1(p_token bigint, token bigint, lease_ends bigint, lease_ttl bigint)
RETURNS bigint LANGUAGE sql AS $body$
    SELECT CASE
        WHEN p_token = token AND lease_ends - extract(epoch FROM clock_timestamp()) * 1000000 < lease_ttl / 2
        THEN lease_ttl
    END
$body$
