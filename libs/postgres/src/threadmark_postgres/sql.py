"""Every statement of the Postgres backend, one constant each.

`tm.` stands before the name of every table of ours; `schema.in_schema` puts the schema's name there. Names of users
(threads, channels, metadata keys) are always bound, never part of a statement. Every statement names one thread_id, so
that it stays inside one partition or shard, except those that search all threads or that callers share.

The statements about threads themselves stand in `thread_sql`.
"""

from functools import cache

from threadmark.names import MESSAGES_NS
from threadmark.store import ANYONE, PACK

# A reading transaction of several statements sees one state of the database. A writing one sees, when it has waited for
# a lock, what the holder of the lock did.
BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"

# Keeps other processes from setting up the tables until the transaction ends.
LOCK_SETUP = "SELECT pg_advisory_xact_lock(6074030921331797345)"

# Reads the catalogue's tables, because after a wait for the lock above the server's look-up functions may still answer
# from their cache.
HAS_MIGRATIONS = """
SELECT EXISTS (
    SELECT
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relname = 'threadmark_migration'
        AND CASE WHEN $1::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $1::text END
)
"""

HAS_SCHEMA = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1::text)"

LAST_MIGRATION = """
SELECT coalesce(max(number), 0)
FROM tm.migration
"""

RECORD_MIGRATION = """
INSERT INTO tm.migration (number, name, applied_at)
VALUES ($1::bigint, $2::text, now())
"""

# A live thread's epoch.
EPOCH = """
SELECT epoch
FROM tm.thread
WHERE thread_id = $1::text AND live
"""

_LOCK = """
SELECT epoch, live
FROM tm.thread
WHERE thread_id = $1::text
FOR {}
"""
LOCK = _LOCK.format("UPDATE")

# Microseconds since 1970, by the server's clock.
CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

# Why the lease of a thread's row refuses a change with a token, NULL where it does not. The row is read as it was
# locked, the clock at the latest then: a lease that ends while the statement waits still counts as living.
_LEASE_REFUSAL = f"""
    CASE
        WHEN {{given}} NOT IN ({{row}}.token, {ANYONE}) THEN 'lost'
        WHEN {{given}} IS NULL AND {{row}}.lease_ends IS NOT NULL
            THEN CASE WHEN {{row}}.lease_ends > {CLOCK} THEN 'busy' END
    END
"""

# A head's `minute`, by which listings find it: `updated_at` changes with each put, and in an index it would be written
# there each time.
MINUTE = "{} / 60000000"

# A thread has a head for the namespace "" as long as it is there: with the rank "" where it has no checkpoint.
NO_CHECKPOINT = "{head}.rank = '' AND {head}.checkpoints = 0"

# Nothing is revived where somebody else did it, or took a lease, after the change was judged; then it is judged anew.
# A process of an earlier release that deletes a thread leaves its title and metadata.
REVIVE_THREAD = f"""
WITH revived AS (
    UPDATE tm.thread AS t
    SET live = true,
        created_at = $3::bigint,
        owner = $4::text,
        title = NULL,
        folded_title = NULL,
        metadata = NULL,
        expires_at = $5::bigint,
        checksum = $6::bytea
    WHERE thread_id = $1::text AND NOT live AND {_LEASE_REFUSAL.format(given="$2::bigint", row="t")} IS NULL
    RETURNING thread_id, created_at, owner
)
INSERT INTO tm.head (thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)
SELECT thread_id, '', '', '{{}}', 0, created_at, {MINUTE.format("created_at")}, owner
FROM revived
ON CONFLICT DO NOTHING
"""

# A thread that has a head but no row of its own was damaged, and is to be looked at as well.
THREADS = """
SELECT thread_id
FROM tm.thread
WHERE live AND thread_id > $1::text
UNION
SELECT thread_id
FROM tm.head
WHERE thread_id > $1::text
ORDER BY thread_id
LIMIT $2::bigint
"""

# Some checkpoint.
SAMPLE = """
SELECT checksum, header
FROM tm.checkpoint
LIMIT 1
"""

# What a report says of the server, the database and our tables, and which tables of LangGraph's own saver there are
# where the search path leads.
REPORT = """
SELECT
    current_setting('server_version'),
    current_setting('synchronous_commit'),
    current_setting('fsync'),
    current_setting('full_page_writes'),
    pg_catalog.pg_is_in_recovery(),
    current_database(),
    (SELECT coalesce(max(number), 0) FROM tm.migration),
    (
        SELECT coalesce(sum(pg_catalog.pg_total_relation_size(c.oid)), 0)::bigint
        FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_class AS ours ON ours.relnamespace = c.relnamespace
        WHERE ours.oid = (SELECT tableoid FROM tm.migration LIMIT 1)
            AND c.relname LIKE 'threadmark\\_%'
            AND c.relkind = 'r'
    ),
    ARRAY(
        SELECT name
        FROM unnest(ARRAY['checkpoint_blobs', 'checkpoint_migrations', 'checkpoint_writes', 'checkpoints']) AS name
        WHERE pg_catalog.to_regclass(name) IS NOT NULL
    )
"""

# Whether the tables of LangGraph's own saver, where the search path leads, take any space, and ours have no checkpoint.
HAS_ONLY_LANGGRAPH_DATA = """
SELECT pg_catalog.to_regclass('checkpoint_blobs') IS NOT NULL
    AND pg_catalog.to_regclass('checkpoint_writes') IS NOT NULL
    AND coalesce(pg_catalog.pg_relation_size(pg_catalog.to_regclass('checkpoints')), 0) > 0
    AND NOT EXISTS (SELECT FROM tm.head WHERE checkpoints > 0)
"""

# `id` is NULL where it equals `rank`, which it does unless a clock was set back.
_OUTLINE = "c.ns, coalesce(c.id, c.rank), c.rank, c.parent, c.created_at, c.metadata"
_ROW = f"{_OUTLINE}, c.header, c.checksum"
_ALL = "c.ns, c.id, c.rank, c.parent, c.created_at, c.metadata, c.header, c.checksum"

_NEWEST = f"""
SELECT {_ALL}
FROM tm.checkpoint AS c
WHERE c.thread_id = $1::text AND c.ns = $2::text
ORDER BY c.rank DESC
LIMIT 1
"""

