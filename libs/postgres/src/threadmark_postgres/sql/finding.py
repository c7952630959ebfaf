"""Finding checkpoints with their writes and segments, in one statement, because each is a round trip."""

from threadmark_postgres.sql.expressions import ALL, NO_CHECKPOINT, ROW, in_place_of_row

FIND = "SELECT * FROM tm.find_1($1::text, $2::text, $3::text, $4::text, $5::boolean)"

# The keys of the segments that a stored value consists of: a count in its first byte, then 12 bytes for each.
_KEYS_OF = """
SELECT substring({body} FROM 2 + 12 * place FOR 12)
FROM {table},
    generate_series(0, CASE WHEN length({body}) > 0 THEN get_byte({body}, 0) ELSE 0 END - 1) AS place
"""

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
SELECT 0 AS kind, c.thread_id, {ROW}, NULL::bytea AS key, c.epoch, c.owner, c.expires_at
FROM chosen AS c
UNION ALL
SELECT 2, c.thread_id, {in_place_of_row(header="s.data")}, s.key, NULL, NULL, NULL
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
SELECT 3, asked.thread_id, {in_place_of_row(rank="h.rank")}, NULL, NULL, h.owner, NULL
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
