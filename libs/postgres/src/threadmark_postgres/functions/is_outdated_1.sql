-- Whether the database has a greater term than p_term. If not, the term stays until the transaction ends.
CREATE OR REPLACE FUNCTION tm.is_outdated_1(p_term bigint) RETURNS boolean LANGUAGE plpgsql AS $body$
BEGIN
    LOCK TABLE tm.outbox IN ROW EXCLUSIVE MODE;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        -- The transaction may have begun to read before the lock was there: this fails where the term was raised since.
        PERFORM FROM tm.replica AS r FOR SHARE;
    END IF;
    PERFORM FROM tm.replica AS r WHERE r.term > p_term;
    RETURN FOUND;
END
$body$
