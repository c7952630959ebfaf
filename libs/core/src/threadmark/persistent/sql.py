"""Every statement on the SQLite file of a persistent dictionary, one constant each."""

APPLICATION_ID = 0x54484D44  # "THMD"
FORMAT = 1

# Run on every connection that stores. EXTRA also syncs the folder after the journal was removed from it, without which
# a power cut could bring the journal back, and with it the contents before a sync that has returned.
DURABLE = "PRAGMA synchronous = EXTRA"

# On macOS a sync leaves data in the cache of the disk, unless it is a full one. Other systems ignore this.
FULL_SYNC = "PRAGMA fullfsync = ON"

# Deleted rows are overwritten, and the file gets smaller. The latter takes effect before the first table is made.
OVERWRITE_DELETED = "PRAGMA secure_delete = ON"
SHRINK = "PRAGMA auto_vacuum = FULL"

# Run on the connection that holds the lock: nothing is ever stored by it.
NO_JOURNAL_FILE = "PRAGMA journal_mode = MEMORY"

GET_APPLICATION_ID = "PRAGMA application_id"
GET_FORMAT = "PRAGMA user_version"
COUNT_TABLES = "SELECT count(*) FROM sqlite_master"

BEGIN_READ = "BEGIN"
BEGIN_WRITE = "BEGIN IMMEDIATE"
BEGIN_ALONE = "BEGIN EXCLUSIVE"
COMMIT = "COMMIT"

# Entries are ordered by position. The one row of `contents` has the purpose of the file, and a digest of
# all entries, so that a missing one is missed.
CREATE = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
    """
    CREATE TABLE entry (
        position INTEGER PRIMARY KEY,
        key BLOB NOT NULL,
        value BLOB NOT NULL,
        digest BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE contents (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        kind TEXT NOT NULL,
        digest BLOB NOT NULL
    )
    """,
)

GET_CONTENTS = """
SELECT kind, digest
FROM contents
"""

SET_CONTENTS = """
INSERT OR REPLACE INTO contents (id, kind, digest)
VALUES (1, ?, ?)
"""

GET_ENTRIES = """
SELECT position, key, value, digest
FROM entry
ORDER BY position
"""

SET_ENTRY = """
INSERT OR REPLACE INTO entry (position, key, value, digest)
VALUES (?, ?, ?, ?)
"""

DELETE_ENTRY = """
DELETE FROM entry
WHERE position = ?
"""

DELETE_ENTRIES = "DELETE FROM entry"
