"""Finding checkpoints with their writes and segments, in one statement, because each is a round trip."""

FIND = "SELECT * FROM tm.find_1($1::text, $2::text, $3::text, $4::text, $5::text)"

# The newest checkpoint of each of several threads, with the segments of its header.
NEWEST_OF_THREADS = """
SELECT asked.thread_id, f.*
FROM unnest($1::text[]) AS asked (thread_id)
CROSS JOIN LATERAL tm.find_1(asked.thread_id, $2::text, NULL, NULL, 'header') AS f
"""

# OFFSET 0 makes it one look-up in the index for each key. A plan that was made when the table was small, and is kept,
# would otherwise go through the whole thread.
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
SELECT asked.thread_id, s.*
FROM (
    SELECT a.thread_id, array_agg(a.key) AS keys
    FROM unnest($1::text[], $2::bytea[]) AS a (thread_id, key)
    GROUP BY a.thread_id
) AS asked
CROSS JOIN LATERAL tm.segments_1(asked.thread_id, asked.keys) AS s
"""

SEGMENT_SIZES = """
SELECT key, length(data)
FROM tm.segment
WHERE thread_id = $1::text
"""
