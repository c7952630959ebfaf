"""The statements of replication: the term, the outbox, how far threads were copied from another database, and marks."""

from threadmark.backends import LONG_MARK
from threadmark_postgres.sql.expressions import CLOCK

REPLICA = """
SELECT term, body
FROM tm.replica
"""

# Waits for all additions under the smaller term, and blocks new ones until the greater term is committed. They queue
# behind this lock, so it gives up soon if a transaction is held open.
LIMIT_WAIT = "SET LOCAL lock_timeout = '5s'"
LOCK_TERM = "LOCK TABLE tm.outbox IN SHARE ROW EXCLUSIVE MODE"

# Does not wait for additions, because the term stays. A statement that is not behind a lock on a thread has the gate.
SET_REPLICA_BODY = """
UPDATE tm.replica
SET body = $2::text
WHERE term = $1::bigint AND tm.gate_1()
RETURNING term, body
"""
RAISE_TERM = """
INSERT INTO tm.replica AS r (one, term, body)
VALUES (tm.gate_1(), $1::bigint, $2::text)
ON CONFLICT (one) DO UPDATE
SET term = excluded.term, body = excluded.body
WHERE r.term <= excluded.term
"""

RECORD = "SELECT tm.record_1($1::text, $2::bytea, $3::bigint)"

OUTBOX = """
SELECT thread_id, position, body
FROM tm.outbox
ORDER BY position, thread_id
LIMIT $1::bigint
"""
OUTBOX_OF_THREAD = """
SELECT thread_id, position, body
FROM tm.outbox
WHERE thread_id = $2::text
ORDER BY position
LIMIT $1::bigint
"""

WAITING = """
SELECT
    (SELECT count(*) FROM tm.outbox),
    coalesce((SELECT position FROM tm.outbox ORDER BY position, thread_id LIMIT 1), 0)
"""

SETTLE = """
DELETE FROM tm.outbox
WHERE thread_id = $1::text AND position <= $2::bigint AND tm.gate_1()
"""

POSITIONS = """
SELECT asked.thread_id, p.position
FROM unnest($1::text[]) AS asked (thread_id)
CROSS JOIN LATERAL tm.position_1(asked.thread_id) AS p (position)
WHERE p.position IS NOT NULL
"""
COPIED = """
SELECT asked.thread_id, c.copied_to, c.epoch
FROM unnest($1::text[]) AS asked (thread_id)
CROSS JOIN LATERAL tm.copied_1(asked.thread_id) AS c
WHERE c.epoch IS NOT NULL
"""
# A thread that must be remembered has a row that is not live, by which it is removed in time.
SET_COPIED = f"""
WITH remembered AS (
    INSERT INTO tm.thread (thread_id, epoch, live, created_at, token)
    SELECT $1::text, clock.microseconds, false, clock.microseconds, 0
    FROM (SELECT {CLOCK} AS microseconds) AS clock
    ON CONFLICT DO NOTHING
)
INSERT INTO tm.copied (thread_id, position, epoch)
VALUES ($1::text, CASE WHEN tm.gate_1() THEN $2::bigint END, $3::bigint)
ON CONFLICT (thread_id) DO UPDATE
SET position = excluded.position, epoch = excluded.epoch
"""

NAMES_OF_LIVE = """
SELECT thread_id
FROM tm.thread
WHERE live AND thread_id > $1::text
ORDER BY thread_id
LIMIT $2::bigint
"""
SUMMARIES = """
SELECT asked.thread_id, s.*
FROM unnest($1::text[]) WITH ORDINALITY AS asked (thread_id, place)
CROSS JOIN LATERAL tm.summary_1(asked.thread_id) AS s
ORDER BY asked.place
"""

_CHECK_OF_CHECKPOINT = "CASE WHEN c.checksum = '' THEN c.header ELSE c.checksum END"
_CHECK_OF_WRITE = "CASE WHEN w.checksum = '' THEN w.value ELSE w.checksum END"

# The last bytes of a value, all of it if it is shorter.
_LONG_MARK = f"substring({{of}} FROM greatest(octet_length({{of}}) - {LONG_MARK} + 1, 1))"

# The column `kind` tells whether a row is a checkpoint, a write or a segment.
MARKS = f"""
SELECT
    0 AS kind, c.ns, coalesce(c.id, c.rank), c.rank, NULL::bytea, NULL::bigint,
    {_LONG_MARK.format(of=_CHECK_OF_CHECKPOINT)}
FROM tm.checkpoint AS c
WHERE c.thread_id = $1::text
UNION ALL
SELECT 1, w.ns, w.checkpoint_id, NULL, w.task_id, w.idx, {_LONG_MARK.format(of=_CHECK_OF_WRITE)}
FROM tm.write AS w
WHERE w.thread_id = $1::text
UNION ALL
SELECT 2, NULL, NULL, NULL, s.key, octet_length(s.data), {_LONG_MARK.format(of="s.data")}
FROM tm.segment AS s
WHERE s.thread_id = $1::text
"""