# The keys of the segments that a stored value consists of: a count in its first byte, then 12 bytes for each.
_KEYS_OF = """
SELECT substring({body} FROM 2 + 12 * place FOR 12)
FROM {table},
    generate_series(0, CASE WHEN length({body}) > 0 THEN get_byte({body}, 0) ELSE 0 END - 1) AS place
"""

# A checkpoint, its writes and their segments, with one snapshot in one go. A row says by `kind` what it is.
# Of the newest checkpoint `tm.head` knows all segments; of another one the header's come along, which names the others.
# Of the one that the caller holds none come along but those of its writes.
_FIND = f"""
WITH chosen AS (
    SELECT t.epoch, t.owner, t.expires_at, c.*
    FROM tm.thread AS t
    CROSS JOIN LATERAL ({{choice}}) AS c
    WHERE t.thread_id = $1::text AND t.live
), pending AS (
    SELECT w.task_id, w.idx, w.task_path, w.channel, w.value, w.checksum
    FROM tm.write AS w
    WHERE w.thread_id = $1::text AND w.ns = $2::text
        AND w.checkpoint_id = (SELECT coalesce(c.id, c.rank) FROM chosen AS c)
), needed (key) AS (
    SELECT unnest(h.needs)
    FROM chosen AS c
    JOIN tm.head AS h ON h.thread_id = $1::text AND h.ns = $2::text AND h.rank = c.rank
    WHERE {{unheld}}
    UNION ALL
    {_KEYS_OF.format(body="chosen.header", table="chosen")}
    WHERE {{unheld}}
    UNION ALL
    {_KEYS_OF.format(body="pending.value", table="pending")}
    WHERE {{with_writes}}
)
SELECT
    0 AS kind, epoch, created_at, rank, coalesce(id, rank), parent, metadata, header, checksum, NULL::bytea,
    owner, expires_at
FROM chosen
UNION ALL
SELECT 1, idx, NULL, task_path, channel, NULL, NULL, value, checksum, task_id, NULL, NULL
FROM pending
UNION ALL
SELECT 2, NULL, NULL, NULL, NULL, NULL, NULL, s.data, s.key, NULL, NULL, NULL
FROM (SELECT DISTINCT key FROM needed) AS asked
CROSS JOIN LATERAL (
    SELECT s.key, s.data
    FROM tm.segment AS s
    WHERE s.thread_id = $1::text AND s.key = asked.key
    OFFSET 0
) AS s
"""
# The head stands by itself: where the thread or its checkpoints are not found, it tells that they should be.
_HEAD = f"""
UNION ALL
SELECT
    3, NULL, NULL, h.rank, NULL, NULL, NULL, NULL, NULL, NULL,
    CASE WHEN NOT EXISTS (SELECT FROM chosen)
        THEN (SELECT t.owner FROM tm.thread AS t WHERE t.thread_id = $1::text AND t.live) END,
    NULL
FROM tm.head AS h
WHERE h.thread_id = $1::text AND h.ns = $2::text AND NOT ({NO_CHECKPOINT.format(head="h")})
"""
_UNHELD = "(SELECT rank FROM chosen) IS DISTINCT FROM $3::text"
FIND_NEWEST = f"{_FIND.format(choice=_NEWEST, unheld=_UNHELD, with_writes='true')}{_HEAD}"
# Where a clock was set back, two callers that put one checkpoint at once after different parents may have stored it
# under two ranks; the next put of it leaves one.
_BY_ID = f"""
SELECT {_ALL}
FROM tm.checkpoint AS c
WHERE c.thread_id = $1::text AND c.ns = $2::text AND c.rank = $3::text AND c.id IS NULL
UNION ALL
SELECT {_ALL}
FROM tm.checkpoint AS c
WHERE c.thread_id = $1::text AND c.ns = $2::text AND c.id = $3::text
ORDER BY rank DESC
LIMIT 1
"""
FIND = _FIND.format(choice=_BY_ID, unheld="true", with_writes="true")
# The same without any segment, for callers who ask for each that they need.
FIND_NEWEST_ALONE = f"{_FIND.format(choice=_NEWEST, unheld='false', with_writes='false')}{_HEAD}"
FIND_ALONE = _FIND.format(choice=_BY_ID, unheld="false", with_writes="false")

# The newest checkpoints of several threads with the segments of their headers, and what their heads tell. As in `ROWS`,
# OFFSET 0 makes it look-ups in indexes, one thread after the other.
NEWEST_OF_THREADS = f"""
WITH chosen AS (
    SELECT t.thread_id, t.epoch, t.owner, t.expires_at, c.*
    FROM unnest($1::text[]) AS asked (thread_id)
    CROSS JOIN LATERAL (
        SELECT t.thread_id, t.epoch, t.owner, t.expires_at
        FROM tm.thread AS t
        WHERE t.thread_id = asked.thread_id AND t.live
        OFFSET 0
    ) AS t
    CROSS JOIN LATERAL (
        SELECT {_ALL}
        FROM tm.checkpoint AS c
        WHERE c.thread_id = t.thread_id AND c.ns = $2::text
        ORDER BY c.rank DESC
        LIMIT 1
    ) AS c
)
SELECT
    0 AS kind, thread_id, epoch, created_at, rank, coalesce(id, rank), parent, metadata, header, checksum,
    NULL::bytea, owner, expires_at
FROM chosen
UNION ALL
SELECT 2, c.thread_id, NULL, NULL, NULL, NULL, NULL, NULL, s.data, NULL, s.key, NULL, NULL
FROM chosen AS c
CROSS JOIN LATERAL (
    SELECT s.key, s.data
    FROM tm.segment AS s
    WHERE s.thread_id = c.thread_id AND s.key = ANY (ARRAY(
        {_KEYS_OF.format(body="one.header", table="(SELECT c.header) AS one")}
    ))
    OFFSET 0
) AS s
UNION ALL
SELECT 3, asked.thread_id, NULL, NULL, h.rank, NULL, NULL, NULL, NULL, NULL, NULL, h.owner, NULL
FROM unnest($1::text[]) AS asked (thread_id)
CROSS JOIN LATERAL (
    SELECT
        h.rank,
        (SELECT t.owner FROM tm.thread AS t WHERE t.thread_id = asked.thread_id AND t.live) AS owner
    FROM tm.head AS h
    WHERE h.thread_id = asked.thread_id AND h.ns = $2::text AND NOT ({NO_CHECKPOINT.format(head="h")})
    OFFSET 0
) AS h
"""

