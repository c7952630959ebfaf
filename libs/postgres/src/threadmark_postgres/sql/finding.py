"""Finding a checkpoint with its writes and segments, in one statement, because each is a round trip."""

from threadmark_postgres.sql.expressions import ALL, NEWEST, NO_CHECKPOINT

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
FIND_NEWEST = f"{_FIND.format(choice=NEWEST, unheld=_UNHELD, with_writes='true')}{_HEAD}"
# Where a clock was set back, two callers that put one checkpoint at once after different parents may have stored it
# under two ranks; the next put of it leaves one.
_BY_ID = f"""
SELECT {ALL}
FROM tm.checkpoint AS c
WHERE c.thread_id = $1::text AND c.ns = $2::text AND c.rank = $3::text AND c.id IS NULL
UNION ALL
SELECT {ALL}
FROM tm.checkpoint AS c
WHERE c.thread_id = $1::text AND c.ns = $2::text AND c.id = $3::text
ORDER BY rank DESC
LIMIT 1
"""
FIND = _FIND.format(choice=_BY_ID, unheld="true", with_writes="true")
# The same without any segment, for callers who ask for each that they need.
FIND_NEWEST_ALONE = f"{_FIND.format(choice=NEWEST, unheld='false', with_writes='false')}{_HEAD}"
FIND_ALONE = _FIND.format(choice=_BY_ID, unheld="false", with_writes="false")

# The newest checkpoints of several threads with the segments of their headers, and what their heads tell. As in
# `SEGMENTS`, OFFSET 0 makes it look-ups in indexes, one thread after the other.
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
        SELECT {ALL}
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
