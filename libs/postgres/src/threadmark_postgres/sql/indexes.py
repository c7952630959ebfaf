"""The state of an index on a table, or on each of its partitions, and the statements that create and drop one."""


def create(name: str, table: str, columns: str, *, concurrently: bool) -> str:
    """Return the statement that creates an index. `columns` has the brackets, and the condition of a partial index."""
    how = "CONCURRENTLY " if concurrently else ""
    return f"CREATE INDEX {how}IF NOT EXISTS {name} ON {table} {columns}"


def drop(name: str) -> str:
    """Return the statement that drops an index while others use the table."""
    return f"DROP INDEX CONCURRENTLY IF EXISTS {name}"


PLACES = """
SELECT
    place.oid::regclass::text,
    concat(
        quote_ident(n.nspname), '.', quote_ident($2::text || CASE WHEN place.part THEN '_' || place.oid ELSE '' END)
    ),
    CASE
        WHEN place.part AND EXISTS (
            SELECT
            FROM pg_catalog.pg_index AS whole
            JOIN pg_catalog.pg_class AS named ON named.oid = whole.indexrelid
            WHERE whole.indrelid = $1::text::regclass AND named.relname = $2::text AND whole.indisvalid
        )
            THEN 'valid'
        WHEN i.indexrelid IS NULL THEN 'missing'
        WHEN i.indisvalid THEN 'valid'
        WHEN EXISTS (SELECT FROM pg_catalog.pg_stat_progress_create_index AS p WHERE p.index_relid = i.indexrelid)
            THEN 'building'
        ELSE 'invalid'
    END,
    place.part
FROM (
    SELECT c.oid, c.relnamespace, false AS part
    FROM pg_catalog.pg_class AS c
    WHERE c.oid = $1::text::regclass AND c.relkind = 'r'
    UNION ALL
    SELECT c.oid, c.relnamespace, true
    FROM pg_catalog.pg_inherits AS h
    JOIN pg_catalog.pg_class AS c ON c.oid = h.inhrelid
    WHERE h.inhparent = $1::text::regclass
) AS place
JOIN pg_catalog.pg_namespace AS n ON n.oid = place.relnamespace
LEFT JOIN (
    pg_catalog.pg_index AS i
    JOIN pg_catalog.pg_class AS named ON named.oid = i.indexrelid
)
    ON i.indrelid = place.oid
    AND named.relname = $2::text || CASE WHEN place.part THEN '_' || place.oid ELSE '' END
"""