# OFFSET 0 makes it one look-up in the index for each key: a plan that was made when the table was small, and is kept,
# would else go through the whole thread.
SEGMENTS = """
SELECT s.key, s.data
FROM unnest($2::bytea[]) AS asked (key)
CROSS JOIN LATERAL (
    SELECT s.key, s.data
    FROM tm.segment AS s
    WHERE s.thread_id = $1::text AND s.key = asked.key
    OFFSET 0
) AS s
"""

SEGMENTS_OF_THREADS = """
SELECT asked.thread_id, s.key, s.data
FROM unnest($1::text[], $2::bytea[]) AS asked (thread_id, key)
CROSS JOIN LATERAL (
    SELECT key, data
    FROM tm.segment AS s
    WHERE s.thread_id = asked.thread_id AND s.key = asked.key
    OFFSET 0
) AS s
"""

SEGMENT_SIZES = """
SELECT key, length(data)
FROM tm.segment
WHERE thread_id = $1::text
"""

# OFFSET 0 makes it one look-up in the index for each key; without statistics a join would read the whole thread.
ROWS = f"""
SELECT {_ROW}
FROM unnest($2::text[], $3::text[]) AS asked (ns, id)
CROSS JOIN LATERAL (
    SELECT {_ALL}
    FROM tm.checkpoint AS c
    WHERE c.thread_id = $1::text AND c.ns = asked.ns AND c.rank = asked.id AND c.id IS NULL
    UNION ALL
    SELECT {_ALL}
    FROM tm.checkpoint AS c
    WHERE c.thread_id = $1::text AND c.ns = asked.ns AND c.id = asked.id
    OFFSET 0
) AS c
"""

_WRITE = "w.ns, w.checkpoint_id, w.task_id, w.idx, w.task_path, w.channel, w.value, w.checksum"

WRITES = f"""
SELECT {_WRITE}
FROM unnest($2::text[], $3::text[]) AS asked (ns, id)
CROSS JOIN LATERAL (
    SELECT *
    FROM tm.write AS w
    WHERE w.thread_id = $1::text AND w.ns = asked.ns AND w.checkpoint_id = asked.id
    OFFSET 0
) AS w
"""

WRITES_OF_THREAD = f"""
SELECT {_WRITE}
FROM tm.write AS w
WHERE w.thread_id = $1::text
"""

# A checkpoint and its ancestors, nearest first. Where two checkpoints name each other as parents, the limit ends it.
_CHAIN = f"""
WITH RECURSIVE chain AS (
    SELECT 0 AS depth, c.*
    FROM ({{choice}}) AS c
    UNION ALL
    SELECT chain.depth + 1, c.*
    FROM chain
    CROSS JOIN LATERAL (
        SELECT {_ALL}
        FROM tm.checkpoint AS c
        WHERE c.thread_id = $1::text AND c.ns = $2::text AND c.rank = chain.parent AND c.id IS NULL
        UNION ALL
        SELECT {_ALL}
        FROM tm.checkpoint AS c
        WHERE c.thread_id = $1::text AND c.ns = $2::text AND c.id = chain.parent
    ) AS c
    WHERE chain.depth < $3::bigint - 1
)
SELECT {_ROW}
FROM chain AS c
ORDER BY c.depth
"""
CHAIN_FROM_NEWEST = _CHAIN.format(choice=_NEWEST)
CHAIN = _CHAIN.format(
    choice=f"""
        SELECT {_ALL}
        FROM tm.checkpoint AS c
        WHERE c.thread_id = $1::text AND c.ns = $2::text
            AND ((c.rank = $4::text AND c.id IS NULL) OR c.id = $4::text)
    """
)

HEADS = f"""
SELECT h.thread_id, h.ns, h.rank, h.checkpoints
FROM tm.head AS h
WHERE ($1::text IS NULL OR h.thread_id = $1::text) AND ($2::text IS NULL OR h.ns = $2::text)
    AND NOT ({NO_CHECKPOINT.format(head="h")})
"""

COUNTED_HEADS = """
SELECT c.thread_id, c.ns, max(c.rank), count(*)
FROM tm.checkpoint AS c
WHERE ($1::text IS NULL OR c.thread_id = $1::text) AND ($2::text IS NULL OR c.ns = $2::text)
    AND EXISTS (SELECT FROM tm.thread AS t WHERE t.thread_id = c.thread_id AND t.live)
GROUP BY c.thread_id, c.ns
"""

LOST_ROWS = """
SELECT kind, count(*)
FROM (
    SELECT 'checkpoint' AS kind, thread_id
    FROM tm.checkpoint
    UNION ALL
    SELECT 'write', thread_id
    FROM tm.write
    UNION ALL
    SELECT 'segment', thread_id
    FROM tm.segment
) AS kept
WHERE NOT EXISTS (SELECT FROM tm.thread AS t WHERE t.thread_id = kept.thread_id AND t.live)
GROUP BY kind
"""

# Threads that no listing finds, having no head, and those that listings find in another minute than that of their last
# update: a process of an earlier release can tell a head, without a put, that its thread was updated.
UNLISTED = f"""
SELECT count(*) FILTER (WHERE h.ns IS NULL), count(*) FILTER (WHERE h.minute <> {MINUTE.format("h.updated_at")})
FROM tm.thread AS t
LEFT JOIN tm.head AS h ON h.thread_id = t.thread_id AND h.ns = ''
WHERE t.live
"""

