"""Expressions that several modules share, so that the clock, a minute and a row are the same in all statements."""

from collections.abc import Callable, Sequence

# The database's clock, in microseconds since 1970; SQLite knows it to the millisecond.
CLOCK = "(CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)"

# The key of listings by the last update: only the first put of a minute writes there.
MINUTE = 60_000_000  # microseconds

# The columns of a checkpoint and of a pending write, without the number of their thread. Every statement that reads or
# adds whole rows derives from these two, and `columns` packs and unpacks in their order.
# `id` is NULL if it equals `rank`, which it does unless a clock was set back.
CHECKPOINT = ("ns", "rank", "id", "parent", "created_at", "metadata", "header", "checksum")
WRITE = ("ns", "checkpoint_id", "task_id", "task_path", "idx", "channel", "value", "checksum")


def listed(columns: Sequence[str], table: str = "") -> str:
    """Return a list of columns, such as "c.ns, c.rank" with the table "c"."""
    return ", ".join(f"{table}.{column}" if table else column for column in columns)


def parameters(count: int) -> str:
    """Return this many parameters, such as "?, ?"."""
    return ", ".join("?" * count)


ROW = listed(CHECKPOINT, "c")
OUTLINE = listed(CHECKPOINT[: CHECKPOINT.index("header")], "c")

# The join order is pinned: without statistics SQLite might walk all checkpoints for one thread.
OF_THREAD = """
FROM threadmark_thread AS t
CROSS JOIN threadmark_checkpoint AS c ON c.thread = t.thread
WHERE t.thread_id = ?
"""

WITH_ID = "((c.rank = ? AND c.id IS NULL) OR c.id = ?)"

# A pending write, with and without the columns of the checkpoint by which it is found.
WRITE_ROW = listed(WRITE, "w")
PENDING = WRITE[WRITE.index("task_id") :]
PENDING_WRITE = listed(PENDING, "w")


# Pending writes, and the records of their batches: two tables with the same columns.
WRITES, RECORDS = "threadmark_write", "threadmark_batch"


def of_both(query: Callable[[str], str]) -> str:
    """Return a query for writes and for the records of batches, made from the query for one of the tables."""
    return f"{query(WRITES)}UNION ALL{query(RECORDS)}"
