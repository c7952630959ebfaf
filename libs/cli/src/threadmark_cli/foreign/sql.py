"""Statements that read the tables of LangGraph's own savers for SQLite and Postgres. None of them writes."""

# Whether SQLite has LangGraph's tables, and whether it has ours.
SQLITE_CONTENTS = """
SELECT
    EXISTS (SELECT 1 FROM pragma_table_info('checkpoints') WHERE name = 'checkpoint_ns')
        AND EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'writes'),
    EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'threadmark_checkpoint')
"""

# The same of Postgres, at the connection's search path.
POSTGRES_CONTENTS = """
SELECT
    to_regclass('checkpoints') IS NOT NULL
        AND to_regclass('checkpoint_blobs') IS NOT NULL
        AND to_regclass('checkpoint_writes') IS NOT NULL,
    to_regclass('threadmark_checkpoint') IS NOT NULL
"""

# Whether tables of ours that are there have anything in them.
HAS_OURS = """
SELECT EXISTS (SELECT 1 FROM threadmark_checkpoint)
"""

# The namespaces of all threads, or of one, with how many checkpoints they have, between which ids, and how large.
SQLITE_NAMESPACES = """
SELECT
    thread_id, checkpoint_ns, COUNT(*), MIN(checkpoint_id), MAX(checkpoint_id),
    SUM(IFNULL(LENGTH(checkpoint), 0) + IFNULL(LENGTH(metadata), 0))
FROM checkpoints
WHERE :thread_id IS NULL OR thread_id = :thread_id
GROUP BY thread_id, checkpoint_ns
"""

POSTGRES_NAMESPACES = """
SELECT
    thread_id, checkpoint_ns, COUNT(*), MIN(checkpoint_id COLLATE "C"), MAX(checkpoint_id COLLATE "C"),
    SUM(pg_column_size(checkpoint) + pg_column_size(metadata))
FROM checkpoints
WHERE %(thread_id)s::text IS NULL OR thread_id = %(thread_id)s
GROUP BY thread_id, checkpoint_ns
"""

# How many pending writes threads have, and their size apart from their checkpoints.
SQLITE_BESIDE = """
SELECT thread_id, COUNT(*), SUM(IFNULL(LENGTH(value), 0))
FROM writes
WHERE :thread_id IS NULL OR thread_id = :thread_id
GROUP BY thread_id
"""

POSTGRES_BESIDE = """
SELECT thread_id, SUM(writes), SUM(bytes)
FROM (
    SELECT thread_id, 0 AS writes, COALESCE(octet_length(blob), 0) AS bytes
    FROM checkpoint_blobs
    UNION ALL
    SELECT thread_id, 1, COALESCE(octet_length(blob), 0)
    FROM checkpoint_writes
) AS parts
WHERE %(thread_id)s::text IS NULL OR thread_id = %(thread_id)s
GROUP BY thread_id
"""

# The writes of the tasks of each thread's newest checkpoint to the channels that decide about its status.
SQLITE_HEADS = """
SELECT w.thread_id, w.channel
FROM (
    SELECT thread_id, MAX(checkpoint_id) AS checkpoint_id
    FROM checkpoints
    WHERE checkpoint_ns = '' AND (:thread_id IS NULL OR thread_id = :thread_id)
    GROUP BY thread_id
) AS head
CROSS JOIN writes AS w
WHERE w.thread_id = head.thread_id AND w.checkpoint_ns = '' AND w.checkpoint_id = head.checkpoint_id
    AND w.channel IN ('__error__', '__interrupt__')
"""

POSTGRES_HEADS = """
SELECT w.thread_id, w.channel
FROM (
    SELECT thread_id, MAX(checkpoint_id COLLATE "C") AS checkpoint_id
    FROM checkpoints
    WHERE checkpoint_ns = '' AND (%(thread_id)s::text IS NULL OR thread_id = %(thread_id)s)
    GROUP BY thread_id
) AS head
JOIN checkpoint_writes AS w
    ON w.thread_id = head.thread_id AND w.checkpoint_ns = '' AND w.checkpoint_id = head.checkpoint_id
WHERE w.channel IN ('__error__', '__interrupt__')
"""

# The checkpoints of a thread, each with the mark that changes if the row is replaced. An empty id names none.
SQLITE_REFS = """
SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, rowid
FROM checkpoints
WHERE thread_id = ? AND checkpoint_id <> ''
"""

POSTGRES_REFS = """
SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, xmin::text
FROM checkpoints
WHERE thread_id = %s AND checkpoint_id <> ''
"""

# The same of its pending writes.
SQLITE_WRITE_REFS = """
SELECT checkpoint_ns, checkpoint_id, task_id, idx, rowid
FROM writes
WHERE thread_id = ?
"""

POSTGRES_WRITE_REFS = """
SELECT checkpoint_ns, checkpoint_id, task_id, idx, xmin::text
FROM checkpoint_writes
WHERE thread_id = %s
"""

# A checkpoint.
SQLITE_CHECKPOINT = """
SELECT type, checkpoint, metadata
FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
"""

POSTGRES_CHECKPOINT = """
SELECT checkpoint, metadata
FROM checkpoints
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s
"""

# The values that a Postgres checkpoint names by channel and version.
POSTGRES_BLOBS = """
SELECT b.channel, b.type, b.blob
FROM unnest(%s::text[], %s::text[]) AS wanted (channel, version)
JOIN checkpoint_blobs AS b
    ON b.thread_id = %s AND b.checkpoint_ns = %s AND b.channel = wanted.channel AND b.version = wanted.version
"""

# The pending writes of a checkpoint. Early releases had no task paths, so the columns are found by their names.
SQLITE_WRITES = """
SELECT *
FROM writes
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
ORDER BY task_id, idx
"""

POSTGRES_WRITES = """
SELECT *
FROM checkpoint_writes
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s
ORDER BY task_id, idx
"""