# A page of outlines: the clauses that a scope asks for are joined by AND.
PAGE = f"""
SELECT c.thread_id, {_OUTLINE}
FROM tm.checkpoint AS c
WHERE {{clauses}}
ORDER BY c.rank DESC, c.thread_id DESC, c.ns DESC
LIMIT $1::bigint
"""
PAGE_OF_ROWS = PAGE.replace(_OUTLINE, _ROW)
PAGE_OF_ALL = "true"
PAGE_OF_THREAD = "c.thread_id = ${}::text"
PAGE_OF_NAMESPACE = "c.ns = ${}::text"
PAGE_WITH_ID = "((c.rank = ${0}::text AND c.id IS NULL) OR c.id = ${0}::text)"
PAGE_BEFORE = "c.rank < ${}::text"
PAGE_OF_RUN = "c.run = ${}::bigint"
PAGE_OF_OWNER = "EXISTS (SELECT FROM tm.thread AS t WHERE t.thread_id = c.thread_id AND t.owner = ${}::text)"
PAGE_WITH_FRAGMENT = "position(${}::text IN c.metadata) > 0"
PAGE_AFTER = "(c.rank, c.thread_id, c.ns) < (${}::text, ${}::text, ${}::text)"

# The thread of a change, or of several to one thread, and the threads of changes to several (`for_several`).
_OF_ONE = "= ($1::text[])[1]"
_OF_SEVERAL = "= ANY (ARRAY(SELECT thread_id FROM change))"

_HELD_COLUMNS = "thread_id, epoch, deleted_up_to, owner, expires_at, token, lease_ends, lease_ttl"

# What only a statement has that may begin threads. Of several changes that begin one the first decides whose it is.
_MAKE = f"""), made AS (
    INSERT INTO tm.thread (thread_id, epoch, live, created_at, token, owner, expires_at, checksum)
    SELECT DISTINCT ON (thread_id) thread_id, now, true, now, 0, owner, expires_at, checksum
    FROM change
    WHERE epoch IS NULL AND coalesce(token, 0) IN (0, {ANYONE}) AND thread_id NOT IN (SELECT thread_id FROM seen)
    ORDER BY thread_id, number
    ON CONFLICT DO NOTHING
    RETURNING {_HELD_COLUMNS}, created_at
"""
_MADE = f"""UNION ALL
    SELECT {_HELD_COLUMNS}, true
    FROM made
    """
_MADE_HEADS = """UNION ALL
        SELECT NULL, thread_id, '', '', NULL, created_at, owner
        FROM made
    """
# What only a statement has whose checkpoints touch their thread.
_TOUCHED = """UNION ALL
        SELECT NULL, thread_id, '', '', NULL, now, owner
        FROM proven
        """
_ADD_MADE_HEADS = f"""), headed AS (
    INSERT INTO tm.head (thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)
    SELECT thread_id, '', '', '{{}}', 0, created_at, {MINUTE.format("created_at")}, owner
    FROM made
    ORDER BY thread_id
    ON CONFLICT DO NOTHING
"""

# Adding, in one statement, which is one transaction and one round trip. It adds the changes of several callers, to
# one thread or to several, or that of one; what belongs to a change says so by its number, and each is judged for
# itself. Adders of a thread share its row's lock. A row that a removal holds is passed over, so that nobody waits
# here on account of others' threads; its change gets no judgement. `seen` is what was there before any lock and
# `held` what is there with it: where the two differ the rest of the statement would still see the old state, so
# nothing is added. The lease, too, is read from the row as it was locked: whoever takes one changes that row, so no
# change is accepted with the token before once that is committed. Adders cannot wait for each other in a circle: all
# take rows in one order (see decision 6).
_JUDGED = f"""
WITH change AS (
    SELECT *
    FROM unnest(
        (SELECT $1::text[]), $2::bigint[], $3::bigint[], $4::text[], $5::bigint[],
        $6::text[], $7::bigint[], $8::bytea[], $9::bigint[]
    )
        WITH ORDINALITY AS change (
            thread_id, epoch, now, continues, token, owner, expires_at, checksum, only_owner, number
        )
), seen AS (
    SELECT {_HELD_COLUMNS}, live
    FROM tm.thread
    WHERE thread_id {_OF_ONE}
), locked AS (
    SELECT {_HELD_COLUMNS}
    FROM tm.thread
    WHERE thread_id {_OF_ONE} AND live
    FOR SHARE SKIP LOCKED
{_MAKE}), held AS (
    SELECT {_HELD_COLUMNS}, true AS live
    FROM locked
    {_MADE}UNION ALL
    SELECT {_HELD_COLUMNS}, false
    FROM seen
    WHERE NOT live
), judged AS (
    SELECT
        change.number,
        held.thread_id,
        held.epoch,
        held.epoch = coalesce(change.epoch, held.epoch) AS expected,
        held.live,
        change.now,
        CASE
            WHEN change.only_owner = 1 AND held.live AND held.owner IS DISTINCT FROM change.owner THEN 'owner'
            ELSE {_LEASE_REFUSAL.format(given="change.token", row="held").strip()}
        END AS refused,
        CASE
            WHEN change.token = held.token AND held.lease_ends IS NOT NULL
            THEN CASE WHEN held.lease_ends - {CLOCK} < held.lease_ttl / 2 THEN held.lease_ttl END
        END AS renewal,
        held.owner,
        held.expires_at,
        NOT EXISTS (SELECT FROM seen WHERE seen.thread_id = held.thread_id AND seen.epoch <> held.epoch) AS steady,
        coalesce(change.continues <> '' AND change.continues <= held.deleted_up_to, false) AND NOT EXISTS (
            SELECT
            FROM tm.checkpoint AS c
            WHERE c.thread_id = held.thread_id AND c.thread_id {_OF_ONE}
                AND (c.rank = change.continues OR c.id = change.continues)
        ) AS too_late
    FROM change
    JOIN held ON held.thread_id = change.thread_id
)
"""

_ADD = f"""
{_JUDGED}, proven AS (
    SELECT number, thread_id, now, owner
    FROM judged
    WHERE live AND steady AND expected AND refused IS NULL AND NOT too_late
), segments AS (
    INSERT INTO tm.segment (thread_id, key, data)
    SELECT proven.thread_id, fresh.key, fresh.data
    FROM unnest((SELECT $10::bigint[]), $11::bytea[], $12::bytea[]) AS fresh (number, key, data)
    JOIN proven ON proven.number = fresh.number
    ORDER BY proven.thread_id, fresh.key
    ON CONFLICT DO NOTHING
)
"""
_JUDGEMENT = """
SELECT number, epoch, live, steady, refused, too_late, renewal, expires_at, {outcome}
FROM judged
"""

