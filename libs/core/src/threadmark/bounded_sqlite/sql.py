"""The queries on a SQLite file before anything is read from it."""

PAGES = "PRAGMA page_count"
PAGE_BYTES = "PRAGMA page_size"

# A table and the objects attached to it. Names are the same in any case.
SCHEMA_OF_TABLE = """
SELECT type, coalesce(sql, '')
FROM sqlite_master
WHERE lower(name) = ? OR lower(tbl_name) = ?
"""

# The seventh column says whether a column is hidden, or computed.
COLUMNS = "PRAGMA table_xinfo({name})"
COMPUTED = 6

VIRTUAL = "CREATE VIRTUAL"
