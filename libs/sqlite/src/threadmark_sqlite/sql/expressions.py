"""What statements of several modules have in common, so that the clock, a minute and a row are the same in all."""

# The database's clock, in microseconds since 1970; SQLite knows it to the millisecond.
CLOCK = "(CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)"

# What listings by the last update go along: a put writes nothing there but in the first of its minute.
MINUTE = 60_000_000  # microseconds

# `id` is NULL where it equals `rank`, which it does unless a clock was set back.
OUTLINE = "c.ns, c.id, c.rank, c.parent, c.created_at, c.metadata"
ROW = f"{OUTLINE}, c.header, c.checksum"

# The join order is pinned: without statistics SQLite might walk all checkpoints for one thread.
OF_THREAD = """
FROM threadmark_thread AS t
CROSS JOIN threadmark_checkpoint AS c ON c.thread = t.thread
WHERE t.thread_id = ?
"""

WITH_ID = "((c.rank = ? AND c.id IS NULL) OR c.id = ?)"

# A pending write, without the columns that it is found by.
PENDING_WRITE = "w.task_id, w.idx, w.task_path, w.channel, w.value, w.checksum"


def of_records(statement: str) -> str:
    """Return a statement on writes as one on the records of batches."""
    if "threadmark_write" not in statement:
        raise ValueError(f"this statement is not on writes: {statement!r}")
    return statement.replace("threadmark_write", "threadmark_batch")


def with_records(statement: str) -> str:
    """Return a query for writes as one for these and for the records of batches."""
    return f"{statement}UNION ALL{of_records(statement)}"