# A checkpoint that is there already, perhaps under another rank, is not touched here: it may have another header, which
# others count on, so whoever replaces it takes the thread for itself (`PostgresStore.replace`). OFFSET 0 makes it one
# look-up in the index for each, as in ROWS: a plan that was made when the tables were small, and is kept, would else go
# through the whole thread. Below, the conditions with ANY say again what the joins say, for the same reason.
_LATEST = "coalesce(max(created_at) FILTER (WHERE number IS NOT NULL), max(created_at))"
_ADD_CHECKPOINTS = f"""
{_ADD}, given AS (
    SELECT proven.thread_id, proven.owner, fresh.*
    FROM unnest(
        (SELECT $13::bigint[]), $14::text[], $15::text[], $16::text[], $17::text[], $18::bigint[],
        $19::text[], $20::bytea[], $21::bytea[], $22::bigint[], $23::text[]
    ) AS fresh (number, ns, id, rank, parent, created_at, metadata, header, checksum, run, needs)
    JOIN proven ON proven.number = fresh.number
), ranked_otherwise AS (
    SELECT given.number
    FROM given
    CROSS JOIN LATERAL (
        SELECT
        FROM tm.checkpoint AS c
        WHERE c.thread_id = given.thread_id AND c.thread_id {_OF_ONE}
            AND c.ns = given.ns AND c.rank = given.id AND c.id IS NULL
        UNION ALL
        SELECT
        FROM tm.checkpoint AS c
        WHERE c.thread_id = given.thread_id AND c.thread_id {_OF_ONE}
            AND c.ns = given.ns AND c.id = coalesce(given.id, given.rank) AND c.rank <> given.rank
        OFFSET 0
    ) AS c
), fresh AS (
    SELECT DISTINCT ON (thread_id, ns, rank) *
    FROM given
    WHERE number NOT IN (SELECT number FROM ranked_otherwise)
    ORDER BY thread_id, ns, rank, number
), added AS (
    INSERT INTO tm.checkpoint
        (thread_id, ns, id, rank, parent, created_at, metadata, header, checksum, run)
    SELECT thread_id, ns, id, rank, parent, created_at, metadata, header, checksum, run
    FROM fresh
    ORDER BY thread_id, ns, rank
    ON CONFLICT DO NOTHING
    RETURNING thread_id, ns, rank
), counted AS (
    SELECT number, thread_id, ns, rank, needs, created_at, owner
    FROM added
    JOIN fresh USING (thread_id, ns, rank)
), headed AS (
    INSERT INTO tm.head AS h (thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)
    SELECT
        thread_id,
        ns,
        max(rank),
        coalesce((array_agg(needs ORDER BY rank DESC))[1]::bytea[], '{{}}'),
        count(number),
        {_LATEST},
        {MINUTE.format(_LATEST)},
        CASE WHEN ns = '' THEN max(owner) END
    FROM (
        SELECT number, thread_id, ns, rank, needs, created_at, owner
        FROM counted
        {_TOUCHED}{_MADE_HEADS}) AS headed
    GROUP BY thread_id, ns
    ORDER BY thread_id, ns
    ON CONFLICT (thread_id, ns) DO UPDATE
    SET rank = greatest(h.rank, excluded.rank),
        needs = CASE WHEN excluded.rank > h.rank OR excluded.needs <> '{{}}' THEN excluded.needs ELSE h.needs END,
        checkpoints = h.checkpoints + excluded.checkpoints,
        updated_at = greatest(
            CASE WHEN h.checkpoints > 0 OR excluded.checkpoints = 0 THEN h.updated_at END,
            excluded.updated_at
        ),
        minute = greatest(
            CASE WHEN h.checkpoints > 0 OR excluded.checkpoints = 0 THEN h.minute END,
            excluded.minute
        )
)
{
    _JUDGEMENT.format(
        outcome="(SELECT count(*) FROM given WHERE given.number = judged.number)"
        " <> (SELECT count(*) FROM counted WHERE counted.number = judged.number)"
    )
}
"""
ADD_CHECKPOINTS = _ADD_CHECKPOINTS.replace(_TOUCHED, "")
ADD_TOUCHING_CHECKPOINTS = _ADD_CHECKPOINTS

# The thread is locked by then.
REMOVE_REPLACED = """
WITH doomed AS (
    SELECT ns, rank
    FROM unnest($2::text[], $3::text[]) AS doomed (ns, rank)
), removed AS (
    DELETE FROM tm.checkpoint AS c
    USING doomed
    WHERE c.thread_id = $1::text AND c.ns = doomed.ns AND c.rank = doomed.rank
        AND c.ns = ANY ($2::text[]) AND c.rank = ANY ($3::text[])
    RETURNING c.ns
)
UPDATE tm.head AS h
SET checkpoints = h.checkpoints - (SELECT count(*) FROM removed WHERE removed.ns = h.ns)
WHERE h.thread_id = $1::text AND h.ns = ANY ($2::text[])
"""

# The thread is locked here, too.
REWRITE_CHECKPOINTS = """
UPDATE tm.checkpoint AS c
SET parent = fresh.parent, metadata = fresh.metadata, header = fresh.header, checksum = fresh.checksum
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::bytea[])
    AS fresh (ns, rank, parent, metadata, header, checksum)
WHERE c.thread_id = $1::text AND c.ns = fresh.ns AND c.rank = fresh.rank
    AND c.ns = ANY ($2::text[]) AND c.rank = ANY ($3::text[])
"""

NEXT_EPOCH = """
UPDATE tm.thread
SET epoch = epoch + 1
WHERE thread_id = $1::text
RETURNING epoch
"""

