"""The statements of replication: the term, the outbox, and how far threads were copied from another database."""

from threadmark.backends import LONG_MARK, MARK_BYTES

REPLICA = """
SELECT term, body
FROM threadmark_replica
"""
SET_REPLICA = """
UPDATE threadmark_replica
SET term = ?, body = ?
WHERE term <= ?
"""

POSITION = """
SELECT position
FROM threadmark_thread
WHERE thread_id = ?
"""

# If there is no thread, this makes one that is not live.
SET_POSITION = """
INSERT INTO threadmark_thread (thread_id, epoch, live, created_at, position)
VALUES (?, ?, 0, ?, ?)
ON CONFLICT (thread_id) DO UPDATE
SET position = excluded.position
"""
ADD_ENTRY = """
INSERT INTO threadmark_outbox (thread_id, position, body)
VALUES (?, ?, ?)
"""

OUTBOX = """
SELECT thread_id, position, body
FROM threadmark_outbox
ORDER BY position, thread_id
LIMIT ?
"""
OUTBOX_OF_THREAD = """
SELECT thread_id, position, body
FROM threadmark_outbox
WHERE thread_id = ?
ORDER BY position
LIMIT ?
"""
WAITING = """
SELECT (SELECT count(*) FROM threadmark_outbox), (SELECT coalesce(min(position), 0) FROM threadmark_outbox)
"""
SETTLE = """
DELETE FROM threadmark_outbox
WHERE thread_id = ? AND position <= ?
"""

POSITIONS = """
SELECT thread_id, position
FROM threadmark_thread
WHERE thread_id IN ({placeholders}) AND position > 0
"""

COPIED = """
SELECT thread_id, copied_position, copied_epoch
FROM threadmark_thread
WHERE thread_id IN ({placeholders}) AND copied_position IS NOT NULL
"""
SET_COPIED = """
INSERT INTO threadmark_thread (thread_id, epoch, live, created_at, copied_position, copied_epoch)
VALUES (?, ?, 0, ?, ?, ?)
ON CONFLICT (thread_id) DO UPDATE
SET copied_position = excluded.copied_position,
    copied_epoch = excluded.copied_epoch
"""


# A row, also if the thread does not exist.
PROGRESS = """
SELECT
    max(t.copied_position),
    max(t.copied_epoch),
    EXISTS (SELECT 1 FROM threadmark_outbox AS o WHERE o.thread_id = ?)
FROM threadmark_thread AS t
WHERE t.thread_id = ?
"""


def _mark(body: str, length: int) -> str:
    """Return the end of a row's check, or of its body if it has no check."""
    return f"substr(CASE WHEN length(x.checksum) > 0 THEN x.checksum ELSE x.{body} END, -{length})"


def _of_thread(columns: str, table: str) -> str:
    return f"""
SELECT {columns}
FROM threadmark_thread AS t
CROSS JOIN threadmark_{table} AS x ON x.thread = t.thread
WHERE t.thread_id = ?
"""


MARKED_CHECKPOINTS = _of_thread(f"x.ns, coalesce(x.id, x.rank), x.rank, {_mark('header', LONG_MARK)}", "checkpoint")
_MARKED_WRITE = f"x.ns, x.checkpoint_id, x.task_id, x.idx, {_mark('value', LONG_MARK)}"
MARKED_WRITES = f"{_of_thread(_MARKED_WRITE, 'write')}UNION ALL{_of_thread(_MARKED_WRITE, 'batch')}"
MARKED_SEGMENTS = _of_thread(f"x.key, length(x.data), substr(x.data, -{LONG_MARK})", "segment")


def _marks(table: str, body: str) -> str:
    """Return the marks of a thread's rows, in digits: SQLite cannot make a number of bytes, and the list is short."""
    return f"""(
        SELECT group_concat(hex({_mark(body, MARK_BYTES)}))
        FROM threadmark_{table} AS x
        WHERE x.thread = t.thread
    )"""


SUMMARIES = f"""
SELECT
    t.thread_id,
    t.epoch,
    t.position,
    (SELECT max(c.rank) FROM threadmark_checkpoint AS c WHERE c.thread = t.thread AND c.ns = ''),
    hex(substr(t.checksum, -{MARK_BYTES})),
    {_marks("checkpoint", "header")},
    {_marks("write", "value")},
    {_marks("batch", "value")}
FROM threadmark_thread AS t INDEXED BY sqlite_autoindex_threadmark_thread_1
WHERE t.live = 1 AND t.thread_id > ?
ORDER BY t.thread_id
LIMIT ?
"""
