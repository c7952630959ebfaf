"""The statements of replication: the term, the outbox, how far threads have come from another database, and marks."""

from threadmark.store.replica import LONG_MARK, MARK_BYTES
from threadmark_postgres.sql.expressions import CLOCK

REPLICA = """
SELECT term, body
FROM tm.replica
"""

# Waits for all that add under the smaller term, and keeps others away until the greater one is committed. They queue
# behind it, so where somebody holds a transaction open it gives up soon.
LIMIT_WAIT = "SET LOCAL lock_timeout = '5s'"
LOCK_TERM = "LOCK TABLE tm.outbox IN SHARE ROW EXCLUSIVE MODE"

# Waits for nobody who adds: the term stays.
SET_REPLICA_BODY = """
UPDATE tm.replica
SET body = $2::text
WHERE term = $1::bigint
RETURNING term, body
"""
RAISE_TERM = """
INSERT INTO tm.replica AS r (one, term, body)
VALUES (true, $1::bigint, $2::text)
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
WHERE thread_id = $1::text AND position <= $2::bigint
"""

# OFFSET 0 makes it one look-up in the index for each, as in `listing.ROWS`.
POSITIONS = """
SELECT p.*
FROM unnest($1::text[]) AS asked (thread_id)
CROSS JOIN LATERAL (
    SELECT p.thread_id, p.position
    FROM tm.position AS p
    WHERE p.thread_id = asked.thread_id
    OFFSET 0
) AS p
"""
COPIED = """
SELECT c.*
FROM unnest($1::text[]) AS asked (thread_id)
CROSS JOIN LATERAL (
    SELECT c.thread_id, c.position, c.epoch
    FROM tm.copied AS c
    WHERE c.thread_id = asked.thread_id
    OFFSET 0
) AS c
"""
# A thread of which something is to be remembered has a row, which is not live, and by which it is forgotten in time.
SET_COPIED = f"""
WITH remembered AS (
    INSERT INTO tm.thread (thread_id, epoch, live, created_at, token)
    SELECT $1::text, clock.microseconds, false, clock.microseconds, 0
    FROM (SELECT {CLOCK} AS microseconds) AS clock
    ON CONFLICT DO NOTHING
)
INSERT INTO tm.copied (thread_id, position, epoch)
VALUES ($1::text, $2::bigint, $3::bigint)
ON CONFLICT (thread_id) DO UPDATE
SET position = excluded.position, epoch = excluded.epoch
"""

# The last bytes of a value, all of it where it is shorter.
_END = "substring({{of}} FROM greatest(octet_length({{of}}) - {bytes} + 1, 1))"

# The number of a row's mark (`threadmark.store.replica.mark_of`), the last seven bytes. Of a damaged one that has fewer
# it is what they make.
_CHECK_OF_CHECKPOINT = "CASE WHEN c.checksum = '' THEN c.header ELSE c.checksum END"
_CHECK_OF_WRITE = "CASE WHEN w.checksum = '' THEN w.value ELSE w.checksum END"
_HEX = f"lpad(encode({_END.format(bytes=MARK_BYTES)}, 'hex'), {2 * MARK_BYTES}, '0')"
_MARK = f"('x' || {_HEX})::bit({8 * MARK_BYTES})::bigint"

_LONG_MARK = _END.format(bytes=LONG_MARK)

# A page of threads first, and then of each what is counted and added up, along the keys of their rows.
SUMMARIES = f"""
WITH page AS MATERIALIZED (
    SELECT thread_id, epoch, checksum
    FROM tm.thread
    WHERE live AND thread_id > $1::text
    ORDER BY thread_id
    LIMIT $2::bigint
)
SELECT
    page.thread_id,
    page.epoch,
    coalesce((SELECT p.position FROM tm.position AS p WHERE p.thread_id = page.thread_id), 0),
    coalesce((SELECT max(c.rank) FROM tm.checkpoint AS c WHERE c.thread_id = page.thread_id AND c.ns = ''), ''),
    checkpoints.rows,
    writes.rows,
    mod(checkpoints.total + writes.total + coalesce({_MARK.format(of="page.checksum")}, 0), {2**63})::bigint
FROM page
CROSS JOIN LATERAL (
    SELECT count(*) AS rows, coalesce(sum({_MARK.format(of=_CHECK_OF_CHECKPOINT)}), 0) AS total
    FROM tm.checkpoint AS c
    WHERE c.thread_id = page.thread_id
) AS checkpoints
CROSS JOIN LATERAL (
    SELECT count(*) AS rows, coalesce(sum({_MARK.format(of=_CHECK_OF_WRITE)}), 0) AS total
    FROM tm.write AS w
    WHERE w.thread_id = page.thread_id
) AS writes
ORDER BY page.thread_id
"""

# A row says by `kind` what it is: a checkpoint, a write or a segment.
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