_GIVEN_WRITES = f"""
{_ADD}, given AS (
    SELECT proven.thread_id, fresh.*
    FROM unnest(
        (SELECT $13::bigint[]), $14::text[], $15::text[], $16::bytea[], $17::bigint[],
        $18::text[], $19::text[], $20::bytea[], $21::bytea[]
    ) AS fresh (number, ns, checkpoint_id, task_id, idx, task_path, channel, value, checksum)
    JOIN proven ON proven.number = fresh.number
)
"""
# Whether a change's packs (`store.PACK`) were left out. Of two that one statement adds for one task the first stays,
# and the checks tell whose that is.
_PACK_LEFT_OUT = f"""EXISTS (
        SELECT
        FROM given
        WHERE given.number = judged.number AND given.idx = {PACK}
            AND (given.ns, given.checkpoint_id, given.task_id, given.checksum) NOT IN (
                SELECT ns, checkpoint_id, task_id, checksum
                FROM added
                WHERE thread_id = given.thread_id AND idx = {PACK}
            )
    )"""
_ADDED_WRITES = "RETURNING w.thread_id, w.ns, w.checkpoint_id, w.task_id, w.idx, w.checksum"
_INSERT_WRITES = """
    INSERT INTO tm.write AS w
        (thread_id, ns, checkpoint_id, task_id, idx, task_path, channel, value, checksum)
    SELECT thread_id, ns, checkpoint_id, task_id, idx, task_path, channel, value, checksum
    FROM given
    ORDER BY thread_id, ns, checkpoint_id, task_id, idx
    ON CONFLICT (thread_id, ns, checkpoint_id, task_id, idx)
"""
ADD_WRITES = f"""
{_GIVEN_WRITES}, added AS (
    {_INSERT_WRITES}
    DO NOTHING
    {_ADDED_WRITES}
{_ADD_MADE_HEADS})
{_JUDGEMENT.format(outcome=f"{_PACK_LEFT_OUT}, NULL, NULL")}
"""

# A write of a special channel (its idx is negative) replaces the one that is there, another one leaves it. What was
# there is returned.
ADD_SPECIAL_WRITES = f"""
{_GIVEN_WRITES}, old AS (
    SELECT given.number, array_agg(w.idx) AS indexes, array_agg(w.value) AS contents
    FROM given
    CROSS JOIN LATERAL (
        SELECT w.idx, w.value
        FROM tm.write AS w
        WHERE w.thread_id = given.thread_id AND w.thread_id {_OF_ONE}
            AND w.ns = given.ns
            AND w.checkpoint_id = given.checkpoint_id
            AND w.task_id = given.task_id
            AND w.idx = given.idx
        OFFSET 0
    ) AS w
    WHERE given.idx < 0
    GROUP BY given.number
), added AS (
    {_INSERT_WRITES}
    DO UPDATE
    SET task_path = excluded.task_path,
        channel = excluded.channel,
        value = excluded.value,
        checksum = excluded.checksum
    WHERE w.idx < 0
    {_ADDED_WRITES}
{_ADD_MADE_HEADS})
{
    _JUDGEMENT.format(
        outcome=f"{_PACK_LEFT_OUT}, (SELECT indexes FROM old WHERE number = judged.number),"
        " (SELECT contents FROM old WHERE number = judged.number)"
    )
}
"""

# The same for one change that continues a checkpoint, which is what most changes are: with no arrays but those of its
# rows, and with nothing but conditions in place of the judgement. Where one of them is not met, or a removal holds the
# thread, no row comes back and nothing was added: the statements above say why.
_RENEWAL = f"""
        CASE
            WHEN t.token = $3::bigint AND t.lease_ends IS NOT NULL
            THEN CASE WHEN t.lease_ends - {CLOCK} < t.lease_ttl / 2 THEN t.lease_ttl END
        END AS renewal"""
_LEASE_ACCEPTS = f"{_LEASE_REFUSAL.format(given='$3::bigint', row='t')} IS NULL"
_ADD_ALONE = f"""
WITH held AS (
    SELECT epoch, owner, expires_at, {_RENEWAL.lstrip()}
    FROM tm.thread AS t
    WHERE thread_id = $1::text AND live
        AND epoch = {{epoch}}
        AND {_LEASE_ACCEPTS}
        AND ($4::text IS NULL OR owner = $4::text)
        AND (deleted_up_to IS NULL OR deleted_up_to < $5::text)
    FOR SHARE SKIP LOCKED
)"""
_SEGMENTS_ALONE = """, segments AS (
    INSERT INTO tm.segment (thread_id, key, data)
    SELECT $1::text, fresh.key, fresh.data
    FROM {source}
    CROSS JOIN unnest({keys}::bytea[], {data}::bytea[]) AS fresh (key, data)
    ORDER BY fresh.key
    ON CONFLICT DO NOTHING
)"""
_ACCEPTED = """
SELECT epoch, {exists}, renewal, expires_at
FROM held"""

# Where the rest of a statement reads something else that was there before the lock, the epoch must be the same with the
# lock as without it.
SEEN_EPOCH = "coalesce($2::bigint, (SELECT epoch FROM tm.thread WHERE thread_id = $1::text))"
ANY_EPOCH = "coalesce($2::bigint, epoch)"

_CHECKPOINT_COLUMNS = "(thread_id, ns, id, rank, parent, created_at, metadata, header, checksum, run)"
_CHECKPOINT_VALUES = """$1::text, $6::text, NULL, $7::text, $8::text, $9::bigint,
        $10::text, $11::bytea, $12::bytea, $13::bigint"""
_HEAD_COLUMNS = "(thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)"
_HEAD_VALUES = f"""$1::text, $6::text, $7::text, $14::bytea[], 1, $9::bigint, {MINUTE.format("$9::bigint")},
        CASE WHEN $6::text = '' THEN held.owner END"""
_HEAD_COUNTED = """checkpoints = h.checkpoints + 1,
        updated_at = greatest(CASE WHEN h.checkpoints > 0 THEN h.updated_at END, excluded.updated_at),
        minute = greatest(CASE WHEN h.checkpoints > 0 THEN h.minute END, excluded.minute)"""

