BEGIN;

CREATE SCHEMA IF NOT EXISTS "stored";

CREATE TABLE "stored".threadmark_migration (
    number integer PRIMARY KEY,
    name text NOT NULL,
    applied_at timestamptz NOT NULL,
    distribute text,
    least_reader integer NOT NULL,
    least_writer integer NOT NULL
);

CREATE TABLE "stored".threadmark_thread (
                thread_id text COLLATE "C" PRIMARY KEY,
                epoch bigint NOT NULL,
                live boolean NOT NULL,
                deleted_up_to text COLLATE "C",
                removed_up_to text COLLATE "C",
                created_at bigint NOT NULL,
                owner text COLLATE "C",
                title text COLLATE "C",
                folded_title text COLLATE "C",
                metadata text COLLATE "C",
                expires_at bigint,
                checksum bytea,
                token bigint NOT NULL,
                lease_ends bigint,
                lease_ttl bigint,
                holder text COLLATE "C",
                began text COLLATE "C"
                ) WITH (fillfactor = 80);

CREATE TABLE "stored".threadmark_segment (
                thread_id text COLLATE "C" NOT NULL,
                key bytea NOT NULL,
                data bytea NOT NULL,
                PRIMARY KEY (thread_id, key)
                ) WITH (fillfactor = 100);

CREATE TABLE "stored".threadmark_checkpoint (
                thread_id text COLLATE "C" NOT NULL,
                ns text COLLATE "C" NOT NULL,
                rank text COLLATE "C" NOT NULL,
                id text COLLATE "C",
                parent text COLLATE "C",
                created_at bigint NOT NULL,
                run bigint,
                metadata text COLLATE "C" NOT NULL,
                header bytea NOT NULL,
                checksum bytea NOT NULL,
                PRIMARY KEY (thread_id, ns, rank)
                ) WITH (fillfactor = 100);

CREATE TABLE "stored".threadmark_head (
                thread_id text COLLATE "C" NOT NULL,
                ns text COLLATE "C" NOT NULL,
                rank text COLLATE "C" NOT NULL,
                needs bytea[] NOT NULL,
                checkpoints bigint NOT NULL,
                updated_at bigint NOT NULL,
                minute bigint NOT NULL,
                owner text COLLATE "C",
                PRIMARY KEY (thread_id, ns)
                ) WITH (fillfactor = 50);

CREATE TABLE "stored".threadmark_write (
                thread_id text COLLATE "C" NOT NULL,
                ns text COLLATE "C" NOT NULL,
                checkpoint_id text COLLATE "C" NOT NULL,
                task_id bytea NOT NULL,
                idx integer NOT NULL,
                task_path text COLLATE "C" NOT NULL,
                channel text COLLATE "C" NOT NULL,
                value bytea NOT NULL,
                checksum bytea NOT NULL,
                PRIMARY KEY (thread_id, ns, checkpoint_id, task_id, idx)
                ) WITH (fillfactor = 100);

CREATE TABLE "stored".threadmark_outbox (
                thread_id text COLLATE "C" NOT NULL,
                position bigint NOT NULL,
                body bytea NOT NULL,
                PRIMARY KEY (thread_id, position)
                ) WITH (fillfactor = 100);

CREATE TABLE "stored".threadmark_position (
                thread_id text COLLATE "C" PRIMARY KEY,
                position bigint NOT NULL,
                previous bigint NOT NULL
                ) WITH (fillfactor = 50);

CREATE TABLE "stored".threadmark_copied (
                thread_id text COLLATE "C" PRIMARY KEY,
                position bigint NOT NULL,
                epoch bigint NOT NULL
                ) WITH (fillfactor = 50);

ALTER TABLE "stored".threadmark_segment ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE UNIQUE INDEX threadmark_checkpoint_id
            ON "stored".threadmark_checkpoint (thread_id, ns, id)
            WHERE id IS NOT NULL;

CREATE INDEX threadmark_checkpoint_run ON "stored".threadmark_checkpoint (run) WHERE run IS NOT NULL;

CREATE INDEX threadmark_thread_buried ON "stored".threadmark_thread (epoch) WHERE NOT live;

CREATE INDEX threadmark_thread_created ON "stored".threadmark_thread (created_at, thread_id) WHERE live;

CREATE INDEX threadmark_thread_owner
            ON "stored".threadmark_thread (owner, created_at, thread_id)
            WHERE live AND owner IS NOT NULL;

CREATE INDEX threadmark_thread_owner_id
            ON "stored".threadmark_thread (owner, thread_id)
            WHERE live AND owner IS NOT NULL;

