"""Listing: pages of checkpoints, rows by their keys, chains of ancestors, heads, and the names of all threads."""

from threadmark_sqlite.sql.expressions import OF_THREAD, OUTLINE, ROW, WITH_ID, WRITE_ROW, of_both


def _page(columns: str) -> str:
    """Return the statement for a page of checkpoints, with the clauses of its scope joined by AND."""
    return f"""
SELECT t.thread_id, {columns}
FROM threadmark_thread AS t
CROSS JOIN threadmark_checkpoint AS c ON c.thread = t.thread
WHERE {{clauses}}
ORDER BY c.rank DESC, t.thread_id DESC, c.ns DESC
LIMIT ?
"""


PAGE, PAGE_OF_ROWS = _page(OUTLINE), _page(ROW)
PAGE_ALL = "TRUE"
PAGE_OF_THREAD = "t.thread_id = ?"
PAGE_OF_OWNER = "t.owner = ?"
PAGE_OF_NAMESPACE = "c.ns = ?"
PAGE_WITH_ID = WITH_ID
PAGE_BEFORE = "c.rank < ?"
PAGE_WITH_FRAGMENT = "instr(c.metadata, ?) > 0"
PAGE_AFTER = "(c.rank, t.thread_id, c.ns) < (?, ?, ?)"

# In two parts, because SQLite would use neither index for an OR of lists.
ROWS = f"""
SELECT {ROW}
{OF_THREAD} AND c.ns = ? AND c.rank IN ({{placeholders}}) AND c.id IS NULL
UNION ALL
SELECT {ROW}
{OF_THREAD} AND c.ns = ? AND c.id IN ({{placeholders}})
"""


def _writes_of_checkpoints(table: str) -> str:
    return f"""
SELECT {WRITE_ROW}
FROM threadmark_thread AS t
CROSS JOIN {table} AS w ON w.thread = t.thread
WHERE t.thread_id = ? AND w.ns = ? AND w.checkpoint_id IN ({{placeholders}})
"""


WRITES_OF_CHECKPOINTS = of_both(_writes_of_checkpoints)


def _writes_of_thread(table: str) -> str:
    return f"""
SELECT {WRITE_ROW}
FROM threadmark_thread AS t
CROSS JOIN {table} AS w ON w.thread = t.thread
WHERE t.thread_id = ?
"""


WRITES_OF_THREAD = of_both(_writes_of_thread)

_CHAIN = f"""
WITH RECURSIVE chain (depth, number, thread, ns, parent) AS (
    SELECT *
    FROM (
        SELECT 0, c.number, c.thread, c.ns, c.parent
        {OF_THREAD} AND c.ns = ? {{start}}
    )
    UNION ALL
    SELECT chain.depth + 1, c.number, c.thread, c.ns, c.parent
    FROM chain
    CROSS JOIN threadmark_checkpoint AS c
    WHERE c.thread = chain.thread AND c.ns = chain.ns
        AND ((c.rank = chain.parent AND c.id IS NULL) OR c.id = chain.parent)
    LIMIT ?
)
SELECT {ROW}
FROM chain
CROSS JOIN threadmark_checkpoint AS c ON c.number = chain.number
ORDER BY chain.depth
"""

# A checkpoint and its ancestors, nearest first.
CHAIN = _CHAIN.format(start=f"AND {WITH_ID}")
CHAIN_OF_NEWEST = _CHAIN.format(start="ORDER BY c.rank DESC LIMIT 1")

# The head of a thread's listing may have no checkpoints.
HEADS = """
SELECT h.thread_id, h.ns, h.newest, h.checkpoints
FROM threadmark_head AS h
WHERE h.checkpoints <> 0 AND {clauses}
"""
HEADS_OF_ALL = "TRUE"
HEADS_OF_THREAD = "h.thread_id = ?"
HEADS_OF_NAMESPACE = "h.ns = ?"
COUNTED_HEADS = """
SELECT h.thread_id, c.ns, max(c.rank), count(*)
FROM threadmark_thread AS h
CROSS JOIN threadmark_checkpoint AS c ON c.thread = h.thread
WHERE h.live = 1 AND {clauses}
GROUP BY h.thread_id, c.ns
"""
COUNTED_OF_NAMESPACE = "c.ns = ?"

# A thread with a head but without a row was damaged, and must be visited as well.
THREADS = """
SELECT thread_id
FROM threadmark_thread
WHERE live = 1 AND thread_id > ?
UNION
SELECT thread_id
FROM threadmark_head
WHERE thread_id > ?
ORDER BY thread_id
LIMIT ?
"""
