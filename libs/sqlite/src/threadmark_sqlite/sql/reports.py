"""Questions about a database as a whole: its report, its damage, and whose data it has."""

from threadmark_sqlite.sql.expressions import MINUTE

# The file's figures in a report.
PAGE_BYTES = "PRAGMA page_size"
PAGES = "PRAGMA page_count"
FREE_PAGES = "PRAGMA freelist_count"
OTHER_TABLES = """
SELECT name
FROM sqlite_master
WHERE type = 'table'
    AND name NOT GLOB 'threadmark_*'
    AND name NOT GLOB 'sqlite_*'
ORDER BY name
"""

# Whether the file has the tables of LangGraph's own saver.
LANGGRAPH_TABLES = """
SELECT EXISTS (SELECT 1 FROM pragma_table_info('checkpoints') WHERE name = 'checkpoint_ns')
    AND EXISTS (SELECT 1 FROM pragma_table_info('writes') WHERE name = 'checkpoint_ns')
"""

# A row if there are checkpoints in those tables, and none in ours.
HAS_ONLY_LANGGRAPH_DATA = """
SELECT 1
FROM checkpoints
WHERE NOT EXISTS (SELECT 1 FROM threadmark_head WHERE checkpoints <> 0)
LIMIT 1
"""

# Any checkpoint.
SAMPLE = """
SELECT checksum, header
FROM threadmark_checkpoint
LIMIT 1
"""

LOST_ROWS = """
SELECT 'threadmark_checkpoint', count(*)
FROM threadmark_checkpoint
WHERE thread NOT IN (SELECT thread FROM threadmark_thread WHERE live = 1)
UNION ALL
SELECT 'threadmark_write', count(*)
FROM threadmark_write
WHERE thread NOT IN (SELECT thread FROM threadmark_thread WHERE live = 1)
UNION ALL
SELECT 'threadmark_batch', count(*)
FROM threadmark_batch
WHERE thread NOT IN (SELECT thread FROM threadmark_thread WHERE live = 1)
UNION ALL
SELECT 'threadmark_segment', count(*)
FROM threadmark_segment
WHERE thread NOT IN (SELECT thread FROM threadmark_thread WHERE live = 1)
"""
# Threads that no listing finds, and threads that a listing by time has in a wrong place.
UNLISTED = f"""
SELECT
    coalesce(sum(h.ns IS NULL), 0),
    coalesce(
        sum(
            (h.ns IS NOT NULL AND (t.minute IS NOT h.updated_at / {MINUTE} OR typeof(h.updated_at) <> 'integer'))
            OR typeof(t.created_at) <> 'integer'
        ),
        0
    )
FROM threadmark_thread AS t
LEFT JOIN threadmark_head AS h ON h.thread_id = t.thread_id AND h.ns = ''
WHERE t.live = 1
"""
CHECK_STRUCTURE = "PRAGMA integrity_check"