CREATE INDEX threadmark_thread_expiry ON "stored".threadmark_thread (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX threadmark_thread_lease ON "stored".threadmark_thread (lease_ends) WHERE lease_ends IS NOT NULL;

CREATE INDEX threadmark_head_minute ON "stored".threadmark_head (minute, thread_id) WHERE ns = '';

CREATE INDEX threadmark_head_owner_minute
            ON "stored".threadmark_head (owner, minute, thread_id)
            WHERE ns = '' AND owner IS NOT NULL;

CREATE INDEX threadmark_write_status ON "stored".threadmark_write (thread_id) WHERE ns = '' AND idx IN (-1, -3);

CREATE INDEX threadmark_outbox_position ON "stored".threadmark_outbox (position, thread_id);

CREATE TABLE "stored".threadmark_replica (
                one boolean PRIMARY KEY DEFAULT true CHECK (one),
                term bigint NOT NULL,
                body text COLLATE "C" NOT NULL
            );

CREATE TYPE "stored".threadmark_added_1 AS (
                epoch bigint,
                outcome text,
                renewal bigint,
                expires_at bigint,
                entered bigint,
                entered_after bigint,
                pack_left_out boolean,
                replaced boolean,
                old_idx bigint[],
                old_values bytea[]
            );

-- Whether processes of this format may write, which is true until a later release is switched to (`upgrade`): then this
-- raises an error. Called after the first lock on a table, because the switch waits for those who have one. Stable, as
-- Citus takes no volatile function in a statement that changes rows.
CREATE OR REPLACE FUNCTION "stored".threadmark_gate_1() RETURNS boolean LANGUAGE plpgsql STABLE AS $body$
BEGIN
    RETURN true;
END
$body$;

-- Locks a thread, also one that is deleted, until the transaction ends. Returns its epoch, whether it is live,
-- and its lease; NULLs where it has no row.
CREATE OR REPLACE FUNCTION "stored".threadmark_lock_1(
    p_thread text,
    OUT epoch bigint, OUT live boolean, OUT token bigint, OUT lease_ends bigint, OUT holder text, OUT began text
) LANGUAGE plpgsql AS $body$
BEGIN
    -- The gate first (decision 11), also shared: what this transaction adds later asks for it without waiting.
    PERFORM pg_advisory_xact_lock(hashtextextended(t.thread_id, t.tableoid::bigint)),
        pg_advisory_xact_lock_shared(hashtextextended(t.thread_id, t.tableoid::bigint))
    FROM "stored".threadmark_thread AS t
    WHERE t.thread_id = p_thread;
    SELECT t.epoch, t.live, t.token, t.lease_ends, t.holder, t.began
    INTO epoch, live, token, lease_ends, holder, began
    FROM "stored".threadmark_thread AS t
    WHERE t.thread_id = p_thread
    FOR UPDATE;
    PERFORM "stored".threadmark_gate_1();
END
$body$;

-- Locks a thread like lock_1, and returns its lease. A thread without a row gets one for it, which is not live.
CREATE OR REPLACE FUNCTION "stored".threadmark_lock_lease_1(
    p_thread text, OUT token bigint, OUT lease_left bigint, OUT holder text, OUT began text
) LANGUAGE plpgsql AS $body$
DECLARE
    v_clock bigint;
    v_ends bigint;
BEGIN
    -- A second round finds the row, unless the removal of old marks was quicker. After so many rounds it is hidden.
    FOR i IN 1 .. 16 LOOP
        SELECT l.token, l.lease_ends, coalesce(l.holder, ''), l.began
        INTO token, v_ends, holder, began
        FROM "stored".threadmark_lock_1(p_thread) AS l;
        v_clock := extract(epoch FROM clock_timestamp()) * 1000000;
        EXIT WHEN token IS NOT NULL;
        INSERT INTO "stored".threadmark_thread (thread_id, epoch, live, created_at, token)
        VALUES (p_thread, v_clock, false, v_clock, 0)
        ON CONFLICT DO NOTHING;
    END LOOP;
    IF token IS NULL THEN
        RAISE EXCEPTION 'thread % has a row that this role cannot see: the tables of Threadmark are not for row-level '
            'security, use for_owner', p_thread;
    END IF;
    lease_left := greatest(v_ends - v_clock, 0);
END
$body$;

-- Gives a thread, which is locked by then, a new lease with the next token, and returns it. Without p_left it is over.
CREATE OR REPLACE FUNCTION "stored".threadmark_set_lease_1(
    p_thread text, p_left bigint, p_holder text, p_began text,
    OUT token bigint, OUT lease_left bigint, OUT holder text, OUT began text
) LANGUAGE plpgsql AS $body$
DECLARE
    v_clock bigint := extract(epoch FROM clock_timestamp()) * 1000000;
BEGIN
    UPDATE "stored".threadmark_thread AS t
    SET token = greatest(t.token + 1, v_clock),
        lease_ends = CASE WHEN p_left > 0 THEN v_clock + p_left END,
        lease_ttl = p_left,
        holder = p_holder,
        began = p_began
    WHERE t.thread_id = p_thread
    RETURNING t.token, greatest(t.lease_ends - v_clock, 0), coalesce(t.holder, ''), t.began
    INTO token, lease_left, holder, began;
END
$body$;

-- Lets a lease last for p_left from now on, if its token is still the thread's. Returns whether it is.
CREATE OR REPLACE FUNCTION "stored".threadmark_renew_lease_1(p_thread text, p_token bigint, p_left bigint)
RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
    v_clock bigint := extract(epoch FROM clock_timestamp()) * 1000000;
BEGIN
    UPDATE "stored".threadmark_thread AS t
    SET lease_ends = v_clock + p_left, lease_ttl = p_left
    WHERE t.thread_id = p_thread AND t.token = p_token AND "stored".threadmark_gate_1();
    RETURN FOUND;
END
$body$;

-- Finds one checkpoint with its pending writes and the segments of all its values: the newest of a namespace, or the
-- one with p_id. It is STABLE, so that all rows come from one snapshot. Their kind tells them apart:
--
-- 0  the checkpoint: its columns in the order of `sql.expressions.ROW`, then what its thread's row has
-- 1  a pending write: id is its channel, rank its task_path, created_at its idx, header its value
-- 2  a segment: header is its data, checksum its key
-- 3  the head, where the newest is looked for: where the thread or its checkpoints are not found, it tells that they
--    should be
--
-- Of the checkpoint with the rank p_held, which the caller holds, no segments come along but those of its writes. With
-- p_part 'rows' there are none at all, for callers who ask for each that they need; with 'header' there are those of
-- the checkpoint's header alone, and no writes.
CREATE OR REPLACE FUNCTION "stored".threadmark_find_1(p_thread text, p_ns text, p_id text, p_held text, p_part text)
RETURNS TABLE (
    kind integer, ns text, id text, rank text, parent text, created_at bigint, metadata text, header bytea,
    checksum bytea, task_id bytea, epoch bigint, owner text, expires_at bigint
) LANGUAGE plpgsql STABLE AS $body$
DECLARE
    t record;
    c record;
    h record;
    w record;
    v_needs bytea[] := '{}';
BEGIN
    SELECT x.epoch, x.owner, x.expires_at INTO t FROM "stored".threadmark_thread AS x WHERE x.thread_id = p_thread AND x.live;
    SELECT x.rank, x.needs, x.checkpoints INTO h FROM "stored".threadmark_head AS x WHERE x.thread_id = p_thread AND x.ns = p_ns;
    IF p_id IS NULL AND NOT (h.rank = '' AND h.checkpoints = 0) THEN
        kind := 3;
        rank := h.rank;
        owner := t.owner;
        RETURN NEXT;
    END IF;
    IF t.epoch IS NULL THEN
        RETURN;
    END IF;
    IF p_id IS NULL THEN
        SELECT x.id, x.rank, x.parent, x.created_at, x.metadata, x.header, x.checksum
        INTO c
        FROM "stored".threadmark_checkpoint AS x
        WHERE x.thread_id = p_thread AND x.ns = p_ns
        ORDER BY x.rank DESC
        LIMIT 1;
    ELSE
        -- Where a clock was set back, two callers that put one checkpoint at once after different parents may have
        -- stored it under two ranks; the next put of it leaves one.
        SELECT x.id, x.rank, x.parent, x.created_at, x.metadata, x.header, x.checksum
        INTO c
        FROM "stored".threadmark_checkpoint AS x
        WHERE x.thread_id = p_thread AND x.ns = p_ns AND x.id = p_id
        ORDER BY x.rank DESC
        LIMIT 1;
        IF NOT FOUND THEN
            SELECT x.id, x.rank, x.parent, x.created_at, x.metadata, x.header, x.checksum
            INTO c
            FROM "stored".threadmark_checkpoint AS x
            WHERE x.thread_id = p_thread AND x.ns = p_ns AND x.rank = p_id AND x.id IS NULL;
        END IF;
    END IF;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    kind := 0;
    ns := p_ns;
    id := coalesce(c.id, c.rank);
    rank := c.rank;
    parent := c.parent;
    created_at := c.created_at;
    metadata := c.metadata;
    header := c.header;
    checksum := c.checksum;
    epoch := t.epoch;
    owner := t.owner;
    expires_at := t.expires_at;
    RETURN NEXT;
    -- The head knows all segments of the newest checkpoint; of another one the header's come along, which names them.
    IF p_held IS DISTINCT FROM c.rank THEN
        IF h.rank = c.rank AND p_part IS NULL THEN
            v_needs := h.needs;
        END IF;
        -- A stored value begins with the number of its segments, and 12 bytes for each.
        IF length(c.header) > 0 THEN
            FOR place IN 0 .. get_byte(c.header, 0) - 1 LOOP
                v_needs := v_needs || substring(c.header FROM 2 + 12 * place FOR 12);
            END LOOP;
        END IF;
    END IF;
    kind := 1;
    ns := NULL;
    parent := NULL;
    metadata := NULL;
    epoch := NULL;
    owner := NULL;
    expires_at := NULL;
    FOR w IN
        SELECT x.task_id, x.idx, x.task_path, x.channel, x.value, x.checksum
        FROM "stored".threadmark_write AS x
        WHERE x.thread_id = p_thread AND x.ns = p_ns AND x.checkpoint_id = coalesce(c.id, c.rank)
            AND p_part IS DISTINCT FROM 'header'
    LOOP
        id := w.channel;
        rank := w.task_path;
        created_at := w.idx;
        header := w.value;
        checksum := w.checksum;
        task_id := w.task_id;
        RETURN NEXT;
        IF length(w.value) > 0 THEN
            FOR place IN 0 .. get_byte(w.value, 0) - 1 LOOP
                v_needs := v_needs || substring(w.value FROM 2 + 12 * place FOR 12);
            END LOOP;
        END IF;
    END LOOP;
    IF v_needs <> '{}' AND p_part IS DISTINCT FROM 'rows' THEN
        RETURN QUERY
        SELECT 2, NULL, NULL, NULL, NULL, NULL::bigint, NULL, s.data, s.key, NULL::bytea,
            NULL::bigint, NULL, NULL::bigint
        FROM "stored".threadmark_segment AS s
        WHERE s.thread_id = p_thread AND s.key = ANY (v_needs);
    END IF;
END
$body$;

-- Returns the segments of a thread with these keys. OFFSET 0 makes it one look-up in the index for each, as in
-- `sql.finding.SEGMENTS`.
CREATE OR REPLACE FUNCTION "stored".threadmark_segments_1(p_thread text, p_keys bytea[])
RETURNS TABLE (key bytea, data bytea) LANGUAGE plpgsql STABLE AS $body$
BEGIN
    RETURN QUERY
    SELECT s.key, s.data
    FROM unnest(p_keys) AS asked (key)
    CROSS JOIN LATERAL (
        SELECT x.key, x.data
        FROM "stored".threadmark_segment AS x
        WHERE x.thread_id = p_thread AND x.key = asked.key
        OFFSET 0
    ) AS s;
END
$body$;

-- Returns a live thread for a listing: its row, and when it was last updated.
CREATE OR REPLACE FUNCTION "stored".threadmark_thread_1(p_thread text)
RETURNS TABLE (
    thread_id text, created_at bigint, owner text, title text, metadata text, expires_at bigint, checksum bytea,
    updated_at bigint
) LANGUAGE plpgsql STABLE AS $body$
BEGIN
    -- Where a thread's head is lost, reading the thread tells it; so the row is found all the same.
    RETURN QUERY
    SELECT t.thread_id, t.created_at, t.owner, t.title, t.metadata, t.expires_at, t.checksum,
        coalesce(h.updated_at, t.created_at)
    FROM "stored".threadmark_thread AS t
    LEFT JOIN "stored".threadmark_head AS h ON h.thread_id = t.thread_id AND h.thread_id = p_thread AND h.ns = ''
    WHERE t.thread_id = p_thread AND t.live;
END
$body$;

-- Returns the position of a thread's last change that was recorded for another database, NULL where there is none.
CREATE OR REPLACE FUNCTION "stored".threadmark_position_1(p_thread text) RETURNS bigint LANGUAGE plpgsql STABLE AS $body$
BEGIN
    RETURN (SELECT p.position FROM "stored".threadmark_position AS p WHERE p.thread_id = p_thread);
END
$body$;

-- Returns how far a thread has come from another database, NULLs where it has nothing from there.
CREATE OR REPLACE FUNCTION "stored".threadmark_copied_1(p_thread text, OUT copied_to bigint, OUT epoch bigint)
LANGUAGE plpgsql STABLE AS $body$
BEGIN
    SELECT c.position, c.epoch INTO copied_to, epoch FROM "stored".threadmark_copied AS c WHERE c.thread_id = p_thread;
END
$body$;

-- Returns the number of a row's mark (`threadmark.store.replica.mark_of`): the last seven bytes of its check, or of its
-- body where it has none. Of a damaged one that is shorter it is what they make. A single expression, like refusal_1.
CREATE OR REPLACE FUNCTION "stored".threadmark_mark_1(p_check bytea, p_body bytea) RETURNS bigint LANGUAGE sql IMMUTABLE AS $body$
    SELECT ('x' || right('00000000000000' || encode(
        CASE
            WHEN p_check = '' THEN substring(p_body FROM greatest(octet_length(p_body) - 6, 1))
            ELSE substring(p_check FROM greatest(octet_length(p_check) - 6, 1))
        END,
        'hex'
    ), 14))::bit(56)::bigint
$body$;

-- Sums up a live thread for a comparison with another database: how many checkpoints and pending writes it has, and
-- the sum of the marks of all its rows (`threadmark.store.replica.sum_of_marks`).
CREATE OR REPLACE FUNCTION "stored".threadmark_summary_1(p_thread text)
RETURNS TABLE (epoch bigint, recorded bigint, newest text, checkpoints bigint, writes bigint, total bigint)
LANGUAGE plpgsql STABLE AS $body$
DECLARE
    v_checksum bytea;
    v_of_checkpoints numeric;
    v_of_writes numeric;
BEGIN
    SELECT t.epoch, t.checksum INTO epoch, v_checksum FROM "stored".threadmark_thread AS t WHERE t.thread_id = p_thread AND t.live;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    recorded := coalesce("stored".threadmark_position_1(p_thread), 0);
    SELECT coalesce(max(CASE WHEN c.ns = '' THEN c.rank END), ''), count(*), sum("stored".threadmark_mark_1(c.checksum, c.header))
    INTO newest, checkpoints, v_of_checkpoints
    FROM "stored".threadmark_checkpoint AS c
    WHERE c.thread_id = p_thread;
    SELECT count(*), sum("stored".threadmark_mark_1(w.checksum, w.value))
    INTO writes, v_of_writes
    FROM "stored".threadmark_write AS w
    WHERE w.thread_id = p_thread;
    total := mod(
        coalesce(v_of_checkpoints, 0) + coalesce(v_of_writes, 0) + coalesce("stored".threadmark_mark_1(v_checksum, ''), 0),
        9223372036854775808
    );
    RETURN NEXT;
END
$body$;

-- Whether a namespace of a thread has a checkpoint with this id, whatever its rank is.
CREATE OR REPLACE FUNCTION "stored".threadmark_has_checkpoint_1(p_thread text, p_ns text, p_id text)
RETURNS boolean LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM FROM "stored".threadmark_checkpoint AS c
    WHERE c.thread_id = p_thread AND c.ns = p_ns AND c.rank = p_id AND c.id IS NULL;
    IF NOT FOUND THEN
        PERFORM FROM "stored".threadmark_checkpoint AS c WHERE c.thread_id = p_thread AND c.ns = p_ns AND c.id = p_id;
    END IF;
    RETURN FOUND;
END
$body$;

-- Whether the database has a greater term than p_term. If not, the term stays until the transaction ends.
CREATE OR REPLACE FUNCTION "stored".threadmark_is_outdated_1(p_term bigint) RETURNS boolean LANGUAGE plpgsql AS $body$
BEGIN
    LOCK TABLE "stored".threadmark_outbox IN ROW EXCLUSIVE MODE;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        -- The transaction may have begun to read before the lock was there: this fails where the term was raised since.
        PERFORM FROM "stored".threadmark_replica AS r FOR SHARE;
    END IF;
    PERFORM FROM "stored".threadmark_replica AS r WHERE r.term > p_term;
    RETURN FOUND;
END
$body$;

-- Whether a change of another database does not follow what a thread has from there, or the thread has changes of its
-- own for that one. The thread is locked by then.
CREATE OR REPLACE FUNCTION "stored".threadmark_is_behind_1(p_thread text, p_previous bigint, p_epoch bigint)
RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
    v_follows boolean;
BEGIN
    SELECT f.position = p_previous AND f.epoch IN (0, p_epoch)
    INTO v_follows
    FROM "stored".threadmark_copied AS f
    WHERE f.thread_id = p_thread;
    IF NOT coalesce(v_follows, p_previous = -1) THEN
        RETURN true;
    END IF;
    PERFORM FROM "stored".threadmark_outbox AS o WHERE o.thread_id = p_thread LIMIT 1;
    RETURN FOUND;
END
$body$;

-- Records an entry of a thread in the outbox. Returns its position, and the thread's last one before.
CREATE OR REPLACE FUNCTION "stored".threadmark_enter_1(p_thread text, p_entry bytea, OUT entered bigint, OUT entered_after bigint)
LANGUAGE plpgsql AS $body$
DECLARE
    v_clock bigint := extract(epoch FROM clock_timestamp()) * 1000000;
BEGIN
    -- Positions of one thread follow each other in the order of commits: a transaction that takes one holds this row
    -- until then.
    INSERT INTO "stored".threadmark_position AS p (thread_id, position, previous)
    VALUES (p_thread, v_clock, 0)
    ON CONFLICT (thread_id) DO UPDATE
    SET position = greatest(p.position + 1, v_clock), previous = p.position
    RETURNING p.position, p.previous INTO entered, entered_after;
    INSERT INTO "stored".threadmark_outbox (thread_id, position, body) VALUES (p_thread, entered, p_entry);
END
$body$;

-- Records an entry of a thread in the outbox, unless the database has a greater term. Returns its position, NULL then.
CREATE OR REPLACE FUNCTION "stored".threadmark_record_1(p_thread text, p_entry bytea, p_term bigint)
RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
    v_clock bigint := extract(epoch FROM clock_timestamp()) * 1000000;
    v_entered bigint;
BEGIN
    IF "stored".threadmark_is_outdated_1(p_term) THEN
        RETURN NULL;
    END IF;
    -- A thread of which something is to be remembered has a row, by which it is forgotten in time.
    INSERT INTO "stored".threadmark_thread (thread_id, epoch, live, created_at, token)
    VALUES (p_thread, v_clock, false, v_clock, 0)
    ON CONFLICT DO NOTHING;
    SELECT e.entered INTO v_entered FROM "stored".threadmark_enter_1(p_thread, p_entry) AS e;
    RETURN v_entered;
END
$body$;

-- Makes a thread live for a change: makes its row, or with p_waits revives the deleted one, of which the caller has the
-- key and the gate. Returns why not, with the epoch; NULL where it was done, or another change was quicker.
CREATE OR REPLACE FUNCTION "stored".threadmark_begin_1(
    p_thread text, p_epoch bigint, p_token bigint, p_owner text, p_continues text, p_now bigint, p_expires_at bigint,
    p_check bytea, p_expects text, p_waits boolean, OUT epoch bigint, OUT outcome text
) LANGUAGE plpgsql AS $body$
DECLARE
    v_live boolean;
    v_token bigint;
    v_ends bigint;
    v_deleted text;
BEGIN
    SELECT t.live, t.epoch, t.token, t.lease_ends, t.deleted_up_to
    INTO v_live, epoch, v_token, v_ends, v_deleted
    FROM "stored".threadmark_thread AS t
    WHERE t.thread_id = p_thread;
    IF v_live OR FOUND AND NOT p_waits THEN
        RETURN;
    END IF;
    outcome := coalesce(
        "stored".threadmark_refusal_1(
            p_epoch, p_token, false, NULL, p_continues,
            coalesce(epoch, -1), coalesce(v_token, 0), NULL, v_ends, v_deleted
        ),
        CASE WHEN p_expects <> '' THEN 'conflict' END
    );
    IF outcome IS NOT NULL THEN
        RETURN;
    ELSIF v_live IS NULL THEN
        INSERT INTO "stored".threadmark_thread (thread_id, epoch, live, created_at, token, owner, expires_at, checksum)
        VALUES (p_thread, p_now, true, p_now, 0, p_owner, p_expires_at, p_check)
        ON CONFLICT DO NOTHING;
    ELSE
        -- Nothing that was set of an earlier thread with this id stays.
        UPDATE "stored".threadmark_thread AS t
        SET live = true,
            created_at = p_now,
            owner = p_owner,
            title = NULL,
            folded_title = NULL,
            metadata = NULL,
            expires_at = p_expires_at,
            checksum = p_check
        WHERE t.thread_id = p_thread AND NOT t.live;
    END IF;
    IF FOUND THEN
        INSERT INTO "stored".threadmark_head (thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)
        VALUES (p_thread, '', '', '{}', 0, p_now, p_now / 60000000, p_owner)
        ON CONFLICT DO NOTHING;
    END IF;
END
$body$;

-- Why a change to a live thread is refused, NULL where it may be made: the judgement of `threadmark.store.judging`. Its
-- parameters are those of the change, and what the thread's row has. A single expression, which the planner puts into
-- the statements that call this.
CREATE OR REPLACE FUNCTION "stored".threadmark_refusal_1(
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
$body$;

-- For how long to renew the lease under which a change is made, NULL while more than half of it is left. A single
-- expression, like refusal_1.
CREATE OR REPLACE FUNCTION "stored".threadmark_renewal_1(p_token bigint, token bigint, lease_ends bigint, lease_ttl bigint)
RETURNS bigint LANGUAGE sql AS $body$
    SELECT CASE
        WHEN p_token = token AND lease_ends - extract(epoch FROM clock_timestamp()) * 1000000 < lease_ttl / 2
        THEN lease_ttl
    END
$body$;

-- Adds the rows of most changes: one checkpoint whose rank is its id, or the writes of one task, which are a pack and
-- its record; with their segments. The checkpoint p_continues is there. If the outcome is "begin", nothing was added,
-- and add_1 says why.
CREATE OR REPLACE FUNCTION "stored".threadmark_add_one_1(
    p_thread text, p_epoch bigint, p_token bigint, p_only_owner boolean, p_owner text, p_continues text, p_ns text,
    p_rank text, p_parent text, p_created_at bigint, p_metadata text, p_header bytea, p_run bigint, p_needs bytea[],
    p_task_id bytea, p_task_path text, p_value bytea, p_record_idx bigint, p_record bytea, p_record_checksum bytea,
    p_checksum bytea, p_keys bytea[], p_data bytea[], p_term bigint, p_entry bytea
) RETURNS "stored".threadmark_added_1 LANGUAGE plpgsql AS $body$
DECLARE
    added "stored".threadmark_added_1;
    v_owner text;
    v_key bytea;
    v_data bytea;
    v_added bigint;
BEGIN
    IF p_term IS NOT NULL AND "stored".threadmark_is_outdated_1(p_term) THEN
        added.outcome := 'term';
        RETURN added;
    END IF;
    -- The gate stands in front of the row (decision 11). A row that is held is passed over.
    SELECT t.epoch, t.expires_at, t.owner, "stored".threadmark_renewal_1(p_token, t.token, t.lease_ends, t.lease_ttl),
        "stored".threadmark_refusal_1(
            p_epoch, p_token, p_only_owner, p_owner, p_continues,
            t.epoch, t.token, t.owner, t.lease_ends, t.deleted_up_to
        )
    INTO added.epoch, added.expires_at, v_owner, added.renewal, added.outcome
    FROM "stored".threadmark_thread AS t
    WHERE t.thread_id = p_thread AND CASE
        WHEN t.live
        THEN pg_try_advisory_xact_lock_shared(hashtextextended(t.thread_id, t.tableoid::bigint))
    END
    FOR SHARE SKIP LOCKED;
    IF added.outcome IS NOT NULL OR added.epoch IS NULL THEN
        added.outcome := 'begin';
        RETURN added;
    END IF;
    IF p_rank IS NOT NULL THEN
        -- A rank is never smaller than its id. So where the head's is smaller, no checkpoint has this id. The head comes
        -- first in all that add, so that two callers never wait for each other.
        INSERT INTO "stored".threadmark_head AS h (thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)
        VALUES (
            p_thread, p_ns, p_rank, p_needs, 1, p_created_at, p_created_at / 60000000,
            CASE WHEN p_ns = '' THEN v_owner END
        )
        ON CONFLICT (thread_id, ns) DO UPDATE
        SET rank = excluded.rank,
            needs = excluded.needs,
            checkpoints = h.checkpoints + 1,
            updated_at = greatest(CASE WHEN h.checkpoints > 0 THEN h.updated_at END, excluded.updated_at),
            minute = greatest(CASE WHEN h.checkpoints > 0 THEN h.minute END, excluded.minute)
        WHERE h.rank < excluded.rank;
        IF NOT FOUND THEN
            added.outcome := 'begin';
            RETURN added;
        END IF;
        INSERT INTO "stored".threadmark_checkpoint (thread_id, ns, rank, parent, created_at, metadata, header, checksum, run)
        VALUES (p_thread, p_ns, p_rank, p_parent, p_created_at, p_metadata, p_header, p_checksum, p_run);
    END IF;
    IF p_keys IS NOT NULL THEN
        FOR i IN 1 .. cardinality(p_keys) LOOP
            v_key := p_keys[i];
            v_data := p_data[i];
            INSERT INTO "stored".threadmark_segment (thread_id, key, data) VALUES (p_thread, v_key, v_data) ON CONFLICT DO NOTHING;
        END LOOP;
    END IF;
    IF p_rank IS NULL THEN
        INSERT INTO "stored".threadmark_write (thread_id, ns, checkpoint_id, task_id, idx, task_path, channel, value, checksum)
        VALUES
            (p_thread, p_ns, p_continues, p_task_id, 536870912, p_task_path, '', p_value, p_checksum),
            (p_thread, p_ns, p_continues, p_task_id, p_record_idx, '', '', p_record, p_record_checksum)
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS v_added = ROW_COUNT;
        IF v_added < 2 THEN
            -- The pack that is there may be this one. The checks of sealed rows are all empty, so its value decides.
            PERFORM FROM "stored".threadmark_write AS w
            WHERE v_added = 1 AND w.thread_id = p_thread AND w.ns = p_ns AND w.checkpoint_id = p_continues
                AND w.task_id = p_task_id AND w.idx = 536870912 AND w.checksum = p_checksum AND w.value = p_value;
            added.pack_left_out := NOT FOUND;
        END IF;
    END IF;
    IF p_entry IS NOT NULL THEN
        SELECT e.* INTO added.entered, added.entered_after FROM "stored".threadmark_enter_1(p_thread, p_entry) AS e;
    END IF;
    RETURN added;
END
$body$;

-- Removes a checkpoint whose place another one takes, and brings its head up to date. Returns whether that has another
-- header. The thread is locked by then.
CREATE OR REPLACE FUNCTION "stored".threadmark_unset_1(p_thread text, p_ns text, p_id text, p_header bytea)
RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
    v_row record;
    v_newest text;
    v_removed bigint := 0;
    v_differs boolean := false;
BEGIN
    FOR v_row IN
        DELETE FROM "stored".threadmark_checkpoint AS c
        WHERE c.thread_id = p_thread AND c.ns = p_ns AND (c.rank = p_id AND c.id IS NULL OR c.id = p_id)
        RETURNING c.header
    LOOP
        v_removed := v_removed + 1;
        v_differs := v_differs OR v_row.header <> p_header;
    END LOOP;
    IF v_removed > 0 THEN
        SELECT max(c.rank) INTO v_newest FROM "stored".threadmark_checkpoint AS c WHERE c.thread_id = p_thread AND c.ns = p_ns;
        UPDATE "stored".threadmark_head AS h
        SET checkpoints = h.checkpoints - v_removed,
            rank = coalesce(v_newest, CASE WHEN h.checkpoints = v_removed THEN '' ELSE h.rank END),
            needs = CASE WHEN h.rank = v_newest THEN h.needs ELSE '{}' END
        WHERE h.thread_id = p_thread AND h.ns = p_ns;
    END IF;
    RETURN v_differs;
END
$body$;

-- Adds the rows of one change to a thread, all or nothing: checkpoints, pending writes and segments, an array for each
-- column. The outcome is NULL then, and otherwise says why nothing was added:
--
-- begin     call again with p_waits, which also begins a thread that is not there, or deleted. Without p_waits: it is one
--           of these, or locked, or the checkpoint may be there; or this transaction is not READ COMMITTED, and so would
--           fail after each wait for others
-- exists    one of its checkpoints is there already
-- others    are `Refusal`, "epoch" and "too_late" of `threadmark.store.contract`, where the parameters stand, too
--
-- With p_replaces those that are there go first, and where one had another header the epoch ends.
CREATE OR REPLACE FUNCTION "stored".threadmark_add_1(
    p_thread text, p_epoch bigint, p_token bigint, p_only_owner boolean, p_owner text, p_continues text,
    p_now bigint, p_expires_at bigint, p_check bytea, p_expects text, p_sorts_last boolean, p_touches boolean,
    p_replaces boolean, p_waits boolean,
    p_ns text[], p_id text[], p_rank text[], p_parent text[], p_created_at bigint[], p_metadata text[],
    p_header bytea[], p_checksum bytea[], p_run bigint[], p_needs bytea[],
    p_w_ns text[], p_w_checkpoint_id text[], p_w_task_id bytea[], p_w_idx bigint[], p_w_task_path text[],
    p_w_channel text[], p_w_value bytea[], p_w_checksum bytea[],
    p_keys bytea[], p_data bytea[], p_term bigint, p_entry bytea,
    p_previous bigint, p_position bigint, p_copied_epoch bigint
) RETURNS "stored".threadmark_added_1 LANGUAGE plpgsql AS $body$
DECLARE
    added "stored".threadmark_added_1;
    v_is_alone boolean := p_replaces OR p_sorts_last OR p_expects IS NOT NULL OR p_previous IS NOT NULL;
    -- Of one checkpoint whose rank is its id, mostly the head tells whether it is there.
    v_looks boolean := v_is_alone OR p_waits OR p_touches OR p_id[1] IS NOT NULL OR cardinality(p_ns) > 1;
    v_there boolean := false;
    v_conflicts boolean := false;
    v_owner text;
    v_newest text COLLATE "C";
    v_row record;
    v_key bytea;
    v_bytes bytea;
BEGIN
    added.outcome := CASE
        WHEN p_term IS NOT NULL AND "stored".threadmark_is_outdated_1(p_term) THEN 'term'
        WHEN v_is_alone AND NOT p_waits AND current_setting('transaction_isolation') <> 'read committed' THEN 'begin'
    END;
    IF added.outcome IS NOT NULL THEN
        RETURN added;
    END IF;
    IF v_is_alone THEN
        PERFORM FROM "stored".threadmark_lock_1(p_thread);
    ELSIF p_waits THEN
        -- This waits for a removal, and keeps the next one away. It shares the row so weakly that of those who waited
        -- one can revive the thread.
        PERFORM FROM "stored".threadmark_thread AS t
        WHERE t.thread_id = p_thread
            AND pg_advisory_xact_lock_shared(hashtextextended(t.thread_id, t.tableoid::bigint))::text = ''
        FOR KEY SHARE;
    END IF;
    IF p_previous IS NOT NULL AND "stored".threadmark_is_behind_1(p_thread, p_previous, p_copied_epoch) THEN
        added.outcome := 'behind';
        RETURN added;
    END IF;
    IF p_waits OR coalesce(p_continues, '') = '' THEN
        SELECT b.epoch, b.outcome
        INTO added.epoch, added.outcome
        FROM "stored".threadmark_begin_1(
            p_thread, p_epoch, p_token, p_owner, p_continues, p_now, p_expires_at, p_check, p_expects, p_waits
        ) AS b;
        IF added.outcome IS NOT NULL THEN
            RETURN added;
        END IF;
    END IF;
    -- A call that adds shares the thread's row; one that removes or takes a lease has it alone. The statements after
    -- the lock see all changes that were committed before it.
    IF p_waits THEN
        PERFORM FROM "stored".threadmark_thread AS t WHERE t.thread_id = p_thread AND t.live FOR SHARE;
    END IF;
    SELECT t.epoch, t.expires_at, t.owner, "stored".threadmark_renewal_1(p_token, t.token, t.lease_ends, t.lease_ttl),
        "stored".threadmark_refusal_1(
            p_epoch, p_token, p_only_owner, p_owner, p_continues,
            t.epoch, t.token, t.owner, t.lease_ends, t.deleted_up_to
        )
    INTO added.epoch, added.expires_at, v_owner, added.renewal, added.outcome
    FROM "stored".threadmark_thread AS t
    WHERE t.thread_id = p_thread AND CASE
        WHEN t.live
        THEN pg_try_advisory_xact_lock_shared(hashtextextended(t.thread_id, t.tableoid::bigint))
    END
    FOR SHARE SKIP LOCKED;
    IF NOT FOUND THEN
        added.outcome := 'begin';
    ELSIF added.outcome = 'too_late' THEN
        PERFORM FROM "stored".threadmark_checkpoint AS c
        WHERE c.thread_id = p_thread AND (c.rank = p_continues OR c.id = p_continues)
        LIMIT 1;
        IF FOUND THEN
            added.outcome := NULL;
        END IF;
    END IF;
    IF added.outcome IS NULL AND v_looks THEN
        FOR i IN 1 .. cardinality(p_ns) LOOP
            SELECT p_ns[i] AS ns, coalesce(p_id[i], p_rank[i]) AS id INTO v_row;
            SELECT h.rank INTO v_newest FROM "stored".threadmark_head AS h WHERE h.thread_id = p_thread AND h.ns = v_row.ns FOR UPDATE;
            v_conflicts := v_conflicts OR p_expects <> coalesce(v_newest, '') OR p_sorts_last AND p_rank[1] <= v_newest;
            v_there := v_there OR "stored".threadmark_has_checkpoint_1(p_thread, v_row.ns, v_row.id);
        END LOOP;
        added.outcome := CASE
            WHEN v_there AND NOT p_replaces THEN 'exists'
            WHEN v_conflicts AND NOT v_there THEN 'conflict'
        END;
    END IF;
    IF added.outcome IS NOT NULL THEN
        RETURN added;
    END IF;

    -- Rows are added in one order, heads first, so that two callers that add never wait for each other.
    IF p_touches THEN
        UPDATE "stored".threadmark_head AS h
        SET updated_at = greatest(h.updated_at, p_now), minute = greatest(h.minute, p_now / 60000000)
        WHERE h.thread_id = p_thread AND h.ns = '';
    END IF;
    FOR i IN 1 .. cardinality(p_ns) LOOP
        SELECT p_ns[i] AS ns, p_id[i] AS id, p_rank[i] AS rank, p_parent[i] AS parent, p_created_at[i] AS created_at,
            p_metadata[i] AS metadata, p_header[i] AS header, p_checksum[i] AS checksum, p_run[i] AS run
        INTO v_row;
        IF v_there AND "stored".threadmark_unset_1(p_thread, v_row.ns, coalesce(v_row.id, v_row.rank), v_row.header) THEN
            added.replaced := true;
        END IF;
        -- A rank is never smaller than its id. So where the head's is smaller, no checkpoint has this id; elsewhere the
        -- next call looks.
        INSERT INTO "stored".threadmark_head AS h (thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)
        VALUES (
            p_thread, v_row.ns, v_row.rank, coalesce(p_needs, '{}'), 1, v_row.created_at, v_row.created_at / 60000000,
            CASE WHEN v_row.ns = '' THEN v_owner END
        )
        ON CONFLICT (thread_id, ns) DO UPDATE
        SET rank = greatest(h.rank, excluded.rank),
            needs = CASE WHEN excluded.rank > h.rank THEN excluded.needs ELSE h.needs END,
            checkpoints = h.checkpoints + 1,
            updated_at = greatest(CASE WHEN h.checkpoints > 0 THEN h.updated_at END, excluded.updated_at),
            minute = greatest(CASE WHEN h.checkpoints > 0 THEN h.minute END, excluded.minute)
        WHERE v_looks OR h.rank < excluded.rank;
        IF NOT FOUND THEN
            added.outcome := 'begin';
            RETURN added;
        END IF;
        INSERT INTO "stored".threadmark_checkpoint (thread_id, ns, id, rank, parent, created_at, metadata, header, checksum, run)
        VALUES (
            p_thread, v_row.ns, v_row.id, v_row.rank, v_row.parent, v_row.created_at, v_row.metadata, v_row.header,
            v_row.checksum, v_row.run
        );
    END LOOP;
    IF added.replaced THEN
        UPDATE "stored".threadmark_thread AS t SET epoch = t.epoch + 1 WHERE t.thread_id = p_thread RETURNING t.epoch INTO added.epoch;
    END IF;
    FOR i IN 1 .. coalesce(cardinality(p_keys), 0) LOOP
        v_key := p_keys[i];
        v_bytes := p_data[i];
        INSERT INTO "stored".threadmark_segment (thread_id, key, data) VALUES (p_thread, v_key, v_bytes) ON CONFLICT DO NOTHING;
    END LOOP;
    FOR i IN 1 .. cardinality(p_w_ns) LOOP
        SELECT p_w_ns[i] AS ns, p_w_checkpoint_id[i] AS checkpoint_id, p_w_task_id[i] AS task_id, p_w_idx[i] AS idx,
            p_w_task_path[i] AS task_path, p_w_channel[i] AS channel, p_w_value[i] AS value, p_w_checksum[i] AS checksum
        INTO v_row;
        -- A write to a special channel replaces the task's earlier one.
        IF v_row.idx < 0 THEN
            SELECT w.value
            INTO v_bytes
            FROM "stored".threadmark_write AS w
            WHERE w.thread_id = p_thread AND w.ns = v_row.ns AND w.checkpoint_id = v_row.checkpoint_id
                AND w.task_id = v_row.task_id AND w.idx = v_row.idx
            FOR UPDATE;
            IF FOUND THEN
                added.old_idx := added.old_idx || v_row.idx;
                added.old_values := added.old_values || v_bytes;
            END IF;
        END IF;
        INSERT INTO "stored".threadmark_write (thread_id, ns, checkpoint_id, task_id, idx, task_path, channel, value, checksum)
        VALUES (
            p_thread, v_row.ns, v_row.checkpoint_id, v_row.task_id, v_row.idx, v_row.task_path, v_row.channel,
            v_row.value, v_row.checksum
        )
        ON CONFLICT (thread_id, ns, checkpoint_id, task_id, idx) DO UPDATE
        SET task_path = excluded.task_path,
            channel = excluded.channel,
            value = excluded.value,
            checksum = excluded.checksum
        WHERE excluded.idx < 0;
        IF NOT FOUND AND v_row.idx = 536870912 THEN
            added.pack_left_out := true;
        END IF;
    END LOOP;
    IF p_entry IS NOT NULL THEN
        SELECT e.* INTO added.entered, added.entered_after FROM "stored".threadmark_enter_1(p_thread, p_entry) AS e;
    END IF;
    IF p_previous IS NOT NULL THEN
        INSERT INTO "stored".threadmark_copied AS f (thread_id, position, epoch)
        VALUES (p_thread, p_position, p_copied_epoch)
        ON CONFLICT (thread_id) DO UPDATE
        SET position = excluded.position, epoch = excluded.epoch;
    END IF;
    RETURN added;
END
$body$;

-- Removes checkpoints with their pending writes, and segments, from a thread that is locked by then. Returns the epoch
-- that begins with it. The checkpoints are named by their namespaces and ids, in two arrays of one length.
CREATE OR REPLACE FUNCTION "stored".threadmark_remove_1(p_thread text, p_ns text[], p_ids text[], p_keys bytea[])
RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
    v_ns text;
    v_ids text[];
    v_removed bigint;
    v_ranked_otherwise bigint;
    v_newest text;
    v_epoch bigint;
BEGIN
    FOR v_ns, v_ids IN SELECT d.ns, array_agg(d.id) FROM unnest(p_ns, p_ids) AS d (ns, id) GROUP BY d.ns LOOP
        DELETE FROM "stored".threadmark_checkpoint AS c
        WHERE c.thread_id = p_thread AND c.ns = v_ns AND c.rank = ANY (v_ids) AND c.id IS NULL;
        GET DIAGNOSTICS v_removed = ROW_COUNT;
        DELETE FROM "stored".threadmark_checkpoint AS c
        WHERE c.thread_id = p_thread AND c.ns = v_ns AND c.id = ANY (v_ids);
        GET DIAGNOSTICS v_ranked_otherwise = ROW_COUNT;
        v_removed := v_removed + v_ranked_otherwise;
        DELETE FROM "stored".threadmark_write AS w
        WHERE w.thread_id = p_thread AND w.ns = v_ns AND w.checkpoint_id = ANY (v_ids);

        -- The newest may be gone. Rows that were lost before stay counted, and so are missed.
        SELECT max(c.rank) INTO v_newest FROM "stored".threadmark_checkpoint AS c WHERE c.thread_id = p_thread AND c.ns = v_ns;
        UPDATE "stored".threadmark_head AS h
        SET checkpoints = h.checkpoints - v_removed,
            rank = coalesce(v_newest, CASE WHEN h.checkpoints = v_removed THEN '' ELSE h.rank END),
            needs = CASE WHEN h.rank = v_newest THEN h.needs ELSE '{}' END
        WHERE h.thread_id = p_thread AND h.ns = v_ns;
    END LOOP;
    IF cardinality(p_ns) > 0 THEN
        DELETE FROM "stored".threadmark_head AS h WHERE h.thread_id = p_thread AND h.checkpoints = 0 AND h.ns <> '';
    END IF;
    IF cardinality(p_keys) > 0 THEN
        DELETE FROM "stored".threadmark_segment AS s WHERE s.thread_id = p_thread AND s.key = ANY (p_keys);
    END IF;
    UPDATE "stored".threadmark_thread AS t
    SET epoch = t.epoch + 1,
        removed_up_to = greatest(
            t.removed_up_to,
            (SELECT max(d.id COLLATE "C") FROM unnest(p_ns, p_ids) AS d (ns, id) WHERE d.ns <> '__messages__')
        )
    WHERE t.thread_id = p_thread
    RETURNING t.epoch INTO v_epoch;
    RETURN v_epoch;
END
$body$;

-- Removes the marks of threads that were deleted before p_before, a thousand at most, with their rows for replication.
-- A mark stays while a lease of its thread lives, and until another database has learned of the deletion. A mark that
-- another transaction has locked is left to the next call.
CREATE OR REPLACE FUNCTION "stored".threadmark_forget_1(p_before bigint) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    v_clock bigint := extract(epoch FROM clock_timestamp()) * 1000000;
    v_thread text;
BEGIN
    FOR v_thread IN
        SELECT t.thread_id
        FROM "stored".threadmark_thread AS t
        LEFT JOIN "stored".threadmark_outbox AS o ON o.thread_id = t.thread_id
        WHERE NOT t.live AND t.epoch < p_before AND coalesce(t.lease_ends <= v_clock, true) AND o.thread_id IS NULL
        LIMIT 1000
    LOOP
        PERFORM FROM "stored".threadmark_thread AS t
        WHERE t.thread_id = v_thread AND NOT t.live AND t.epoch < p_before
            AND coalesce(t.lease_ends <= v_clock, true)
        FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        PERFORM FROM "stored".threadmark_outbox AS o WHERE o.thread_id = v_thread LIMIT 1;
        CONTINUE WHEN FOUND;
        DELETE FROM "stored".threadmark_thread AS t WHERE t.thread_id = v_thread;
        DELETE FROM "stored".threadmark_position AS p WHERE p.thread_id = v_thread;
        DELETE FROM "stored".threadmark_copied AS c WHERE c.thread_id = v_thread;
    END LOOP;
END
$body$;

-- Deletes a thread: everything of it goes, and its row becomes the mark of a deleted one, with the greatest id that the
-- thread may have had. Returns the epoch that the live thread had, NULL where there was none. An epoch is also returned
-- if the thread was deleted at p_now: this is another attempt then, after the reply of the first one was lost. The
-- outcome is "begin", and nothing is done, as in add_1: this waits for others, and so must see what they did.
--
-- p_greatest is the greatest id that is made at this time: a run that still goes on cannot have made a greater one. Ids
-- that tell no time are only compared with those that the thread had. Users choose the ids of messages, and no run
-- continues one.
--
-- The marks of threads that were deleted before p_forgotten go as well; with NULL none is looked for.
CREATE OR REPLACE FUNCTION "stored".threadmark_drop_1(
    p_thread text, p_now bigint, p_greatest text, p_forgotten bigint, OUT epoch bigint, OUT outcome text
) LANGUAGE plpgsql AS $body$
DECLARE
    v_live boolean;
    v_head record;
    v_greatest text COLLATE "C";
    v_is_time boolean;
    v_clock bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        outcome := 'begin';
        RETURN;
    END IF;
    -- Mostly nothing of the thread is locked, neither its row nor the gate in front of it (decision 11).
    SELECT t.epoch, t.live
    INTO epoch, v_live
    FROM "stored".threadmark_thread AS t
    WHERE t.thread_id = p_thread AND "stored".threadmark_gate_1()
        AND pg_try_advisory_xact_lock(hashtextextended(p_thread, t.tableoid::bigint))
        AND pg_try_advisory_xact_lock_shared(hashtextextended(p_thread, t.tableoid::bigint))
    FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        SELECT l.epoch, l.live INTO epoch, v_live FROM "stored".threadmark_lock_1(p_thread) AS l;
    END IF;
    IF epoch IS NULL OR epoch = p_now AND NOT v_live THEN
        RETURN;
    END IF;
    -- No checkpoint's id is greater than the rank of its namespace's head, and none that was made by now is greater than
    -- p_greatest. So where those ranks tell the time, the ids need not be read. Only writes of a checkpoint that was
    -- never stored, and whose id tells no time, could have a greater one.
    FOR v_head IN DELETE FROM "stored".threadmark_head AS h WHERE h.thread_id = p_thread RETURNING h.ns, h.rank LOOP
        IF v_head.ns <> '__messages__' THEN
            v_greatest := greatest(v_greatest, v_head.rank);
        END IF;
    END LOOP;
    v_is_time := v_greatest LIKE '________-____-6___-____-____________'
        AND translate(v_greatest, '0123456789abcdef', '') = '----';
    IF v_is_time IS NOT TRUE THEN
        SELECT greatest(
            t.deleted_up_to,
            t.removed_up_to,
            (
                SELECT max(coalesce(c.id, c.rank))
                FROM "stored".threadmark_checkpoint AS c
                WHERE c.thread_id = p_thread AND c.ns <> '__messages__'
            ),
            (SELECT max(w.checkpoint_id) FROM "stored".threadmark_write AS w WHERE w.thread_id = p_thread)
        )
        INTO v_greatest
        FROM "stored".threadmark_thread AS t
        WHERE t.thread_id = p_thread;
        v_is_time := coalesce(v_greatest, '') = '' OR v_greatest LIKE '________-____-6___-____-____________'
            AND translate(v_greatest, '0123456789abcdef', '') = '----';
    END IF;
    IF v_is_time THEN
        v_greatest := greatest(v_greatest, p_greatest COLLATE "C");
    END IF;
    DELETE FROM "stored".threadmark_checkpoint AS c WHERE c.thread_id = p_thread;
    DELETE FROM "stored".threadmark_write AS w WHERE w.thread_id = p_thread;
    DELETE FROM "stored".threadmark_segment AS s WHERE s.thread_id = p_thread;
    -- Where there ever was a lease it gets the next token: no earlier one is accepted in a thread of the same name. As
    -- in set_lease_1 the clock is the server's: that of a caller may be wrong by days, and tokens must grow. It is read
    -- before the change, in which Citus allows no volatile function.
    v_clock := extract(epoch FROM clock_timestamp()) * 1000000;
    UPDATE "stored".threadmark_thread AS t
    SET live = false,
        owner = NULL,
        title = NULL,
        folded_title = NULL,
        metadata = NULL,
        expires_at = NULL,
        checksum = NULL,
        token = CASE WHEN t.token > 0 THEN greatest(t.token + 1, v_clock) ELSE 0 END,
        lease_ends = NULL,
        lease_ttl = NULL,
        holder = NULL,
        began = NULL,
        -- Only the call that deletes a live thread leaves its p_now: by it another attempt of the same call is known.
        -- Deleting again keeps a mark for another day: its epoch is then a microsecond before p_now.
        epoch = greatest(t.epoch + 1, CASE WHEN t.live THEN p_now ELSE p_now - 1 END),
        deleted_up_to = greatest(t.deleted_up_to, t.removed_up_to, v_greatest),
        removed_up_to = NULL
    WHERE t.thread_id = p_thread;
    IF p_forgotten IS NOT NULL THEN
        PERFORM "stored".threadmark_forget_1(p_forgotten);
    END IF;
    IF NOT v_live THEN
        epoch := NULL;
    END IF;
    RETURN;
END
$body$;

INSERT INTO "stored".threadmark_migration (number, name, distribute, least_reader, least_writer, applied_at)
VALUES (1::bigint, 'tables of the first release'::text, NULL::text, 1::bigint, 1::bigint, now());

COMMIT;

INSERT INTO "stored"."threadmark_thread" ("thread_id", "epoch", "live", "deleted_up_to", "removed_up_to", "created_at", "owner", "title", "folded_title", "metadata", "expires_at", "checksum", "token", "lease_ends", "lease_ttl", "holder", "began") VALUES ('two', 1796039773433884, true, NULL, NULL, 1796039773433884, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO "stored"."threadmark_thread" ("thread_id", "epoch", "live", "deleted_up_to", "removed_up_to", "created_at", "owner", "title", "folded_title", "metadata", "expires_at", "checksum", "token", "lease_ends", "lease_ttl", "holder", "began") VALUES ('only a write', 1796039773472974, true, NULL, NULL, 1796039773472974, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO "stored"."threadmark_thread" ("thread_id", "epoch", "live", "deleted_up_to", "removed_up_to", "created_at", "owner", "title", "folded_title", "metadata", "expires_at", "checksum", "token", "lease_ends", "lease_ttl", "holder", "began") VALUES ('deleted', 1796039773480960, false, '1', NULL, 1796039773475877, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO "stored"."threadmark_thread" ("thread_id", "epoch", "live", "deleted_up_to", "removed_up_to", "created_at", "owner", "title", "folded_title", "metadata", "expires_at", "checksum", "token", "lease_ends", "lease_ttl", "holder", "began") VALUES ('one', 1796039773392184, true, NULL, NULL, 1796039773392184, 'ada', 'Straße', 'strasse', '{"k":"v"}', 3976214400000000, '\xcd9dd1cebb1d5d941c9e4bcc'::bytea, 0, NULL, NULL, NULL, NULL);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x47cd6f1bd6c96c9a80d41ff5'::bytea, '\x0128b52ffd606f01850b00f6265b1bb0a7720c4339e072a4d78d31259829d727e62033333373663017025b00500050001a967d746f188224ba977dfa785ba9877685a1a9506a5b5bab86fc94947411cd9f509ee9a78c9a11ce1fa210c11ea36f696bc3ec48703c6e5c3b90e671bbcac7ce8b9302005850c0c00b181c0405039c8081042ee0604082030802e1e33a487ebeb543d7f4294b3ef6f5d05836903849e926486d3e6448db8b70409a5009a31fa8c396fe7ec8741f87ebddbae914f1f3809284afdd1414a546649ce393afa38cf58f026fed2482764d4303ba5c1add9efbf3d96791e695bf9b348a7397e682231b61738f2e784dfb792d5fa8e1a92d1aebd31914e75eee0aa71c3c25519d3882630727a54a87eab36f871042783ca85dc8ed12d3f30d7bd2e68a0f7d87c18e992ed273be3ec2658f26163545cac6dfae887ac21f5316c5a18b81144246e2918e4395cf844ce2d74991379a7e331ba4084a09b340fb698d35ba44a8574afe2cba22c73dee5365c2e98b0100'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\xf885aa654d0f38192bbc2229'::bytea, '\x0128b52ffd606e01850b00a6a6591ac0a572ff0f0c7f67075ab38b00959909b20acb949b92c255e3d859004f004f003b1f2220dd950c57778c19658787d7927aba27a7be95fde351f5985979ae4a1f0b21cd65b6ba9b27ccf13baedec356b6c854b43a8af220f6104e0f2dcf2548df09bd860400908040811328306004073ea0c00117607070c0401a197c971bea3964e8e3791d74575f1e0f836e67761689ef234ccdffafa3545fbd4103059dd0e382d725e93164a457cb599fbd1769b39c973f2bac16c65c7066255ddef69833778be6f08c8963bf0fe32fa239275d97fcad815982a5bbb28e62e52f4cc91626ce67739aa9d69eac7ff8e3d9c8d454989830b3f49fa672f84bd899f20489dba42cf5bca377871eb1aeba2789f77bc0d510a1e8f0a1c4eb03b775eb6358db51af73268471d319524d5d2d3c12f92f256e50d663d19aaa32097e4d7558a6addc0fb4db33f5f18188b1117a56d5425c65562ecd2acf6d30c74aa557503eb467e8137bf4a36b8c0801000a6c839506'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x25e1801e36c3e5908217e833'::bytea, '\x0128b52ffd606f019d0b003626591bb0a7720c4339e072a4d78d31259899f9130390293725456628870359004e004e002102d25dc97075c798517678782da9a77b72ea5bd93f1e558f9995e7aaf4b110d25c66abbb79c21cbfe3ea3d6c658b4c45aba3280f620fe1f4d0f25c82f49dd06b4800000b0a18780183035630c0091848e0020e062438802077b9a19e43863e9ed74177f5e5f130e876666791f83ec2d4fcff3a4af5d51b3450d0093d2e785d921e43467ab59cf5d97b9136cb79f9b3c26a61cc056756d2e56d8f3973b7680ecf9838f6fb9d0f229a73d275c9df1a982558ba2b57fec2946c61e27c36a7996aedc9fa873f9e8d4c4d858909334bff692a87bf849d294f90b84dca52cf3b7a77e811ebaa7b9278bf075c0d118a0e1f4abc5e238303b775eb6358db51af73268471d319524d5d2d3c12f92f256e50d663d19aaa32097e4d7558a6addc0fb4db33f5f18188b1117a56d5425c65562ecd2acf6d30c74aa557503eb48b3dfad135468c7f030401b1dd129ee9b1816b0a'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x64519b3b692a4585dc502317'::bytea, '\x0128b52ffd606e016d0b00e6665a1ac0a572ff0f0c7f67075ab38b00959909b20a939b9292c255e3d85a004f00500026589c76dc9f614f74af147a2de4ce6558029fb32c69328b55d58591b80ff73f5048231ce754355af2fb0372da2505dab1403a57fb9fcd39144a9d8c770e666471fc8a1100400202054ea0c080111cf88002075c80c1c101030151fc1956b4f4c2bebb6aaff594b0ae34bb386c07bd75fb9c64f81da9c64af38e65d374603a8edb08a661c520be70081a44e46e3acce160fffc84cee5be4a49683efae34a08d3b7c98458f55ac4e9ba3c9cbc54546cc63eae16cf97d1cc6fd5c31c7c186f2a3c529c447a2eeda6ab07ade4906149eec2e1cd6e636f0f8b66bc8913a3cecd6870efd208867ffb9eef36b9bacce471b5430bd7e3f89ab5d07d011dd38a76bd732148685d19dc465d151ff654f1504f2f15ae4801ffe964bb3ee86c6cb1504f4cccd10dbd7f52b0586408f691fbbd229c2caaf86e18eeda43d0ae97d88b2279b7d9e2f092e0c04a0b1500'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x928c159ff2cccb351c8b5047'::bytea, '\x0128b52ffd606f017d0b00f6e65a1bb0a7720c4339e072a4d78d31259899f913032037252545662887035a004f00500082c569c7fd19f644f74aa1d742ee5c8625f039cb9226b358555d1889fb70ff038534c2714e55a325bf3f20a75d52a01d0ba473b5ffd99c43a1d4c978e7604616c7af1801002c2860e0050c0e58c100276020810b381890e00082c59f61454b2fecbbabf65a4f09eb4ab38bc376d05bb7cf4986df916aac34ef58364d07a6e3b88d601a560ce20b87a04144eea6c31c0ef6cf4fe85ceeab9484e6a33fae84307d9b4c8855af459caeb3c3c94b45c566ece36af17c19cdfc563dccc187f1a6c223c549a4e7d26eba7ad04a0e1996e42e1cdeec36f6f6b068c69b3831eadc8c06f72e8d60f8b7eff96e93abcb4c1e573bb4703d8eaf590bdd17011dd38a76bd732148685d19dc465d151ff654f1504f2f15ae4801ffe964bb3ee86c6cb1504f4cccd10dbd7f52b0586408f691fbbd229c2caaf86e18eeda43d0ae97d88b2279b7d9e2f092e0c04a0bc50100'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\xe8631dd77a3ccaba1097439f'::bytea, '\x0128b52ffd606e01950b0026e6581ac0a572ff0f0c7f67075ab38b00959909b20acbcc949bc255e3d859004e004e0021e3aa43b89225cc84fc1c46dad2386676a12239410d7e929e0e9126d9bea0e5e4be8ff73c1c334234c3d1b0e68dbd0a41b85404d178829573b49ad1e885283b0f4e1300400202054ea0c080111cf88002075c80c1c10103011128edbd47d1540f6d2ece3ac3a224357412853291b17c877e3a1a8920eab4384cd2ef6c190fed2a51fc9977f75021255f9233f1eb9ad62697c39f24caae49c44706649522c6d08e3accaecc640abbeff7ab2e5aa582734f1b26f8b856097fa2e787ea46df3d6ecb45bd7d1eb4bb0d25d7fa539ba4fe4bfada7cf31761b2a9dc6d5a0e9d895fe62c57f3c4fa87a251357df03fb0dc0be5c26736f205c325a83a16ec125ad52bea282c76646dc4a286505e73c6b5f95c74b8148e477f5bda414fa74c150811dfae223d933ea0cfdf704e280d37591d51fbd03fddbb7a86f7a3148e57347b0f51cbae2c030401e88e0991b373a10c53'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x8ae4260d8ca0844ba5e22eae'::bytea, '\x0128b52ffd606f01750b00f6a65a1bb0a7720c4339e072a4d78d31259899f913039099293745662887035b004f004f004c21e3aa43b89225cc84fc1c46dad2386676a12239410d7e929e0e9126d9bea0e5e4be8ff73c1c334234c3d1b0e68dbd0a41b85404d178829573b49ad1e885283b0f4e1300c08202065ec0e080150c70020612b8808301090e20081781d2de7b144df5d0e6e2ac332c4a52432751284b111319cb77e8a7a39108a24e8bc324fdce96f1d0ae12c59f79770f1552f2253913bfae696d7239fc49a2ec9a447c64405629620ceda8c3eccaccbbeff7ab2e5aa582734f1b26f8b856097fa2e787ea46df3d6ecb45bd7d1eb4bb0d25d7fa539ba4fe4bfada7cf31761b2a9dc6d5a0e9d895fe62c57f3c4fa27bb92a251357df03fb0dc0be5c2673672c325a83a16ec125ad52bea282c76646dc4a286505e73e8bbc6b5f95c74b8148e477f5bda414fa74c150811dfae223d933ea0cfdf704e280d37591d51fbd03fddbb7a86f7a3148e57347b0f51cbae2c00'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x9ec7fa7ea9da5d0c2e7fdba6'::bytea, '\x0128b52ffd606e016d0b00e6665a1ac0a572ff0f0c7f67075ab38b00959909b20acbcccc4cd9008c6d5a0050004f007124218aa4248c8857f9a43918f227c59db916b63ccedf5486898cd00783527785675c12d6a26210c296c3c07e0bb297cd993fbec07427da2de12d496a6923aaffe7b11a00400202054ea0c080111cf88002075c80c1c1010301b8332dd361743632cb9a4d8dfb7bd1429d994d06d984f623baec41122c75de52910c537fe142bb28b8a2709035097e920e1bc9d488619f7f67c238f90da57232080989b66ff75291b10b07c6062f1e071ed2cbdfc33f2f9cfd553ec8f50d2661892cdfd17bb36068aa93a5844df2401246f29642282b480a8f3cb7f1e8307f479968ddf0c2449cabdf2ad5e462cdc766776442fd964589a39fc9bc1ae1207ed726c86b9c3a23cde67a9b75fc3947249fc2d141f71e556a6942454fb0aab36f95d9aaeac6bb4ab1d39110924f83097e224e1c4e0405cf92cd2eace38afcbc68257abdf5ee2c3d0fcffcf11fecb90100'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x68838e151dd80700b307d2ed'::bytea, '\x0128b52ffd606f01750b00f6a65a1bb0a7720c4339e072a4d78d31259899f9130390999999f24c3220045a0050004f004712a2484ac28878954f9a83217f52dc996b61cbe3fc4d6598c8087d3028755778c625612d2a06216c390cecb7207bd99cf9e30b4c77a2dd12de92a49636a2fa7f1eab01002c2860e0050c0e58c100276020810b381890e000823bd3321d466723b3acd9d4b8bf172dd499d964904d683fa2cb1e24c152e72d15c930f5172eb48b822b0a075993e027e9b0914c8d18f6f977268c93df502a2783909068fb762f1519bb70606cf0e2710421bdfc3dfcf3c2d95fe5835cdf601296c8f21dbd370b86a63a594ad8240f2461246f2984b282a4f0c8731b8f0ef3779489d60d2f4cc4b9faad524d2ed67c6c764726d46f599438fa99ccab110ee263d726c86b9c3a23cde67a9b75fc3947249fc2d141f71e556a6942454fb0aab36f95d9aaeac6bb4ab1d39110924f83097e224e1c4e0405cf92cd2eace38afcbc68257abdf5ee2c3d0fcffcf11fecb91e00'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x728dbaa6bb8b6a243cc683bd'::bytea, '\x0128b52ffd606e01850b0066e6581ac0a572ff0f0c7f67075ab38b00957293691596999999c9007c6c59004e004e004ace8b716ba24417a9b2d11a45a3c7357882d956118174882518e9e8389a2ec3121aba2d354a1678394399146fb0d7d6bafd771b136a480bb9e081ab23aa9c2e8d451500400202054ea0c0a0111cf88002075c80c1c10103019f3c963dbbdb62ca9d78d32681ab3ee7e5b4823b77b59ddf496b791d8a06ffd999f1fa276b4b2ee63b670acd2395af859eb0163f310a4461f692417ff6dad36abb02fbf5cfe4386c1862d547f2d3fd2e38eae17f6ac55ea3efe13dace74e35ab28fe1586ddb72f3b4ddda4e7a7701a74a13554e4dd862fac3eeef918abf7a17a3da28c9f2b7a2d9d06ea93e2e58df0773f4608418d18cbd322ffa6d61f92db425070543711f2505dff6187533392f8cf634693c6f63df37d4283e3d943bfc9a53785feca5795fead588995323d5d5b7ee7144ff7ac2e0f856d9fb4c562d4b04c668e63679be05b676102001a7fc4d4f206610a'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x759e0009122219960fd10642'::bytea, '\x0128b52ffd606f016d0b00f6665a1bb0a7720c4339e072a4d78d3125987253e5042a33333373663017025a004f004f00aae4bc18b7264a74912a1bad51347a5c8327986d151148875882918e8ea3e9322ca1a1db52a3648197339449f1067b6daddb7fb731a186b4900b1eb83aa2cae9d2585401002c2860e0050c0e5ac100276020810b381890e00082c963d9f692b3bb2da6dc89376d12b8ea735e4e2bb87357dbf99db496d7a168f09f9d19af7fb2b6e462be73a6d03c52f95ae8096bf113a34014662f19f467af3dadb62bb05fff4c8ec38621567d24bfd8ef82a31efea756ec35fa1edec37aee54b38ae25f61d87dfbb2d3d44d7a7e0aa741175a4345de6df8c2eae39e8fb17a1faad723caf8b9a2d7d269a03e295ede087ff7638410d488b13c2df26f6afd1f92db425070543711f2505dff618753b1df3392f8cf634693c6f63df37d4283e3d943bfc9a53785feca5795fead588995323d5d5b7ee7144ff7ac2e0f856d9fb4c562d4b04c668e63679be05b670500'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x28f1bbd062c7b4c5bdfa2b66'::bytea, '\x0128b52ffd606f017d0b00f6e65a1bb0a7720c4339e072a4d78d31259899e98fc42133333373663017025b00500050007a1adfbb971924fd3ebcf70335b04ac67363d1bab3b976af2aef623318adfb94ddae1059a1c6c469cc6f077164658426d27eae482e9beb50ffdcd24789bc9d51894f2102005850c0c00b181cb082014ec0400217703020c1010401e13b3008a54219bb7392d648f5b20253e5c6fb773bd3c6c3998c226d63245f886df8f306aee0efc5d3d4bf7d127b1eb6d62a430516a13ffa67455f6047313d4b73d3804a2f66184aa3d9fcb93d7c3009ed01b77236b2cc4387aa5832c250f38f67a1c09e863fdf2ece726dba17aa7c5c1bf790148fac8f6a9a8c02795c82bfdca81562603efdbb3a0ea1d14c42225764353013ae4f784eebb1f2ca6820870b0ec39eea18183346c39fcd8f5184c2cd3c92fa9b632a16d6a2c6b3e8c142346f8a5f956b8406e907a63db58ee97b6cb2977efe89be8daf20055ed1e1573d4ef6d8493e2e995dacac92f6140a94c2ec00'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\xba67c4e5da940ee93d603f56'::bytea, '\x0128b52ffd606e018d0b00a6e6591ac0a572ff0f0c7f67075ab38b00952917d4af96999999c9007c6c5a004f004f00e7e62d7f81e44132fc85eb62dc29a5875f2d934ccbbaf4c913cb4fc210de29aeec658b85cfa47b89429cd052b6503cb3f25c4790e473bfd0f7a1510aea2136958c6d8f2a008004040a9c4081414070e0030a1c70010607070c04823eb7c47582fde52f33add17bb9cae1342c4e2583a246cdd81b4ad244a1b11fe515e7a7cb394fe73e03719107673ab5982aa4656faf5477911f7aee098f9208165e275b62292fc236fc2fcff8740155d9e61c44a37b31fa53abac5b01994cd63d9e32ce1247335aed8279c7bc39eda5d3cbd8985d86600cf7ae49ffb0bc73971d8e06af7d479237dafb7057319b56231579a3b1f94746e52cc3ca3bca02c5d2ae1274ccaee395ac88f8ac59524c76f155e8fbf3909874c2cadb066c7e591bdfbcafb0abd7b94c4959ada79f7cbef18c4d3a4ab7436cd67cc117a6f8a6a171711997309b89e21036ba66d502010010d8814903'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x3068957b014739ee796c3366'::bytea, '\x0128b52ffd606f01750b00f6a65a1bb0a7720c4339e072a4d78d31259829d727e62033333373663017025b004f004f00e7e62d7f81e44132fc85eb62dc29a5875f2d934ccbbaf4c913cb4fc210de29aeec658b85cfa47b89429cd052b6503cb3f25c4790e473bfd0f7a1510aea2136958c6d8f2a008005050cbc80c1415030c0091848e0020e062438802026e8734b5c27d85ffe32d31abd97ab1c4ec3e25432286ad48cbda1244d141afb515e717eba9cf374ee3310177970a6538ba9425af6f64a7517f9a1e79ef0288960e175b22596f2226cc3fff28c4f176a55d9e61c44a37b31fa53abac5b01994cd63d9e32ce1247335aed8279c7bc39eda5d3cbd8985d86600cf7ae49ffb0bc73971d8e06af7d479237dafb7057319b56231579a3b1f94746e52cc3ca3b2ac5d2ae1274ccaee395ac88f8ac59524c76f155e8fbf3909874c2cadb066c7e591bdfbcafb0abd7b94c4959ada7c7fe9a7cbef18c4d3a4ab7436cd67cc117a6f8a6a171711997309b89e21036ba660300'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x8cddf0638ddac567460184fe'::bytea, '\x0128b52ffd606e018d0b00a6e6591ac0a572ff0f0c7f67075ab38b006a5392691596999999c9007c6c590050004f00ce613b5787b75c216b81552cb16c1928dd2e6bc837a8e979dea47c66795e53d1c1dccc2d6c885ff27bbc24ca2ac68bd866fd181b178be150cbd8295ffaf5e15978987700000908143c8102834670f0030a1c78010607070c04f8f91a2e6ccc105a5ab596b65175b0c031b1dca05819379710cff64492413a84c3d2a4a49af6b84e18bf4d06d90e3f7b6a2df4cd1d21866da8162c94f953d2bc5ae09a95970baa1c36acf290b3b3cc03ef323a32d94599cd9dc3ff354eaff9c6c977d3b4e10daf7f686faa88a86c824fcea4782e2b926f07ebb1fed89e9efae329635f8afaa4787b3f99cc8e27abf4e2e89c155305d19fc51b7decbeb840012681377c53c49866de48991f27bd52a2b37bb1bf15a14c0a232085bdae4adf211bd15cde602fa417d7274f3afd137ef8c7c9b35bd8dae563f923172b3016f3e4fe033599322122f1d7e7f7e3ab0501000da0839506'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x8290209447451f8af8b484b7'::bytea, '\x0128b52ffd606f019d0b0076a6591bb0a7720c4339e072a4d78d3125705352e5042a333333736630170259004f004e00613b5787b75c216b81552cb16c1928dd2e6bc837a8e979dea47c66795e53d1c1dccc2d6c885ff27bbc24ca2ac68bd866fd181b178be150cbd8295ffaf5e15978987700000b0a187c0183835630e0091848f0020e0624388020afe1c2c60ca1a5556b691b55070b1c13cb0d8a95717309f16c4f2419a443382c4d4aaa698feb84f1db6490edf0b3a7d642dfdc1162d8866ac142993f25cdab05ae5979b9a0ca61c32a0f393bcbdc39ef323a32d94599cd9dc3ff354eaff9c6c977d3b4e10daf7f686faa88a86c824f4e2e2b926f07ebb1fed89e9efae329635f8afaa4787b3f99cc8e27abf4e2e89c155305d19fc51b7decbeb840f8192681377c53c49866de48991f27bd52a2b37bb1bf15a14c0a232085bdae4adf211bd15cde602fa417d7274f3afd137ef8c7c9b35bd8dae563f923172b3016f3e4fe033599322122f1d7e7f7e3ab0502003df48aa871056a0a'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\xc87b30061e385f5cd0640044'::bytea, '\x0128b52ffd606e01650b00e6265a1ac0a572ff0f0c7f67075ab38b00952917d4af96999999c9007c6c5a0050004f00b5431f2ec9d16f383e3099644ac2f35e71ecc3548d164eafabe1adb62f0de5eecda365759a0615f2dfac963d9bbe0d39514f3c55b81349f77233b51bda7bba828af8e32e008004040a9c4081414070e0030a1c70010607070c04a491161e0a075332ffb796be558b88ffe326f82d4e61da37757b95580bc6c69f6e7f79330777c765ae23c235c9f379330d11c2fc578f8a43b45da76c3958be4b5977108b890bf13a16424d1b381cc6015511ac9dcab7d71435d5a3296bcf7582229334f7e5500b3b453c9124073731987971ee2b924d1a29da9563340c29a3a25af2f8fd51039e55dc9e89756846c74ab3fe60b18aaabfe9d9cc8e1076c4314b15b657f9259564904e829c047f60337b6df09e953ce631cebfabf3ad93d5b227a7e474b5d69ddae18c4029e2981c0e2d572442d68f3648f6b62fcd58ba36824b2ea6ef0c8b9114cbe02053d0f700'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\xc9598adc496c7bffea7f85ea'::bytea, '\x0128b52ffd606f017d0b00f6e65a1bb0a7720c4339e072a4d78d31259829d727e62033333373663017025b0050004f003bf4e1921cfd86e3039349a6243cef15c73e4cd568e1f4ba1ade6afbd250eede3c5a56a7695021ffcd6ad9b3e9db9013f5c453853b91742f3753bba1bda72ba8883fee02005850c0c00b181c0405039c8081042ee06040820308021a69e1a1703025f37f6be95bb588f83f6e82dfe214a67d53b75789b5606cfce9f697377370775ce63a225c933c9f37d31021cc7ff5a83844db75ca9683e5bb947507b198b810af6321d4b481c3615c0115c1daa97c7b4d51533d9ab2f65c27283249735f0eb5b053c41349727013839917e7be22d9a491a25d3946c390322aaa258fdf1f35e059c5ed9958876674ac34eb0f16aba8fa9b9ecdec0861471c294b15b657f9259564904e829c047f60337b6df09e953ce631cebfabf3ad93d5b227a7e474b5d69ddae18c4029e2981c0e2d572442d68f3648f6b62fcd58ba36824b2ea6ef0c8b9114cbe02053d0f70a00'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\xb03c1229ca65ad06e5367ebe'::bytea, '\x0128b52ffd606e018d0b0026a6581ac0a572ff0f0c7f67075ab38b00959909b20a4bb92929c9553c6d58004e004e001e11da22f737a2427e4e719a7427b3a4fce1bacafba7831d8f669fadf30c2dbf47bd7f2b3a289c6655374d31a7ebe8f39caeae256248ed7afdadf8b106a975c86e450000090814388102034670e0030a1c70010607070c041b95af4a5b16e2aeb264d79c4e12aaa799598ac5583c811df11d5d517369050d3370f0de96cc90130ce13f745bb83c552eb6389350e6730f9f628d1ce5c31e3f2b0b7b29bfcc58712719a75e550dec81f9e584e8265e1e286c78a3f7730ce94011a7ca8dda316a9715c68e08227e1a9b547c8cb222c1b3fb40a5786d486e175474e6d911ed7b1313641eb9abbe2fff71ca4a6a7e282c5958f0b44d0b27fa2532d239d1e1a8421f2f824c79544a5445d8390e9bf82e78a4c6fc84f89a4644a18f39687cb267a06d8d56a870e2fa19069d664d32686bc8cd62719861bb35465c75e4f95caf6599c805ba030401922a1e3c56f6cf460a'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x92c9a5b93bd1967a1b5849a9'::bytea, '\x0128b52ffd606f01a50b003666591bb0a7720c4339e072a4d78d31259899f91303907253525266b01c0259004e004e0011a12d727f232ae4e714a74977324bca1faeabbc7f3ad8f168f6d93acfd0f27bd4fbb7a283c2695675d31473ba8e3ecfe9ea5a2286d4aed7df8a1f6b905a87ec560400b0a080811730386005039c8081042ee060408203080251f9aab46521ee2a4b76cde924a17a9a99a5588cc513d811dfd115359756d0300307ef6dc90c39c110fe43b785cb53e5628b3309653ef7f029d6c8513eecf1b3b2b097f2cb8c15779271ea55550f1e985f4e886ee2e581c286377a3fc7900e1471aadca81da3765961ec8820e2a7b149c5c7282b123cbb0f548ad786e4764145679e1dd1be373141e691bbeafbf21fa7aca4e687c29285054fdbb40d27fa2532d239d1e1a8421f2f824c79544a5445d8390e9bf82e78a4c6fc84f89a4644a18f39687cb267a06d8d56a870e2fa19069d664d32686bc8cd62719861bb35465c75e4f95caf6599c8053a0e030401922a1e3c56facf460a'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x8f849f98e5cf03cc8f1c9bcc'::bytea, '\x0128b52ffd606e018d0b00e625581ac0a572ff0f0c7f67075ab38b00959909b20acbccccccd400e7d858004d004d001250a990694e7c3563038fb82569bbb5391ee2dd0bd59fd40a57a227fb54044575ddc9440b172ab3a1b3491cbf95a956f3b48270cb0fd936f2b406d5d7404b1cc9d30000121028700205068ce0c0071438e0020c0e0e1808f2d5d5891fd329d65c1b6a62bd4b3cecd190aa5ea0f51cbba4ce152b9a46fa5d7e3619f21b4ca2c07f41e3e7b432d51789329c8a9e38769b558f89cb6116cec1a20fd956fdff76096b93dcd133a9d38f8c45143a9a299bffb538426b4432557b451e7e0b057ad85904de356f37a4a8a780ee5e163a929aaa1db83622f3dc4eb9338ba7c3b7dbbdbbd926beff691d3928c55b486e55c579aba13ec1d43aac6b6c3b77d58b62e7715d4dad8c6a24758b489405d2709b8778415fe4be0239f25fa7bbec8494b2ad22b64fba8a3e58d0c4557ae7836d882542f2907d49cc4793d795851e425e793903040401581211f6cd89a2b8454901'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('one', '\x36bc14030ceb2ae0e99a6367'::bytea, '\x0128b52ffd606f019d0b00f6a5581bb0a7720c4339e072a4d78d31259899f9130390999999e94c52870359004d004d0001950a99e6c4573336f0885b92b65b9be321debd50fd49ad70257ab24f455054d79d4cb470a1321b3a9bc4f15b996a354f2b08b7fc906d234f6b507d0db4c4913c0d00604101032f6070c00a06380103095cc0c180040710045f5d9df8319d62cdb5a126d6bbc4c31e0da9ea055acfb14bea5cb1a269a4dfe5679321bfc1240afc17347e4e2b537d9128c3a9e88963b759f598b81c66e11c2cfa906dd5ff6f97b036c91d3d253afdc85844a1a399b2f95f8b23b4462453b557e4e1b750a0879d45e05df376438a7a0ae8ee65a123a9a9da816b2332cfed943bb3783a7cbbddbb9b6de2fb9fd6918352bc85e456559cb71aea25c1d43aac6b6c3b77d58b62e7715d4dad8c6a24758b489405d2709b8778415fe4be0239f25fa7bbec8494b2ad22b64fba8a3e58d0c4557ae7836d882542f2907d49cc4793d795851e425e793933040401581211f6cd89a2ba454901'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x4be706fe64d9cd00b963e136'::bytea, '\x0128b52ffd606f01a50b0076265a1bb0a7720c4339e072a4d78d3125987253e5042a33333373663017025a004f004f00396d2cef2affec29b62b325f2154b7517a51e17ee9488406a3222a4c77c68053757f4eac879fbe5112e4991dc512b16171a915139c35628dd3ea3afee3cb3cf96ba702005850c0c00b181cb482014ec0400217703020c1010401c12462a9a148730683f46d4d87656362c2a61575142afed7e60cad47c3241f38c3df39f76e519fd2578a5eda37cdae39ebcee9173721e961252e71b7e872b13584a3684abe6a4e6ce837d7e02f19017a99154e6241e86f88baa6aab633489bacff714dd0f989370efcdac0d569383f5a219f737f2f9af1d54bd0382cc6e6c993d82a3dcabd330a362b3a12867b33cc90a1565ffb5af156eebe27b05d5e07c2441d4f2a8b25e3bd195cb6f9f76abd55de5bc48dc1a63a7c602e92333eb6735108f9849dd109f2154dab90fb4ad1bc16ca3d6b44580e43de99aa91f176bb9e566a622978d9fbc89a4de05b350d0200ce9b90123dc052'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x9e234f64901dc8886836ae74'::bytea, '\x0128b52ffd606e01650b00e6265a1ac0a572ff0f0c7f67075ab38b0095992994fa96999999c9007c6c5a004f004f0023efa1de3db4799984dfb40b7f37d8fca5ac9e4234c1d1cc198ae5548e8cd2ef9ff54ee7725694516cc7e48d3817618b681512f8b0dec6454b454e42e5920775dbc450d60000121028700205068ce0c0071438e0020c0e0e18089ca5db6f9f242ad53546f21411ee48ac76f32312e5c12998f119e19667d165388e551de79afa17bae2117e20c9fbbbd676c0b796af91940db6912e8fa64042aa5361f8c81236d4cca352c5224f8862d121ba1e0d4d6d9796ea7fdb18fda56b3bccfb58b2ff84c935ee54b04487d5279b44da25d84a5c4bebf7fa073dec299399c71b67dba8fda03f0f4c4865a17e79a9b363fbbb26b552a3d5728fe212242ef4c1abc282376288cb723449eb30de102ea4f6728d055d5cd89c0b8a5d5c1a90f1943f7509ed2ed83d307e6a347e2f2bd307719a47ac7b89e4e446125eac711ad58d1f4e3012de2a876f75389b0700'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x7790f2706d57a689e84d8f74'::bytea, '\x0128b52ffd606f01750b00f6a65a1bb0a7720c4339e072a4d78d31259899e98fc42133333373663017025b004f004f00f21eeadd439b9749f84dbbf07783cd5fcaea2944131ccd9ca1584ee5c828fdfe59ef742e674519c5764cde887311b6885621810feb6d5cb454e424542e7950b74d0c650d00604101032f6070c00a06380103095cc0c1800407100459bafdf649a2525d63244f11e18ec46a373f22511e9c82199f116e79165d86e358d571aea97fa12b1ee10792bcbf6b6d077c6bf91a49d9601be9f2680a24a43a15868f2c6143cd3c2a552cf284284e1da2ebd1d0d47669a9feb78dd15fbab6c3bc8f25fb4f985ce34e054b74587db249a45d82adc4b5b47eaf7fd0c39e329979bc71b68dda0ffaf3c0845416ea97973a3bb6bf6b522b355a2df7282e41382ef4c1abc282376288cb723449eb30de102ea4f6728d055d5cd89c0b8a5d5c1a90f1943f7509ed2ed83d307e6a347e2f2bd307719a47ac7b89e4e446125eac711ad58d1f4e3012de2a876f75389b4700'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x3b21ee73f94ed0f1f730b7bc'::bytea, '\x0128b52ffd606e01650b00e6265a1ac0a572ff0f0c7f67075ab38b0095992994fa96999999c9007c6c5a004f004f005af1fc51d39517a1861c7b7ac3a9f69d3787c853440459dc66deca0db1a054b5e7280ac7b386d877d9c528b5ab3f0be1fa193fe54c35e33e38684586cc84b33c62f0a532008004040a9c4081012338f001050eb8008383030602f61a10eff6ad3b90c5751c39f304d1c8108585fdadc8b1c6a5163a5651e72a907444787036b5afb4bb8f3d1d43950d6dd087c4d35fffb43aebc3fb3620fa7f6cb72b9d78aa5e9d69c770c8843595b7fbd9149eb987d130fab4428cbf6db1f4457a33d6233fed24ffb324bd914a471abfb3ed07a9ce0b862d47059c744efcfbeba0785475114c966fca6ff644ed9b7af312f5fd3e294d610227beac968b6a15fad18c69141bad823d681bb7ee4d3c11ee9d46d0fba18edb5d24f474c7376de608e170a42442ec46ae51ba85a212374ccea048629ddcf94cf1d21bcec27f820eaa5fdb28dfe9c9a44998a4c3190e00'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x670dadcaf7dcbdae7b9b8deb'::bytea, '\x0128b52ffd606f019d0b0076a6591bb0a7720c4339e072a4d78d31259899e98fc42133333373663017025a004e004e00cf1f355d79116ac8b1a7379c6adf7973883c454490c56de6addc100b4a557b8ea2703c6b887d975d8c52bbfab310ae9ff153ce5433ee83835664c84c38cb23065f2a03005850c0c00b181cb082014ec0400217703020c1010401af01f16edfba43c791334f108d0c5158d8df8a1c6b5c6aa1631575ae02494784076753fb4abbfbd8d33154d9d0067d483cfdf54fabb33ebc6f03a2ffc776bbd289a7ead599760c874c585379d38abc9f4de1997b180da34f2bc4f8db164b5fa437633df2d34ef23f4bd21ba974a4f13bdb7e90eabc60d87254c049bfbf0e8a475517c164f9a6fc664fd4bea9372f51dfef93d2142670e2cb6ab9a85a15fad18c69141bad823d681bb7ee4d3c11ee9d46d0fba18edb5d24f474c7376de608e170a42442ec46ae51ba85a212374ccea048629ddcf94cf1d21bcec27f820eaa5fdb28dfe9c9a44998a4c39902008dd6884e78819902'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x53aeab78e8e19f0abde43b26'::bytea, '\x0128b52ffd606e01850b0066e6581ac0a572ff0f0c7f67075ab38b009599b26c1596999999c9007c6c59004e004e002213f4dd43267770d11be92014c85d2a31d831d7d2317f56cca410dabe96f95e1105c144718fc0301858f26250153939a9cb53daa5a636a80fbe3e7168064b307add520400908040811328306004073ea0c00117607070c04051c1929fa9bb07d1d9fb39227166678d90668c489ce4c874e6d4926b754da277aeb9d45d700773eaecb5f4c2062af4f7e49dcd0c2841baa68b22e86093ca0d2feefb571b5e7f99ead46aa022ee4b621cb01751c4ec153dbb8869d136e3b279324873a12885903b31dae10949a11a7206ca55a3e1203ad6172e75913028a8e9b09bc8d77f8a3f9159516c517a446b28e1bd795312196913e7b9ccfb63c19b69d867a58b8b563e815d718b5843e33a973fe3421edef1c2ebd55f8dcc49e852ebf17e507887e7527d50ffe4b4a82179249f51ef23fa208a263a8d38ff3cd44237459361d74da709e96e2a0200afd222ba5e0dd614'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\xa29e18257da1ecdf342e174a'::bytea, '\x0128b52ffd606f01750b00f6a65a1bb0a7720c4339e072a4d78d31259899f2400c40666666e6cc602e045b004f004f00223241df3d64720717bd910e4281dca512831d732d1df367c54c0aa1ed6b99ef1551104c14f7080c8381252f0655919393ba3ca55d6a6a83fae0eb138766b004a3d72d4500000b0a18780183035630c0091848e0020e0624388020fe18152cf999ba7b109dbd9f23126776d60869c688c4498e4c674e2db956d7247ae79a4bdd057730a7ce5e4b2f6ca0427f4fded9cc8012a46bba28820e36a9dcf0e2be7fb5e1f597a94ead062ae27e743725c6017b1145cc5ed1b38b98166d332e9b278334178a5208b913a31d9e9014aa2167a05c351a0ea2637de152170983829a0ebb897cfda7f8139915c516a547b48612de9b3725919136719ecb7cc19b69d867a58b8b563e815d718b584346c3e33a973fe3421edef1c2ebd55f8dcc49e852ebf17e507887e7527d50ffe4b4a82179249f51ef23fa208a263a8d38ff3cd44237459361d74d6b6aa7090300'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x83ea8dc24bee416d4f6dcdd5'::bytea, '\x0128b52ffd606e016d0b00e6665a1ac0a572ff0f0c7f67075ab38b0095992994fa96999999c9007c6c5a004f0050004133549a976a085bc9bd06a3d452722169b1b9693fe19f70972fca0416131f93f013a81473d16c39d27bd3e9c3b307628c12d53ddb50c03efcb049b7a415217e581b5f1d02004840a0c00914183082031f50e0800b30383860202acde4581bccb9dace892599ce6d2784caf1699f87c99062c188219d0a6c61faa68b2fedd8fb6d984c199d5889ab4d6526f5159e35516f6481d08f53db6b90e638a485b1558bbbb3c5e2b9c1d1fca7a1f6d5578207ba252bded23dadeecd0eba87f3c92f5f6643cc36d60bfd1f740353863d9f5a2d3a60fb6afc6d7b55a7977b0d0b555d20ddf111dd3012111bb6fa8d763246a76243d7f8e258fd8a392c01215e6a978ec3f10275fee8a09b0c2707312491c23047f1ea2556c627cfae4d16b290bbfa435b18fe3697b8c23475174b87bcc525de4a7853bc07d6c4defc6657624bdde0a037edf2bd389668a94a0100'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x0b59789b86db88940b4beff3'::bytea, '\x0128b52ffd606f017d0b00f6e65a1bb0a7720c4339e072a4d78d31259899e98fc42133333373663017025b0050004f009aa1d2bc5443d84aee3518a596920b498bcd4dfb09ff84bb7c5126b098f898849f40a5988b66cb91de9b4e1f9e3d106394a8eed98602f6e1874dba25ad08f1c3daf8ea1000c08202065ec0e080150c70020612b8808301090e2008d24c8eb5c19cabed9c5892e9dc7642a81c9ff679980c29168c18d2a9c016a66fbaf8d28ebddf86c994d18995b8da5466525fe15913f5461608fd38b5bd06698e435a185bb5b83b5b2c9e1b1ccd7f0a01b5afbe123cd02d59f196ee69756f76d03d9c4f7ef9321b62b6b15ee8ffa01b9832ecf9d46ad101db57e36fdbab3abddc6b58a8ea02e98e8fe8869188d8b0d56fb493313a151bbac617c7ea57cc61d1215e6a978ec3f10275fee8a09b0c2707312491c23047f1ea2556c627cfae4d16b290bbfa435b18fe3697b8c23475174b87bcc525de4a7853bc07d6c4defc6657624bdde0a037edf2bd389668a94a2100'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x3e86f096a22453398eaa852b'::bytea, '\x0128b52ffd606e016d0b00e6665a1ac0a572ff0f0c7f67075ab38b00959909b20acbcc949bc255e3d85a00500050007546b22c6175ab8817318cce5a53187ddb9f531b25cf573a5ccaa4885027e9161a16902d66f84dce7e6cc6a7436056c6db0d54acd2a7eee48c4fcecff5bff13549e20cc60000121028700205068ce0c0071438e0020c0e0e180836f57d271917a62443d6bd4f13fd8f7885ed10f4173c1193236aa2b5732762c35f74e677cca67297575f12136ff784e49b5cb22c2b5f2192aef44aa4ab6bf9456f0f43097b611cc8639947262a7f520292130c856413552a28b7473d706c3f7890fd5436fd60471236984fd0343632eb7af5e8b20b3f7a9da7a72375460caba04c29c42586ba33dd79ad89994e1b35cde34f14ccd6e4a72ea513e8a851fcc6015cc1ff166ba99d12b7c13f8dac1419736665e492307437b3fd8414ad953c4cc5bd8c37c9d9afaf36d8428359aa5e1f072b5109db49d84e740c324ca7b36698b351ca4a2d8135f5337abcd0cdf82f00'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\xc2ad4c73264387d543ab6872'::bytea, '\x0128b52ffd606f01950b00b6265a1bb0a7720c4339e072a4d78d31259899f913039099293745662887035a004f004f0046b22c6175ab8817318cce5a53187ddb9f531b25cf573a5ccaa4885027e9161a16902d66f84dce7e6cc6a7436056c6db0d54acd2a7eee48c4fcecff5bff13549e20cc60000161430f0020607ac6080133090c0051c0c48700041df779271614a3264ddfb34d1ff8857d80e417fc1133139a2265a3b772236fc45677ec76c2a7779f52531f1764f48bec925cbb2f21522e94aaf44baba965ff4f63094b017c6813c967964a2f227a52e8642b2892a1594dba31e38b61f3cc87e2a9b7eb023091bcc27681a1b9975bd7a74d9851fbdced3d3913a23865550a614e21243dd99eebcd6c44ca78d9ae6f1270a666bf25397d20974d4287e639b0a5cc1ff166ba99d12b7c13f8dac1419736665e492307437b3fd8414ad953c4cc5bd8c37c9d9afaf36d8428359aa5e1f072b5109db49d84e740c324c6798b351ca4a2d8135f5337abcd0cdf84f72420100f574c19a02'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x8301415698baaf219e3d7433'::bytea, '\x0128b52ffd606f01a50b00f6a5581bb0a7720c4339e072a4d78d3125987253e5042a333333736630170259004d004d002564dbba25813dc265f5c791c657f76a1b9197d86f7e96ee99a3793a5a916651aa0855d4bfe49371e80c6ccc7c819146836e6177537777dc4d4a2ca7ae0d19a7850f00604101032f6070d00a06380103095cc0c18004071004a8b6b81ba6fca7fe712cb637bd17ded8b387a9c4633d66fe7828fa433ffa8347e3b8fe27fe5a1be202bdf0623c0b3afd375764720e39ef1ce5b4afd104aa0c8ba849c18ae28822c8684c275a14de254ac8d22c5517cc5cf223e338f861779164acbc451fc28a2f7cef6c97baa62c2b3b9555bb83fe5b7aec454766c5116585e610eb7e5e75cadc2ded143e7c368a6d29a955f587f3e316a13c24bb2924565f14d0d332767e42211af3723f7b88845faacd50bd9bfa66e4e0fe045cce088a309b5ca61525be73a74fe21e7063bc448c02fbdf2dc84b0bff0669367bd85f5eeff8e831567aaeb90704040145f68aad2e6fe04abbd24801'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x82bc455d7b06b0317f61d0d0'::bytea, '\x0128b52ffd606e01750b00a666591ac0a572ff0f0c7f67075ab38b00959909b20a939b9292c255e3d859004f004f005a83ffb21aacc2b826ab7a3da7a7ee9ee40b665afe6e6209abf83296685d7909c62a5104efccf24ab9e9f64ed92ba220955f4b997a8c1c3fce3585b7db6b9b6be98bfd0000121028700205068ce0c0071438e0020c0e0e1808eb75c6c51a444d39dff48cb28754fc84138be2c3d66e8835e4e08c793f412c7cf7abfd0fdfec5c1c62faafe5f0eb225d6d7aec14a5783934d01a5707a15c588fbb5110b2c361290de97b6d45ba0f17c473c86c4118821d4933ce86885b239c4413de678f6771959a6ba8cab0d233f56ee15363e0bd3c9d2f0fd1da4d7c8ce048cec4459340e6a26b89bcc1fd21db9ef29cc78aeb5684f4744606a9aa1903bf271d50a95a789f36c2f00576ce77b9d5e71ccfd8efd8649905a37659dde6e1b3ad8f939c354f4d6f66ac9a9d63342686a074ecfc7a05f108a1bb4a4b2d737c331eaf6bb0e16f468d440cb1e80100ed5b10a6'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x71a4684c5f84c5dc8fd7c7c4'::bytea, '\x0128b52ffd606f016d0b00f6665a1bb0a7720c4339e072a4d78d31259899f913032037252545662887035a0050004f005a83ffb21aacc2b826ab7a3da7a7ee9ee40b665afe6e6209abf83296685d7909c62a5104efccf24ab9e9f64ed92ba220955f4b997a8c1c3fce3585b7db6b9b6be98bfd0000161430f0020607ac6080133090c0051c0c48700041b85e675cac41d494f34dcf287b48c54f38b1283e6ced8658430ece98f713c4c277bfdafff0cdcec521a6ff5a0ebf2ed2d5a6c74e518a974303ad717510ca85f5b81b05213b1c96d290bed756a4fb7001d1c473c86c4118821d4933ce86885b239c4413de678f6771959a6ba8cab0d233f56ee15363e0bd3c9d2f0fd1da4d7c8ce048cec4459340e6a26b89bcc1fd21db9ef29cc78aeb5684f4744606a9aa39bf271d50a95a789f36c2f00576ce77b9d5e71ccfd8efd8649905a37659dde6e1b3ad8f939c354f4d6f66ac9a9d63342686a074ecfc7a05f108a1bb4a4b2d332b7d7c331eaf6bb0e16f468d440cb100'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\xb384831ff41e78fc3efc6628'::bytea, '\x0128b52ffd606e018d0b006626591ac0a572ff0f0c7f67075ab38b00959909b20acb4cb929c9553c6d59004e004f006253b73fac5a7941fbc756c2edc52c79a31253877b97b708f4fa1e92ab992c8f77fd37df55d13fca5578e1fc148aa3de89328b797713293cf766818b3b1f1771dfc31400400202054ea0c080111cf88002075c80c1c10103019d5da61991bd1d8cfeee19682f9bc3b9604c28c5845e19f96bc9f268bf64b793c957c9f4abd06521daf2d7da2d84cd23ddbb222faa4a335439680a656c7e74c5f8f76bb49e684ffa4ec97fa2fe3d38f2a82bc1bd2d8565a1fc4a87082d120935c43d4b9424046206a22f224b0da762957018151e0a175e385442f37c3eb79e58070aeab1424c74a1eb37c3518cd9f06262086c1d3a5dd6a7657c3ad424410cdff63f839367523dab7f8fe4a131f28f87685679571e1bdf29336d1b4a95d09fd708cea199a1a65066deb5b8e6efda68772dba17e1c2136355abdc142b2863c8e4857bb4b1dfbca7afc5ce0200848085d4400dcc14'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x468e79f295a845bcde06343a'::bytea, '\x0128b52ffd606f01750b00f6a65a1bb0a7720c4339e072a4d78d31259899f91303909972535266b01c025a004f0050002e3675fbc3aa9517b47f6c25dc5ecc92372a3175b877798b40afef21b99ac9f278d77ff35d15fda35c8517ce4fa138ea9d28b398773791c2736f16b8b8f37111f73d4c01002c2860e0050c0e58c100276020810b381890e00082d9659a11d9dbc1e8ef9e81f6b2399c0bc68452e0a84fe89591bf962c8ff64b763b997c954cbf0a5d16a22d7faddd42d83cd2bd2bf2a2aa34439583a650c6e647578c7fbf46eb89f6a4ef94fc27ea3f8fba12dcdb525816caaf7488d022915043dcb3444942206620fa22b2d49c0b722a56098751e1a170e185432534cfe773eb8975a0a01e2bc44417ba7e331cc5980d2f2686c0d6a1d3657d5ac6a7434d3a410cdff63f839367523dab7f8fe4a131f28f87685679571e1bdf29336d1b4a95d09fd708cea199a1a65066deb5b8e6efda68772dba17e1c2136355abdc142b2863c8e4857bb4b1dfbca7afc54e1c0900'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x6b3523988754115c942a50e5'::bytea, '\x0128b52ffd606e018d0b0026a6581ac0a572ff0f0c7f67075ab38b00959909b20a939b9292c255e3d858004e004e00e1db2df1778fa9e6729d75524ebe3c2730a327f3e29be17f4aa7deadc8d70cc671f0527d563fcf59d7d9201f8f65786ed20c5bda489afe0c72c6474e12993de5cda70000121028700205068ce0c0071438e0020c0e0e18084f6814d40319df9a86fc5f8ea64cc5e678e5f96da532425fbf2d6284adb210fc25f932c68d75c183d6969117e59653242e369599207227efc84bc5e9fff0a03daa2a8a31e331cbe576e86a9b8e0ce57cdf4271ea957db9b41498e402ef4ea684f08a7da77b0c67feb2517c72437675d24521981157641ac485838472862a358c90829fd5098d079b0e17ea62fa0f27ea2594a9d7c9f993e787035f884b9edacb5b3e8356e18b69a135cc7046df6ed7ccd44b2a280d126b86c1f6a1155dd29952918ec5dd188f980e92a8a1234de2a6ee5e65c8102943316daaffd58ae490b8a719352adc6c4aef4d0403040113d158eb9b7c44410a'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x18ee99f7023301556d741b33'::bytea, '\x0128b52ffd606f019d0b003626591bb0a7720c4339e072a4d78d31259899f9130320372525456628870359004e004e00df6e89bf7b4c3597ebac9372f2e53981193d9917df0cff533af56e45be66308e8397eab3fa79cebace06f9782cc3739366d8d246d2f46790333e7292c8ec296f3e0500b0a080811730386005039c8081042ee06040820308028446413d90f1ad69c8ffe568ca546c8e579edf562a23f4f5db2246d82a0bc15f922f63dc58173c686d1979516e3945e2625399092277f28ebc549cfe0f0fdaa3aaa218331eb35c6e87aeb6e9c810cef72d14a75ed9974b4b81492ef0ee644a08afd877bac770e62f1bc527376457275d1482197145a6415c38482867a852c30829f8599dd078b0e970a12ea6ff70a25e42997a9d9c3f797e38f085f84b9edacb5b3e8356e18b69a135cc7046df6ed7ccd44b2a280d126b86c1f6a1155dd29952918ec5dd188f980e92a8a1234de2a6ee5e65c8102943316daaffd58ae490b8a719352adc6c4aef4d5403040113d158eb9b8444410a'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x2a3c33c464926f86546a3674'::bytea, '\x0128b52ffd606e01950b0066a6591ac0a572ff0f0c7f67075ab38b0095992994fa96999999c9007c6c59004f004f00699cc7775954539bf88441e3f45506f5636e7a245b93bac35a62513a5dbdbe855a5f270984dde4fed21d2e544bca63caf5234c3d6fdea35fe264afaadb8e1e84e96d1400400202054ea0c080111cf88002075c80c1c10103016c1acad6a3525316c7fff8613b8a909843d8f07a64ac090adc87b641d6e546f7e1c495110997354bcd32f8936badba8fed07ae90a9ad292c1482ee7a574aeeee255e1125e755326d42e8e14b4266098ee25ba1cba89be4191e42b14523993324f499815fec1f51aee187477fec3678bdf9947774b8c0569c474b1e02d9f16a08e9d70df589fd68d28dbaa292616ef57cfc970bd32151bb8463c2aa84cf0179e8ed34567b423cb3172ecc76d575fd3ae89b17187cac3350cc8ebd336b35922948e81bc509dd95e0b496c6d4d03fe1dd6e284cd6322f5fa94a3da7615ea3f548c85066e722720b3d27570894010200321f11e57410a4'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x9cbfcd0887accf2220e88f85'::bytea, '\x0128b52ffd606f019d0b0076e6591bb0a7720c4339e072a4d78d31259899e98fc421333333736630170259004f004f00c6797c974535b5894f18344e5f65503fe6a647b235a93bac2516a5d3d5eb5ba8f5759240d84dee2fdde142b5a43ca65c3fc2d4f3e63dfa254ef6aabaede84198de4601002c2860e0050c0e58c100276020810b381890e00082a6a16c3d2a356571fc8f1fb6a3088939840daf47c69aa0c07d681b645d6e741f4e5c19917059b3d42c833fb9d6aafbd87ee00a99da9ac24221e8ae77a5e4ee5ee21551725e25d326841ebe2464960c28be15ba8cba499ee121145b34923943429f19f8c5fe11e51a7e78f4c76e83d79b4f7947870b6cc579b4e421901daf86907edd509fd88f26dda82b2a19e656cfc77fb9301d12b54b3826ac4af8cc0179e8ed34567b423cb3172ecc76d575fd3ae89b17187cac3350cc8ebd336b35922948e81bc509dd95e0b496c6d4d03fe1dd6e284cd6322f5fa94a3da7615ea3f548c85066e722720b3d275708941e0200321f11e77410a4'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x626b880144c727eb07873621'::bytea, '\x0128b52ffd606e017d0b00a6a6591ac0a572ff0f0c7f67075ab38b00959909b20a4bb92929c9553c6d59004f004f00daeca615fa3f33785e5c1551d6fd14755191ea49a7c7a943a42771f3b11661ea7b3c893ab464080b7fbece12eee78d3b6cf2cbea2b7e5cf4c2ab0b79f96206aadaa3fa0500908040811328306004073ea0c00117607070c040c2ade312aafd94ea7a95e1fac58983e824694c53b0fab784a40bf16d101ac729290e742e4d85f26743d7212118832f7f7332554483b8118ef50c5f372ecba5eea21e6d6843336929ffa14c5bccf10558d3a19a97178dd4ed7d73b1dd2db9e213cba66332e853e789b2ef90dde39c343afa56877305dae2d289dd09351a566d1b879a3c3b96d0dd29987f3665ae38d472380d1b8dcfcf7f2cf4d37368730b5d47a8ed4385fc7fce1216c4c21b06fd2a2b47303963500d07a763a07698d4389b638ae0bc929d3d22d21365c9deded8bea3ff1262a8b7da92c317cb887568b19836b21e6783761dbc431fd2820401000405330a'::bytea);
INSERT INTO "stored"."threadmark_segment" ("thread_id", "key", "data") VALUES ('two', '\x23970d5872ba8d953b278517'::bytea, '\x0128b52ffd606f018d0b00b6265a1bb0a7720c4339e072a4d78d31259899f91303907253525266b01c025a004f004f00cd6e5aa1ff3383e7c5551165dd4f511715a99e747a9c3a447a12371f6b11a6bec793a8434b86b0f0e7eb2ce17edeb8c326bfacbee2c7452fbcba90972f66a0aa3daa5f00000b0a18780183035630c0091848e0020e0624388020dc3a2ea1da4fa9ae5719ae5f9c38884e92c63405ab7f4b48ba10df06a1719c92e240e7d254287f36741d128231f8f23727534534881be158cff075e3b25cea2eead18636349396f21fcab4c51c9f06351daa7979d148ddde3717dbdd922b3eb16c3a26833e759e28fb0ed93dce49a3a36f753857a02d2e9dd89d50a361d5b671a8c9b36309dd9d82f96753e68a432d87d3b0d1f8fcfcc7423f3d873637095d47a8ed4385fc7fce1216c4c21b06fd2a2b47303963500d07a763a07698d4389b638ae0bc929d3d22d21365c9deded8bea3ff1262a8b7da92c317cb887568b19836b21e6783761dbc431fd2826001000505330a'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-0a0dc6f87718', NULL, NULL, 1796039773392184, NULL, '{"source":"loop","step":0}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30302b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657301a47475726e01a46e6f746501b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657301a47475726e01a46e6f74650183a86d65737361676573c4220147cd6f1bd6c96c9a80d41ff5ef041f3ad7884793cafcfd39936e5e92fc89c46d01a47475726ec40400016d00a46e6f7465c40a00016da66f6e65202030c0'::bytea, '\x505f82af81876ec35ba0aa79'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-1b1aab2cd31e', NULL, '1f1e501f-9a39-6dfa-aadb-0a0dc6f87718', 1796039773402125, NULL, '{"source":"loop","step":1}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30312b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657302a47475726e02a46e6f746502b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657302a47475726e02a46e6f74650283a86d65737361676573c4350247cd6f1bd6c96c9a80d41ff5f885aa654d0f38192bbc2229ef04ee041092e74d001fdc147d6cd528fa389718f96799ff4f0b6d01a47475726ec40400016d01a46e6f7465c40a00016da66f6e65202031c0'::bytea, '\x89a14228ce9ed7e60e8d9d81'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-2c8e8f2c6ec8', NULL, '1f1e501f-9a39-6dfa-aadb-1b1aab2cd31e', 1796039773409291, NULL, '{"source":"loop","step":2}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30322b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657303a47475726e03a46e6f746503b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657303a47475726e03a46e6f74650383a86d65737361676573c4430347cd6f1bd6c96c9a80d41ff5f885aa654d0f38192bbc222964519b3b692a4585dc502317ef04ee04ee041093e74d002f3fe36e1ab13776779c10a9a4d8752a5f6d01a47475726ec40400016d02a46e6f7465c40a00016da66f6e65202032c0'::bytea, '\x59c3a0b5429e7c0bde038e5e'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-398987322e25', NULL, '1f1e501f-9a39-6dfa-aadb-2c8e8f2c6ec8', 1796039773413120, NULL, '{"source":"loop","step":3}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30332b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657304a47475726e04a46e6f746504b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657304a47475726e04a46e6f74650483a86d65737361676573c4510447cd6f1bd6c96c9a80d41ff5f885aa654d0f38192bbc222964519b3b692a4585dc502317e8631dd77a3ccaba1097439fef04ee04ee04ee041094e74d003f2dfe75b90703fc0afbbf0c4ca87630a46d01a47475726ec40400016d03a46e6f7465c40a00016da66f6e65202033c0'::bytea, '\xb55572049edcfc0ba5f5f320'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-4f57007d1034', NULL, '1f1e501f-9a39-6dfa-aadb-398987322e25', 1796039773416767, NULL, '{"source":"loop","step":4}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30342b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657305a47475726e05a46e6f746505b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657305a47475726e05a46e6f74650583a86d65737361676573c45f0547cd6f1bd6c96c9a80d41ff5f885aa654d0f38192bbc222964519b3b692a4585dc502317e8631dd77a3ccaba1097439f9ec7fa7ea9da5d0c2e7fdba6ef04ee04ee04ee04ee041095e74d004fdcd14daa60d2567d6cf879b4768c03986d01a47475726ec40400016d04a46e6f7465c40a00016da66f6e65202034c0'::bytea, '\x616fc3e844b6b07206f5134c'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-50e53606defc', NULL, '1f1e501f-9a39-6dfa-aadb-4f57007d1034', 1796039773418132, NULL, '{"source":"loop","step":5}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30352b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657306a47475726e06a46e6f746506b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657306a47475726e06a46e6f74650683a86d65737361676573c46d0647cd6f1bd6c96c9a80d41ff5f885aa654d0f38192bbc222964519b3b692a4585dc502317e8631dd77a3ccaba1097439f9ec7fa7ea9da5d0c2e7fdba6728dbaa6bb8b6a243cc683bdef04ee04ee04ee04ee04ee041096e74d005f204d3c5ad4c1ac2c2b353be8aa732a826d01a47475726ec40400016d05a46e6f7465c40a00016da66f6e65202035c0'::bytea, '\x4e70ff77489c1ee2abb9adf8'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-0e2f1038f0b5', NULL, NULL, 1796039773420644, NULL, '{"source":"loop","step":0}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30302b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657301a47475726e01a46e6f746501b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657301a47475726e01a46e6f74650183a86d65737361676573c4220128f1bbd062c7b4c5bdfa2b66ef041fec55d81bc50748a6598ddb419cd62d3f6d01a47475726ec40400016d00a46e6f7465c41100016dad6f6e65206368696c643a312030c0'::bytea, '\x181109b33d0a09c456524b03'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-1cec83feb17b', NULL, '1f1e501f-9a39-6dfa-aadb-0e2f1038f0b5', 1796039773422980, NULL, '{"source":"loop","step":1}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30312b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657302a47475726e02a46e6f746502b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657302a47475726e02a46e6f74650283a86d65737361676573c4350228f1bbd062c7b4c5bdfa2b66ba67c4e5da940ee93d603f56ef04ee041092e74d001f87e4d08341b0e9a13b66c35455e9cca36d01a47475726ec40400016d01a46e6f7465c41100016dad6f6e65206368696c643a312031c0'::bytea, '\xc6ab58b2e8e4d57e5656c53f'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-222138efbaeb', NULL, '1f1e501f-9a39-6dfa-aadb-1cec83feb17b', 1796039773424657, NULL, '{"source":"loop","step":2}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30322b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657303a47475726e03a46e6f746503b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657303a47475726e03a46e6f74650383a86d65737361676573c4430328f1bbd062c7b4c5bdfa2b66ba67c4e5da940ee93d603f568cddf0638ddac567460184feef04ee04ee041093e74d002f5f7a8a02a2bd88dc7caaf8713a2af1ba6d01a47475726ec40400016d02a46e6f7465c41100016dad6f6e65206368696c643a312032c0'::bytea, '\xa01f56dbb3b628bf1af65629'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-365b57bb7d97', NULL, '1f1e501f-9a39-6dfa-aadb-222138efbaeb', 1796039773427667, NULL, '{"source":"loop","step":3}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30332b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657304a47475726e04a46e6f746504b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657304a47475726e04a46e6f74650483a86d65737361676573c4510428f1bbd062c7b4c5bdfa2b66ba67c4e5da940ee93d603f568cddf0638ddac567460184fec87b30061e385f5cd0640044ef04ee04ee04ee041094e74d003f260a3864272f5b1438631bf825a933b56d01a47475726ec40400016d03a46e6f7465c41100016dad6f6e65206368696c643a312033c0'::bytea, '\xbbecd6a4f0d3365fe4453393'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-4cc824d4589c', NULL, '1f1e501f-9a39-6dfa-aadb-365b57bb7d97', 1796039773429407, NULL, '{"source":"loop","step":4}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30342b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657305a47475726e05a46e6f746505b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657305a47475726e05a46e6f74650583a86d65737361676573c45f0528f1bbd062c7b4c5bdfa2b66ba67c4e5da940ee93d603f568cddf0638ddac567460184fec87b30061e385f5cd0640044b03c1229ca65ad06e5367ebeef04ee04ee04ee04ee041095e74d004fc5549fe7707377fc664a12e260459ef66d01a47475726ec40400016d04a46e6f7465c41100016dad6f6e65206368696c643a312034c0'::bytea, '\x8178a9b0b0d55befa68a76cf'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-5e71d5f860c3', NULL, '1f1e501f-9a39-6dfa-aadb-4cc824d4589c', 1796039773432274, NULL, '{"source":"loop","step":5}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30352b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657306a47475726e06a46e6f746506b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657306a47475726e06a46e6f74650683a86d65737361676573c46d0628f1bbd062c7b4c5bdfa2b66ba67c4e5da940ee93d603f568cddf0638ddac567460184fec87b30061e385f5cd0640044b03c1229ca65ad06e5367ebe8f849f98e5cf03cc8f1c9bccef04ee04ee04ee04ee04ee041096e74d005f8b9eb7405ad372fcd6532c01753161da6d01a47475726ec40400016d05a46e6f7465c41100016dad6f6e65206368696c643a312035c0'::bytea, '\xec948f720cbd329c258b957f'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-094e7d575d17', NULL, NULL, 1796039773433884, NULL, '{"source":"loop","step":0}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30302b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657301a47475726e01a46e6f746501b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657301a47475726e01a46e6f74650183a86d65737361676573c422014be706fe64d9cd00b963e136ef041fcf87a6e70494f574d2612f34bff5e6186d01a47475726ec40400016d00a46e6f7465c40a00016da674776f202030c0'::bytea, '\x3b673d91884048a2b4a2a644'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-1a9ad7196189', NULL, '1f1e501f-9a39-6dfa-aadb-094e7d575d17', 1796039773439191, NULL, '{"source":"loop","step":1}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30312b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657302a47475726e02a46e6f746502b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657302a47475726e02a46e6f74650283a86d65737361676573c435024be706fe64d9cd00b963e1369e234f64901dc8886836ae74ef04ee041092e74d001f2a0a167aa10fda008d69515c246b6c6f6d01a47475726ec40400016d01a46e6f7465c40a00016da674776f202031c0'::bytea, '\x09d25aa4784cb0a1c37f8e94'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-2928de962a6d', NULL, '1f1e501f-9a39-6dfa-aadb-1a9ad7196189', 1796039773440350, NULL, '{"source":"loop","step":2}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30322b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657303a47475726e03a46e6f746503b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657303a47475726e03a46e6f74650383a86d65737361676573c443034be706fe64d9cd00b963e1369e234f64901dc8886836ae743b21ee73f94ed0f1f730b7bcef04ee04ee041093e74d002f5018295ba112352bd393f85ce0097c9a6d01a47475726ec40400016d02a46e6f7465c40a00016da674776f202032c0'::bytea, '\xe6dd9789d9ee8a56e893985b'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-3ff00fe321ec', NULL, '1f1e501f-9a39-6dfa-aadb-2928de962a6d', 1796039773451928, NULL, '{"source":"loop","step":3}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30332b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657304a47475726e04a46e6f746504b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657304a47475726e04a46e6f74650483a86d65737361676573c451044be706fe64d9cd00b963e1369e234f64901dc8886836ae743b21ee73f94ed0f1f730b7bc53aeab78e8e19f0abde43b26ef04ee04ee04ee041094e74d003ff94635e279322b669b8263944b1bf7d16d01a47475726ec40400016d03a46e6f7465c40a00016da674776f202033c0'::bytea, '\x9e191f6350ad11aa00ebf522'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-4771202ab6fa', NULL, '1f1e501f-9a39-6dfa-aadb-3ff00fe321ec', 1796039773453074, NULL, '{"source":"loop","step":4}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30342b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657305a47475726e05a46e6f746505b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657305a47475726e05a46e6f74650583a86d65737361676573c45f054be706fe64d9cd00b963e1369e234f64901dc8886836ae743b21ee73f94ed0f1f730b7bc53aeab78e8e19f0abde43b2683ea8dc24bee416d4f6dcdd5ef04ee04ee04ee04ee041095e74d004f3218468d3496700676207660107f15a46d01a47475726ec40400016d04a46e6f7465c40a00016da674776f202034c0'::bytea, '\x0e5243055716488b7567ce74'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-5caeaebcb0aa', NULL, '1f1e501f-9a39-6dfa-aadb-4771202ab6fa', 1796039773454037, NULL, '{"source":"loop","step":5}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30352b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657306a47475726e06a46e6f746506b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657306a47475726e06a46e6f74650683a86d65737361676573c46d064be706fe64d9cd00b963e1369e234f64901dc8886836ae743b21ee73f94ed0f1f730b7bc53aeab78e8e19f0abde43b2683ea8dc24bee416d4f6dcdd53e86f096a22453398eaa852bef04ee04ee04ee04ee04ee041096e74d005f62c74ccef63c6c8ee3e9e111142b2c296d01a47475726ec40400016d05a46e6f7465c40a00016da674776f202035c0'::bytea, '\xd8ba74490402d4f9d5a176d9'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-0c1db9b253e3', NULL, NULL, 1796039773454964, NULL, '{"source":"loop","step":0}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30302b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657301a47475726e01a46e6f746501b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657301a47475726e01a46e6f74650183a86d65737361676573c422018301415698baaf219e3d7433ef041f45ee966e6aa2fe016d53d8ff1998abd86d01a47475726ec40400016d00a46e6f7465c41100016dad74776f206368696c643a312030c0'::bytea, '\xfd0f4cdd1f09e6500d69e955'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-1984468fb596', NULL, '1f1e501f-9a39-6dfa-aadb-0c1db9b253e3', 1796039773458023, NULL, '{"source":"loop","step":1}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30312b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657302a47475726e02a46e6f746502b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657302a47475726e02a46e6f74650283a86d65737361676573c435028301415698baaf219e3d743382bc455d7b06b0317f61d0d0ef04ee041092e74d001f977676d06682a06cbb99d7b8528cade46d01a47475726ec40400016d01a46e6f7465c41100016dad74776f206368696c643a312031c0'::bytea, '\x9611630ea42861b857b7425d'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-23153555d6ae', NULL, '1f1e501f-9a39-6dfa-aadb-1984468fb596', 1796039773459251, NULL, '{"source":"loop","step":2}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30322b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657303a47475726e03a46e6f746503b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657303a47475726e03a46e6f74650383a86d65737361676573c443038301415698baaf219e3d743382bc455d7b06b0317f61d0d0b384831ff41e78fc3efc6628ef04ee04ee041093e74d002fb67a107d0cea6169fbacba08b67aa1596d01a47475726ec40400016d02a46e6f7465c41100016dad74776f206368696c643a312032c0'::bytea, '\xb47925699e418de4b93cb407'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-319c1e84fb36', NULL, '1f1e501f-9a39-6dfa-aadb-23153555d6ae', 1796039773460417, NULL, '{"source":"loop","step":3}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30332b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657304a47475726e04a46e6f746504b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657304a47475726e04a46e6f74650483a86d65737361676573c451048301415698baaf219e3d743382bc455d7b06b0317f61d0d0b384831ff41e78fc3efc66286b3523988754115c942a50e5ef04ee04ee04ee041094e74d003f31f94ef8b7a90714201a466abc462cd36d01a47475726ec40400016d03a46e6f7465c41100016dad74776f206368696c643a312033c0'::bytea, '\x96d20f65e1b1a7551562a25b'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-4910fcfd36d1', NULL, '1f1e501f-9a39-6dfa-aadb-319c1e84fb36', 1796039773461384, NULL, '{"source":"loop","step":4}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30342b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657305a47475726e05a46e6f746505b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657305a47475726e05a46e6f74650583a86d65737361676573c45f058301415698baaf219e3d743382bc455d7b06b0317f61d0d0b384831ff41e78fc3efc66286b3523988754115c942a50e52a3c33c464926f86546a3674ef04ee04ee04ee04ee041095e74d004f67706da32598c85ff741c09c0fc32de76d01a47475726ec40400016d04a46e6f7465c41100016dad74776f206368696c643a312034c0'::bytea, '\xccf2948b7286f27ca04e7807'::bytea);
INSERT INTO "stored"."threadmark_checkpoint" ("thread_id", "ns", "rank", "id", "parent", "created_at", "run", "metadata", "header", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-5164f16d68f3', NULL, '1f1e501f-9a39-6dfa-aadb-4910fcfd36d1', 1796039773463959, NULL, '{"source":"loop","step":5}', '\x0002683194c47284a17604a27473b9323032362d31312d32305430303a30303a30352b30303a3030ad76657273696f6e735f7365656e81a56d6f64656c83a86d6573736167657306a47475726e06a46e6f746506b0757064617465645f6368616e6e656c7393a86d65737361676573a47475726ea46e6f746583a86d6573736167657306a47475726e06a46e6f74650683a86d65737361676573c46d068301415698baaf219e3d743382bc455d7b06b0317f61d0d0b384831ff41e78fc3efc66286b3523988754115c942a50e52a3c33c464926f86546a3674626b880144c727eb07873621ef04ee04ee04ee04ee04ee041096e74d005f4bd981dd3ca78d38971b833a3588f9386d01a47475726ec40400016d05a46e6f7465c41100016dad74776f206368696c643a312035c0'::bytea, '\x301f167b1145a7f13479ecba'::bytea);
INSERT INTO "stored"."threadmark_head" ("thread_id", "ns", "rank", "needs", "checkpoints", "updated_at", "minute", "owner") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-5164f16d68f3',  E'{"\\\\x8301415698baaf219e3d7433","\\\\x82bc455d7b06b0317f61d0d0","\\\\xb384831ff41e78fc3efc6628","\\\\x6b3523988754115c942a50e5","\\\\x2a3c33c464926f86546a3674","\\\\x626b880144c727eb07873621"}'::bytea[], 6, 1796039773463959, 29933996, NULL);
INSERT INTO "stored"."threadmark_head" ("thread_id", "ns", "rank", "needs", "checkpoints", "updated_at", "minute", "owner") VALUES ('only a write', '', '', '{}', 0, 1796039773472974, 29933996, NULL);
INSERT INTO "stored"."threadmark_head" ("thread_id", "ns", "rank", "needs", "checkpoints", "updated_at", "minute", "owner") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-50e53606defc',  E'{"\\\\x47cd6f1bd6c96c9a80d41ff5","\\\\xf885aa654d0f38192bbc2229","\\\\x64519b3b692a4585dc502317","\\\\xe8631dd77a3ccaba1097439f","\\\\x9ec7fa7ea9da5d0c2e7fdba6","\\\\x728dbaa6bb8b6a243cc683bd"}'::bytea[], 6, 1796039773418132, 29933996, 'ada');
INSERT INTO "stored"."threadmark_head" ("thread_id", "ns", "rank", "needs", "checkpoints", "updated_at", "minute", "owner") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-5e71d5f860c3',  E'{"\\\\x28f1bbd062c7b4c5bdfa2b66","\\\\xba67c4e5da940ee93d603f56","\\\\x8cddf0638ddac567460184fe","\\\\xc87b30061e385f5cd0640044","\\\\xb03c1229ca65ad06e5367ebe","\\\\x8f849f98e5cf03cc8f1c9bcc"}'::bytea[], 6, 1796039773432274, 29933996, NULL);
INSERT INTO "stored"."threadmark_head" ("thread_id", "ns", "rank", "needs", "checkpoints", "updated_at", "minute", "owner") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-5caeaebcb0aa',  E'{"\\\\x4be706fe64d9cd00b963e136","\\\\x9e234f64901dc8886836ae74","\\\\x3b21ee73f94ed0f1f730b7bc","\\\\x53aeab78e8e19f0abde43b26","\\\\x83ea8dc24bee416d4f6dcdd5","\\\\x3e86f096a22453398eaa852b"}'::bytea[], 6, 1796039773454037, 29933996, NULL);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-0a0dc6f87718', '\x017461736b2d30'::bytea, 536870912, 'path', '', '\x0147cd6f1bd6c96c9a80d41ff59600a86d65737361676573c4220147cd6f1bd6c96c9a80d41ff5ef041f3ad7884793cafcfd39936e5e92fc89c46d0101a47475726ec40400016d00'::bytea, '\x1594f9757e50e844f15873a2'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-0a0dc6f87718', '\x017461736b2d30'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\xe62489c5d56bd55fa671e60c'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-1b1aab2cd31e', '\x017461736b2d31'::bytea, 536870912, 'path', '', '\x0125e1801e36c3e5908217e8339600a86d65737361676573c4220125e1801e36c3e5908217e833ef041ff27c13ba51239785c32218d90f70b5f06d0101a47475726ec40400016d01'::bytea, '\x5c5ffdb26cedbfb3e162301f'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-1b1aab2cd31e', '\x017461736b2d31'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\xb75f46b2e1ffe5dfdfd5950b'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-2c8e8f2c6ec8', '\x017461736b2d32'::bytea, 536870912, 'path', '', '\x01928c159ff2cccb351c8b50479600a86d65737361676573c42201928c159ff2cccb351c8b5047ef041f18a740ede91692d74df5e19006f229c26d0101a47475726ec40400016d02'::bytea, '\x4f1aaa1d9136a02c18700e37'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-2c8e8f2c6ec8', '\x017461736b2d32'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\xe38ed141f1828a32dff6be15'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-398987322e25', '\x017461736b2d33'::bytea, 536870912, 'path', '', '\x018ae4260d8ca0844ba5e22eae9600a86d65737361676573c422018ae4260d8ca0844ba5e22eaeef041ff45bf490c33d3f9e345c5b4ccd940f2b6d0101a47475726ec40400016d03'::bytea, '\x975f18434f1b6bea14895d07'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-398987322e25', '\x017461736b2d33'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\x8e1b12980fe13045272d7d5b'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-4f57007d1034', '\x017461736b2d34'::bytea, 536870912, 'path', '', '\x0168838e151dd80700b307d2ed9600a86d65737361676573c4220168838e151dd80700b307d2edef041fc14515b1502c9fd013077028e1e7b0ce6d0101a47475726ec40400016d04'::bytea, '\xe2856be1bc20d69f28f2998c'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-4f57007d1034', '\x017461736b2d34'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\xca3be66014c91ed430226222'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-50e53606defc', '\x017461736b2d35'::bytea, 536870912, 'path', '', '\x01759e0009122219960fd106429600a86d65737361676573c42201759e0009122219960fd10642ef041f06d553a30d7fc4758bc171a2388c94b36d0101a47475726ec40400016d05'::bytea, '\xe3b43717a28a5670a6e85ba7'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', '', '1f1e501f-9a39-6dfa-aadb-50e53606defc', '\x017461736b2d35'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\x73759dfa7653e62ed563b8cb'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-0e2f1038f0b5', '\x017461736b2d30'::bytea, 536870912, 'path', '', '\x0128f1bbd062c7b4c5bdfa2b669600a86d65737361676573c4220128f1bbd062c7b4c5bdfa2b66ef041fec55d81bc50748a6598ddb419cd62d3f6d0101a47475726ec40400016d00'::bytea, '\x2c296a8bad643705bb7aa3b2'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-0e2f1038f0b5', '\x017461736b2d30'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\xa18acac2458e93158245ff5d'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-1cec83feb17b', '\x017461736b2d31'::bytea, 536870912, 'path', '', '\x013068957b014739ee796c33669600a86d65737361676573c422013068957b014739ee796c3366ef041fa415d1a56f02e1c0fba0da98c36039e66d0101a47475726ec40400016d01'::bytea, '\x46ff2823d81d02fc26c9a275'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-1cec83feb17b', '\x017461736b2d31'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\xbff452a73f7be19325408518'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-222138efbaeb', '\x017461736b2d32'::bytea, 536870912, 'path', '', '\x018290209447451f8af8b484b79600a86d65737361676573c422018290209447451f8af8b484b7ef041fd9046082da70456921c5af6011da1f376d0101a47475726ec40400016d02'::bytea, '\x47d0a8e47dcd0f124b23a6d5'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-222138efbaeb', '\x017461736b2d32'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\x7a721fd73f9d6974d66f0597'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-365b57bb7d97', '\x017461736b2d33'::bytea, 536870912, 'path', '', '\x01c9598adc496c7bffea7f85ea9600a86d65737361676573c42201c9598adc496c7bffea7f85eaef041f525024445a62ed691f7ed849e0a2e6666d0101a47475726ec40400016d03'::bytea, '\x5e22b079976c9613a5416ff9'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-365b57bb7d97', '\x017461736b2d33'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\xac8389572c15559592fcf621'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-4cc824d4589c', '\x017461736b2d34'::bytea, 536870912, 'path', '', '\x0192c9a5b93bd1967a1b5849a99600a86d65737361676573c4220192c9a5b93bd1967a1b5849a9ef041f36f7b3ff3dc99d94d77e858e7e9d1e496d0101a47475726ec40400016d04'::bytea, '\xd1aa202c6c39fc11fdd381b6'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-4cc824d4589c', '\x017461736b2d34'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\xb10096d3ca66d4219314de66'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-5e71d5f860c3', '\x017461736b2d35'::bytea, 536870912, 'path', '', '\x0136bc14030ceb2ae0e99a63679600a86d65737361676573c4220136bc14030ceb2ae0e99a6367ef041fc5a1fbd6c96f03e1240f8c78bf7834bb6d0101a47475726ec40400016d05'::bytea, '\xcfcfa2b6b368ccb058d15d2e'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('one', 'child:1', '1f1e501f-9a39-6dfa-aadb-5e71d5f860c3', '\x017461736b2d35'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\xc09fd24e42fe2e0d0297ed2a'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-094e7d575d17', '\x017461736b2d30'::bytea, 536870912, 'path', '', '\x014be706fe64d9cd00b963e1369600a86d65737361676573c422014be706fe64d9cd00b963e136ef041fcf87a6e70494f574d2612f34bff5e6186d0101a47475726ec40400016d00'::bytea, '\x9f6edf075ee13854e5c8c415'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-094e7d575d17', '\x017461736b2d30'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\x681c453360ab0b4d57ba5560'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-1a9ad7196189', '\x017461736b2d31'::bytea, 536870912, 'path', '', '\x017790f2706d57a689e84d8f749600a86d65737361676573c422017790f2706d57a689e84d8f74ef041fd3167714e9f5a08afceb44b629b5cc616d0101a47475726ec40400016d01'::bytea, '\x53b1ed825d2453d8ed0a0634'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-1a9ad7196189', '\x017461736b2d31'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\x91c5a27fe401c037cf3f1f91'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-2928de962a6d', '\x017461736b2d32'::bytea, 536870912, 'path', '', '\x01670dadcaf7dcbdae7b9b8deb9600a86d65737361676573c42201670dadcaf7dcbdae7b9b8debef041ffc45de2103dd28236078b0d2d79ce86a6d0101a47475726ec40400016d02'::bytea, '\x1ff8298bd561e86e93b8fb93'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-2928de962a6d', '\x017461736b2d32'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\x0d2bde19476bf5f0ef385262'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-3ff00fe321ec', '\x017461736b2d33'::bytea, 536870912, 'path', '', '\x01a29e18257da1ecdf342e174a9600a86d65737361676573c42201a29e18257da1ecdf342e174aef041f7468cc56362ee0597422bab9958e5cb76d0101a47475726ec40400016d03'::bytea, '\xfd4abc8efa37cdd2fcb507f9'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-3ff00fe321ec', '\x017461736b2d33'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\xbe700232faa39b7a4e8242ca'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-4771202ab6fa', '\x017461736b2d34'::bytea, 536870912, 'path', '', '\x010b59789b86db88940b4beff39600a86d65737361676573c422010b59789b86db88940b4beff3ef041f7b489c1e63f133d25dc3754dd20929fc6d0101a47475726ec40400016d04'::bytea, '\x84c3e2a3cd33d34bea0cd564'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-4771202ab6fa', '\x017461736b2d34'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\xb10ee240b1e6b0556aaec11a'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-5caeaebcb0aa', '\x017461736b2d35'::bytea, 536870912, 'path', '', '\x01c2ad4c73264387d543ab68729600a86d65737361676573c42201c2ad4c73264387d543ab6872ef041f9ba9c69943bafcbd404cbe6d62ca339e6d0101a47475726ec40400016d05'::bytea, '\x61adec1b8f48b8a6791a93ee'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', '', '1f1e501f-9a39-6dfa-aadb-5caeaebcb0aa', '\x017461736b2d35'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\x03c31ddfb53ac00ba1aa1ab8'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-0c1db9b253e3', '\x017461736b2d30'::bytea, 536870912, 'path', '', '\x018301415698baaf219e3d74339600a86d65737361676573c422018301415698baaf219e3d7433ef041f45ee966e6aa2fe016d53d8ff1998abd86d0101a47475726ec40400016d00'::bytea, '\xed25fc7e32c2502acd604294'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-0c1db9b253e3', '\x017461736b2d30'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\xcf009db010e854f0b5e35163'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-1984468fb596', '\x017461736b2d31'::bytea, 536870912, 'path', '', '\x0171a4684c5f84c5dc8fd7c7c49600a86d65737361676573c4220171a4684c5f84c5dc8fd7c7c4ef041ff4adf43d676b82fa2a358708ffd3cb6c6d0101a47475726ec40400016d01'::bytea, '\x39fc3a1ed15e9f8907967db7'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-1984468fb596', '\x017461736b2d31'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\xf07beee7bc40453033323f10'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-23153555d6ae', '\x017461736b2d32'::bytea, 536870912, 'path', '', '\x01468e79f295a845bcde06343a9600a86d65737361676573c42201468e79f295a845bcde06343aef041f399d173048f723f8fe7fa647bc21d7276d0101a47475726ec40400016d02'::bytea, '\x980945b3582997812f026bf7'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-23153555d6ae', '\x017461736b2d32'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\x216ce758988f069d7d103739'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-319c1e84fb36', '\x017461736b2d33'::bytea, 536870912, 'path', '', '\x0118ee99f7023301556d741b339600a86d65737361676573c4220118ee99f7023301556d741b33ef041fc3c3a90af02a36b32aeecd88c0a8d92d6d0101a47475726ec40400016d03'::bytea, '\x4c79e3ec50218d98f5598687'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-319c1e84fb36', '\x017461736b2d33'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\x2667f1edf1fcddff12a3f8ce'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-4910fcfd36d1', '\x017461736b2d34'::bytea, 536870912, 'path', '', '\x019cbfcd0887accf2220e88f859600a86d65737361676573c422019cbfcd0887accf2220e88f85ef041f57f2310eedbf91395d7f3a0f4d2b4bb46d0101a47475726ec40400016d04'::bytea, '\xf009bc12f600b902a149a568'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-4910fcfd36d1', '\x017461736b2d34'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\xdc09f799aff190da451fc086'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-5164f16d68f3', '\x017461736b2d35'::bytea, 536870912, 'path', '', '\x0123970d5872ba8d953b2785179600a86d65737361676573c4220123970d5872ba8d953b278517ef041f3576d67eadadb1f52c20fc37432c4d896d0101a47475726ec40400016d05'::bytea, '\x98ff49d5359595829ae87bdc'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('two', 'child:1', '1f1e501f-9a39-6dfa-aadb-5164f16d68f3', '\x017461736b2d35'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\x356d8bd9a24aaacc00b8d756'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('only a write', '', '1', '\x017461736b'::bytea, 536870912, '', '', '\x009300a86d65737361676573c40b00016da77772697474656e'::bytea, '\x2b8fcc796d0d452a8d768ed2'::bytea);
INSERT INTO "stored"."threadmark_write" ("thread_id", "ns", "checkpoint_id", "task_id", "idx", "task_path", "channel", "value", "checksum") VALUES ('only a write', '', '1', '\x017461736b'::bytea, 1374657985, '', '', '\x000091ce20000000'::bytea, '\xd8189a6df9df83148c41232c'::bytea);
INSERT INTO "stored"."threadmark_replica" ("one", "term", "body") VALUES (true, 1, '{}');
INSERT INTO "stored"."threadmark_outbox" ("thread_id", "position", "body") VALUES ('deleted', 1796039773488939, '\x656e747279'::bytea);
INSERT INTO "stored"."threadmark_position" ("thread_id", "position", "previous") VALUES ('deleted', 1796039773488939, 0);
INSERT INTO "stored"."threadmark_copied" ("thread_id", "position", "epoch") VALUES ('deleted', 5, 6);
