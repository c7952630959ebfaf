"""Finding a checkpoint with its writes, and the segments of their values."""

from functools import partial

from threadmark_sqlite.sql.expressions import (
    CHECKPOINT,
    OF_THREAD,
    PENDING,
    PENDING_WRITE,
    ROW,
    WITH_ID,
    listed,
    of_both,
)

_ABOUT = ("epoch", "owner", "expires_at")
_FOUND = f"{listed(_ABOUT, 't')}, {ROW}"


def _writes_of_checkpoint(table: str, filling: str = "") -> str:
    return f"""
SELECT NULL, {PENDING_WRITE}{filling}
FROM threadmark_thread AS t
CROSS JOIN {table} AS w ON w.thread = t.thread
WHERE t.thread_id = ? AND w.ns = ? AND w.checkpoint_id = ?
"""


WRITES_OF_CHECKPOINT = of_both(_writes_of_checkpoint)

# The checkpoint and its writes: one statement sees one snapshot, and is faster than two. The first column tells them
# apart. A checkpoint has a second column in front and more at the end; NULL fills the rows of its writes.
_FILLING = ", NULL" * (1 + len(_ABOUT) + len(CHECKPOINT) - len(PENDING))
_FIND_WRITES = of_both(partial(_writes_of_checkpoint, filling=_FILLING))
FIND = f"""
SELECT 1, NULL, {_FOUND}
{OF_THREAD} AND c.ns = ? AND {WITH_ID}
UNION ALL{_FIND_WRITES}"""

# The head has its own row: if the thread or its checkpoints are missing, the head shows that they should exist.
_NEWEST_OF_HEADS = """
FROM threadmark_head AS h
LEFT JOIN threadmark_thread AS t ON t.thread_id = h.thread_id
LEFT JOIN threadmark_checkpoint AS c ON c.number = (
    SELECT n.number
    FROM threadmark_checkpoint AS n
    WHERE n.thread = t.thread AND n.ns = h.ns
    ORDER BY n.rank DESC
    LIMIT 1
)
"""


# The head's row is the first. The writes are those of the checkpoint that the head names.
def _find_writes_of_newest(table: str) -> str:
    return f"""
SELECT NULL, {PENDING_WRITE}{_FILLING}
FROM threadmark_head AS h
CROSS JOIN threadmark_thread AS t ON t.thread_id = h.thread_id
CROSS JOIN {table} AS w ON w.thread = t.thread AND w.ns = h.ns AND w.checkpoint_id = h.newest_id
WHERE h.thread_id = ? AND h.ns = ? AND h.checkpoints <> 0
"""


_FIND_WRITES_OF_NEWEST = of_both(_find_writes_of_newest)
FIND_NEWEST = f"""
SELECT h.newest, h.newest_id, {_FOUND}
{_NEWEST_OF_HEADS}
WHERE h.thread_id = ? AND h.ns = ? AND h.checkpoints <> 0
UNION ALL{_FIND_WRITES_OF_NEWEST}"""
NEWEST_OF_THREADS = f"""
SELECT h.thread_id, h.newest, NULL, {_FOUND}
{_NEWEST_OF_HEADS}
WHERE h.ns = ? AND h.checkpoints <> 0 AND h.thread_id IN ({{placeholders}})
"""

FIND_NEWEST_WITHOUT_HEAD = f"""
SELECT '', NULL, {_FOUND}
{OF_THREAD} AND c.ns = ?
ORDER BY c.rank DESC
LIMIT 1
"""

SEGMENTS = """
SELECT s.key, s.data
FROM threadmark_thread AS t
CROSS JOIN threadmark_segment AS s ON s.thread = t.thread
WHERE t.thread_id = ? AND s.key IN ({placeholders})
"""

SEGMENTS_OF_THREADS = """
WITH asked (thread_id, key) AS (VALUES {placeholders})
SELECT t.thread_id, s.key, s.data
FROM asked
CROSS JOIN threadmark_thread AS t ON t.thread_id = asked.thread_id
CROSS JOIN threadmark_segment AS s ON s.thread = t.thread AND s.key = asked.key
"""

SEGMENT_SIZES = """
SELECT s.key, length(s.data)
FROM threadmark_thread AS t
CROSS JOIN threadmark_segment AS s ON s.thread = t.thread
WHERE t.thread_id = ?
"""
