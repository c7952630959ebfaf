"""Statements on the tables of LangGraph's own savers. Those for SQLite and Postgres have the same columns."""

# Whether SQLite has the tables.
SQLITE_HAS_TABLES = """
SELECT 1
FROM sqlite_master
WHERE type = 'table' AND name = 'checkpoints'
"""

# Whether Postgres has the tables in the connection's search path. A row if it has.
POSTGRES_HAS_TABLES = """
SELECT 1
WHERE to_regclass('checkpoints') IS NOT NULL
"""

# Whether SQLite has LangGraph's tables, and ours.
SQLITE_CONTENTS = """
SELECT
    EXISTS (SELECT 1 FROM pragma_table_info('checkpoints') WHERE name = 'checkpoint_ns'),
    EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'threadmark_checkpoint')
"""

# The same for Postgres, in the connection's search path.
POSTGRES_CONTENTS = """
SELECT
    to_regclass('checkpoints') IS NOT NULL AND to_regclass('checkpoint_writes') IS NOT NULL,
    to_regclass('threadmark_checkpoint') IS NOT NULL
"""

# Every checkpoint and its parent.
CHECKPOINTS = """
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id
FROM checkpoints
"""

# The places of a checkpoint's pending writes. {writes} is their table, {path} its column of task paths or an expression
# in its place, {mark} a parameter as the driver writes it.
PLACES = """
SELECT task_id, {path}, idx
FROM {writes}
WHERE thread_id = {mark} AND checkpoint_ns = {mark} AND checkpoint_id = {mark}
"""

# Whether LangGraph's table of writes has the column of task paths.
SQLITE_HAS_TASK_PATHS = """
SELECT 1
FROM pragma_table_info('writes')
WHERE name = 'task_path'
"""

# The missing checkpoints of pending writes.
ORPHAN_WRITES = """
SELECT DISTINCT thread_id, checkpoint_ns, checkpoint_id
FROM {writes} AS w
WHERE NOT EXISTS (
    SELECT 1
    FROM checkpoints AS c
    WHERE c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns AND c.checkpoint_id = w.checkpoint_id
)
ORDER BY 1, 2, 3
"""
