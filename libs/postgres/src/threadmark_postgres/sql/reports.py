"""Questions about a database as a whole: its report, its damage, and whose data it has."""

from threadmark_postgres.sql.expressions import MINUTE

# The server, the database and our tables, and the tables of LangGraph's own saver in the search path.
REPORT = """
SELECT
    current_setting('server_version'),
    current_setting('synchronous_commit'),
    current_setting('fsync'),
    current_setting('full_page_writes'),
    pg_catalog.pg_is_in_recovery(),
    current_database(),
    (SELECT coalesce(max(number), 0) FROM tm.migration),
    (SELECT coalesce(max(least_reader), 0) FROM tm.migration),
    (SELECT coalesce(max(least_writer), 0) FROM tm.migration),
    (
        SELECT coalesce(sum(pg_catalog.pg_total_relation_size(c.oid)), 0)::bigint
        FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_class AS ours ON ours.relnamespace = c.relnamespace
        WHERE ours.oid = (SELECT tableoid FROM tm.migration LIMIT 1)
            AND starts_with(c.relname::text, 'threadmark_')
            AND c.relkind = 'r'
    ),
    ARRAY(
        SELECT name
        FROM unnest(ARRAY['checkpoint_blobs', 'checkpoint_migrations', 'checkpoint_writes', 'checkpoints']) AS name
        WHERE pg_catalog.to_regclass(name) IS NOT NULL
    )
"""

# Whether the tables of LangGraph's own saver in the search path take any space, and ours have no checkpoint.
# Citus needs a column in the sub-select.
HAS_ONLY_LANGGRAPH_DATA = """
SELECT pg_catalog.to_regclass('checkpoint_blobs') IS NOT NULL
    AND pg_catalog.to_regclass('checkpoint_writes') IS NOT NULL
    AND coalesce(pg_catalog.pg_relation_size(pg_catalog.to_regclass('checkpoints')), 0) > 0
    AND NOT EXISTS (SELECT 1 FROM tm.head WHERE checkpoints > 0)
"""

# Any checkpoint.
SAMPLE = """
SELECT checksum, header
FROM tm.checkpoint
LIMIT 1
"""

LOST_ROWS = """
SELECT kind, count(*)
FROM (
    SELECT 'checkpoint' AS kind, thread_id
    FROM tm.checkpoint
    UNION ALL
    SELECT 'write', thread_id
    FROM tm.write
    UNION ALL
    SELECT 'segment', thread_id
    FROM tm.segment
) AS kept
WHERE NOT EXISTS (SELECT FROM tm.thread AS t WHERE t.thread_id = kept.thread_id AND t.live)
GROUP BY kind
"""

# Threads without a head, which no listing finds, and threads that listings find in another minute than that of their
# last update.
UNLISTED = f"""
SELECT count(*) FILTER (WHERE h.ns IS NULL), count(*) FILTER (WHERE h.minute <> {MINUTE.format("h.updated_at")})
FROM tm.thread AS t
LEFT JOIN tm.head AS h ON h.thread_id = t.thread_id AND h.ns = ''
WHERE t.live
"""