# A checkpoint that is stored under another rank than its id has a greater one (`rank_after`). So none with this id is
# stored where its rank is greater than that of its head, and only such a one is added here; where a damaged head does
# not know that it is there, the statement fails (`driver.conversation`). The head comes first for that: two who put the
# same checkpoint, or the same segment, at once, one of them by a statement above, may meet in a circle, which the
# server ends. What was there before the lock is not read, so the epoch is not compared with that.
_SEGMENTS_OF_CHECKPOINT = _SEGMENTS_ALONE.format(source="headed", keys="$15", data="$16")
ADD_CHECKPOINT_ALONE = f"""
{_ADD_ALONE.format(epoch=ANY_EPOCH)}, headed AS (
    INSERT INTO tm.head AS h {_HEAD_COLUMNS}
    SELECT
        {_HEAD_VALUES}
    FROM held
    ON CONFLICT (thread_id, ns) DO UPDATE
    SET rank = excluded.rank,
        needs = excluded.needs,
        {_HEAD_COUNTED}
    WHERE h.rank < excluded.rank
    RETURNING rank
){_SEGMENTS_OF_CHECKPOINT}, added AS (
    INSERT INTO tm.checkpoint
        {_CHECKPOINT_COLUMNS}
    SELECT
        {_CHECKPOINT_VALUES}
    FROM headed
)
{_ACCEPTED.format(exists="false")}
CROSS JOIN headed
"""

# The same in the order of the statements above, for a change that is recorded: its position is taken between its
# checkpoint and its head.
_SEGMENTS_OF_CHECKPOINT_IN_ORDER = _SEGMENTS_ALONE.format(source="held", keys="$15", data="$16")
ADD_CHECKPOINT_IN_ORDER = f"""
{_ADD_ALONE.format(epoch=SEEN_EPOCH)}{_SEGMENTS_OF_CHECKPOINT_IN_ORDER}, added AS (
    INSERT INTO tm.checkpoint
        {_CHECKPOINT_COLUMNS}
    SELECT
        {_CHECKPOINT_VALUES}
    FROM held
    WHERE NOT EXISTS (
        SELECT
        FROM tm.checkpoint AS c
        WHERE c.thread_id = $1::text AND c.ns = $6::text AND c.id = $7::text
    )
    ON CONFLICT DO NOTHING
    RETURNING rank
), headed AS (
    INSERT INTO tm.head AS h {_HEAD_COLUMNS}
    SELECT
        {_HEAD_VALUES}
    FROM held
    CROSS JOIN added
    ON CONFLICT (thread_id, ns) DO UPDATE
    SET rank = greatest(h.rank, excluded.rank),
        needs = CASE WHEN excluded.rank > h.rank THEN excluded.needs ELSE h.needs END,
        {_HEAD_COUNTED}
)
{_ACCEPTED.format(exists="NOT EXISTS (SELECT FROM added)")}
"""

# A pack and the record of its batch.
_SEGMENTS_OF_WRITES = _SEGMENTS_ALONE.format(source="held", keys="$14", data="$15")
ADD_WRITES_ALONE = f"""
{_ADD_ALONE.format(epoch=ANY_EPOCH)}{_SEGMENTS_OF_WRITES}, added AS (
    INSERT INTO tm.write
        (thread_id, ns, checkpoint_id, task_id, idx, task_path, channel, value, checksum)
    SELECT $1::text, $6::text, $5::text, $7::bytea, fresh.idx, fresh.task_path, '', fresh.value, fresh.checksum
    FROM held
    CROSS JOIN (
        VALUES
        ({PACK}, $8::text, $9::bytea, $10::bytea),
        ($11::bigint, '', $12::bytea, $13::bytea)
    ) AS fresh (idx, task_path, value, checksum)
    ON CONFLICT DO NOTHING
    RETURNING idx
)
{_ACCEPTED.format(exists=f"NOT EXISTS (SELECT FROM added WHERE idx = {PACK})")}
"""


@cache
def without_segments(statement: str) -> str:
    """Return a statement for one change as one for a change that brings none: it ends with two parameters less."""
    for segments in (_SEGMENTS_OF_CHECKPOINT, _SEGMENTS_OF_CHECKPOINT_IN_ORDER, _SEGMENTS_OF_WRITES):
        statement = statement.replace(segments, "")
    return statement


@cache
def without_token(statement: str) -> str:
    """Return a statement for one change as one that accepts only changes without a token. It has the same parameters.

    Each expression costs the server time in every statement, though most threads never have a lease.
    """
    unleased = f"$3::bigint IS NULL AND (t.lease_ends IS NULL OR t.lease_ends <= {CLOCK})"
    return statement.replace(_RENEWAL.lstrip(), "NULL::bigint AS renewal").replace(_LEASE_ACCEPTS, unleased)


def for_several(statement: str) -> str:
    """Return an adding statement as one for changes to several threads."""
    return statement.replace(_OF_ONE, _OF_SEVERAL)


@cache
def for_begun(statement: str) -> str:
    """Return an adding statement as one that begins no thread: what every put after the first needs costs less."""
    for part in (_MAKE, _MADE, _MADE_HEADS, _ADD_MADE_HEADS):
        statement = statement.replace(part, "")
    return statement


# The judgement alone, the greatest rank that is recorded for a namespace, and whether it has one of some checkpoints.
# The thread is locked by then. OFFSET 0 makes it one look-up in the index for each, as in ROWS.
JUDGE = for_begun(f"""
{_JUDGED}
SELECT
    epoch, refused, too_late,
    coalesce((SELECT h.rank FROM tm.head AS h WHERE h.thread_id {_OF_ONE} AND h.ns = $10::text), ''),
    EXISTS (
        SELECT
        FROM unnest($11::text[]) AS asked (id)
        CROSS JOIN LATERAL (
            SELECT
            FROM tm.checkpoint AS c
            WHERE c.thread_id {_OF_ONE} AND c.ns = $10::text AND c.rank = asked.id AND c.id IS NULL
            UNION ALL
            SELECT
            FROM tm.checkpoint AS c
            WHERE c.thread_id {_OF_ONE} AND c.ns = $10::text AND c.id = asked.id
            OFFSET 0
        ) AS c
    )
FROM judged
""")

# Something else was stored in the thread that listings go by.
TOUCH = """
UPDATE tm.head
SET updated_at = greatest(updated_at, $2::bigint), minute = greatest(minute, {})
WHERE thread_id = $1::text AND ns = ''
""".format(MINUTE.format("$2::bigint"))


# Waits for a removal that holds the thread's row, and keeps the next one away. With FOR SHARE, two that have waited and
# then both revive the thread would wait for each other; to revive it is no change of its key.
AWAIT_REMOVAL = _LOCK.format("KEY SHARE")

# Then somebody may still be reviving the thread, which that lock does not wait for; this one does. It comes second,
# when the thread is live or about to be: of those that waited for a removal with it, each would be in the others' way.
AWAIT_REVIVAL = _LOCK.format("SHARE")

# Removing; the thread is locked by then. OFFSET 0 is there as in ROWS.
REMOVE = """
WITH doomed AS (
    SELECT ns, id
    FROM unnest($2::text[], $3::text[]) AS doomed (ns, id)
), found AS (
    SELECT c.ns, c.rank
    FROM doomed
    CROSS JOIN LATERAL (
        SELECT c.ns, c.rank
        FROM tm.checkpoint AS c
        WHERE c.thread_id = $1::text AND c.ns = doomed.ns AND c.rank = doomed.id AND c.id IS NULL
        UNION ALL
        SELECT c.ns, c.rank
        FROM tm.checkpoint AS c
        WHERE c.thread_id = $1::text AND c.ns = doomed.ns AND c.id = doomed.id
        OFFSET 0
    ) AS c
), checkpoints AS (
    DELETE FROM tm.checkpoint AS c
    USING found
    WHERE c.thread_id = $1::text AND c.ns = found.ns AND c.rank = found.rank
    RETURNING c.ns
), counted AS (
    UPDATE tm.head AS h
    SET checkpoints = h.checkpoints - removed.checkpoints
    FROM (SELECT ns, count(*) AS checkpoints FROM checkpoints GROUP BY ns) AS removed
    WHERE h.thread_id = $1::text AND h.ns = removed.ns
), writes AS (
    DELETE FROM tm.write AS w
    USING doomed
    WHERE w.thread_id = $1::text AND w.ns = doomed.ns AND w.checkpoint_id = doomed.id
        AND w.ns = ANY ($2::text[]) AND w.checkpoint_id = ANY ($3::text[])
), segments AS (
    DELETE FROM tm.segment
    WHERE thread_id = $1::text AND key = ANY ($4::bytea[])
)
UPDATE tm.thread
SET epoch = epoch + 1
WHERE thread_id = $1::text
RETURNING epoch
"""

# After a removal, the newest checkpoint may be gone. Rows lost before stay counted, and so are missed.
SETTLE_HEADS = """
UPDATE tm.head AS h
SET rank = coalesce(left_over.rank, CASE WHEN h.checkpoints = 0 THEN '' ELSE h.rank END),
    needs = '{}'
FROM tm.head AS old
CROSS JOIN LATERAL (
    SELECT max(c.rank) AS rank
    FROM tm.checkpoint AS c
    WHERE c.thread_id = $1::text AND c.ns = old.ns
) AS left_over
WHERE h.thread_id = $1::text AND old.thread_id = $1::text AND old.ns = h.ns
    AND h.rank IS DISTINCT FROM left_over.rank
"""
REMOVE_EMPTY_HEADS = """
DELETE FROM tm.head
WHERE thread_id = $1::text AND checkpoints = 0 AND ns <> ''
"""

# Where there ever was a lease it gets the next token, so that no earlier one is accepted in a thread of the same name.
# The ids of messages are whatever their users choose, and no run continues one.
BURY_THREAD = f"""
UPDATE tm.thread
SET live = false,
    owner = NULL,
    title = NULL,
    folded_title = NULL,
    metadata = NULL,
    expires_at = NULL,
    checksum = NULL,
    token = CASE WHEN token > 0 THEN greatest(token + 1, {CLOCK}) ELSE 0 END,
    lease_ends = NULL,
    lease_ttl = NULL,
    holder = NULL,
    began = NULL,
    epoch = greatest(epoch + 1, $2::bigint),
    deleted_up_to = greatest(
        deleted_up_to,
        (
            SELECT max(coalesce(c.id, c.rank))
            FROM tm.checkpoint AS c
            WHERE c.thread_id = $1::text AND c.ns <> '{MESSAGES_NS}'
        ),
        (SELECT max(w.checkpoint_id) FROM tm.write AS w WHERE w.thread_id = $1::text),
        ''
    )
WHERE thread_id = $1::text
"""

EMPTY_THREAD = """
WITH checkpoints AS (
    DELETE FROM tm.checkpoint
    WHERE thread_id = $1::text
), writes AS (
    DELETE FROM tm.write
    WHERE thread_id = $1::text
), heads AS (
    DELETE FROM tm.head
    WHERE thread_id = $1::text
)
DELETE FROM tm.segment
WHERE thread_id = $1::text
"""

# A row that another transaction holds is left to the next removal, so that removals never wait for each other here.
# One of which somebody holds a lease stays until that has ended, and one of which another database is to learn that it
# was deleted until it has. OFFSET 0 makes that a look-up in the index for each.
FORGET_BURIED = f"""
DELETE FROM tm.thread
WHERE thread_id IN (
    SELECT thread_id
    FROM tm.thread AS t
    WHERE NOT live AND epoch < $1::bigint AND coalesce(lease_ends <= {CLOCK}, true)
        AND NOT EXISTS (SELECT FROM tm.outbox AS o WHERE o.thread_id = t.thread_id OFFSET 0)
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
)
RETURNING thread_id
"""

COPY_SEGMENTS = """
WITH heads AS (
    INSERT INTO tm.head AS h (thread_id, ns, rank, needs, checkpoints, updated_at, minute)
    SELECT $2::text, ns, rank, needs, 0, updated_at, minute
    FROM tm.head
    WHERE thread_id = $1::text
    ON CONFLICT (thread_id, ns) DO UPDATE
    SET rank = excluded.rank, needs = excluded.needs
    WHERE h.rank <= excluded.rank
)
INSERT INTO tm.segment (thread_id, key, data)
SELECT $2::text, key, data
FROM tm.segment
WHERE thread_id = $1::text
ON CONFLICT DO NOTHING
"""
