"""Statements that do not depend on a program: settings, transactions, and everything about the file as a whole.

These include giving space back, the signs of other writers, and the setup of the tables.
"""

APPLICATION_ID = 0x54484D4B  # "THMK"

# Run on every new connection.
BUSY_TIMEOUT = "PRAGMA busy_timeout = {milliseconds:d}"

# On macOS a sync leaves data in the cache of the disk, unless it is a full one. Other systems ignore the two settings.
# With "normal" the log is copied into the file after a full sync: what a power cut leaves is whole, though not new.
_FULL_CHECKPOINTS = "PRAGMA checkpoint_fullfsync = ON"
DURABILITY = {
    "full": ("PRAGMA synchronous = FULL", "PRAGMA fullfsync = ON", _FULL_CHECKPOINTS),
    "normal": ("PRAGMA synchronous = NORMAL", _FULL_CHECKPOINTS),
}
WAL_SIZE_LIMIT = "PRAGMA journal_size_limit = 16777216"
# Removed data is overwritten with zeros, also if SQLite was not built to do so.
SECURE_DELETE = "PRAGMA secure_delete = ON"

# Functions with side effects are refused in anything that the file itself defines, such as views.
UNTRUSTED_SCHEMA = "PRAGMA trusted_schema = OFF"

# Run on a new file, before its first table. With a write-ahead log, readers go on while another connection writes.
INCREMENTAL_VACUUM = "PRAGMA auto_vacuum = INCREMENTAL"
WRITE_AHEAD_LOG = "PRAGMA journal_mode = WAL"
LOG_MODE = "PRAGMA journal_mode"

BEGIN_READ = "BEGIN"
BEGIN_WRITE = "BEGIN IMMEDIATE"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"

# A part of a transaction, which can be undone by itself.
SAVEPOINT = "SAVEPOINT threadmark"
ROLLBACK_TO = "ROLLBACK TO threadmark"
RELEASE = "RELEASE threadmark"

# Free pages are moved to the end of the file and cut off. Then the log, which may hold the old ones, is emptied.
GIVE_SPACE_BACK = "PRAGMA incremental_vacuum"
EMPTY_LOG = "PRAGMA wal_checkpoint(TRUNCATE)"

FILES = "PRAGMA database_list"
READS_ONLY = "PRAGMA query_only"

# The plan shows whether SQLite would open the database for writing. Asking runs nothing and locks nothing.
PLAN_OF_WRITING = "EXPLAIN BEGIN IMMEDIATE"

# A number that changes when another connection commits.
COMMITS_OF_OTHERS = "PRAGMA data_version"

# Figures that differ between two states of a database, and that do not need all of it to be read. Epochs and tokens are
# microseconds: the sum of a few thousand would exceed an integer.
SUMMARY = """
SELECT
    (SELECT max(thread) FROM threadmark_thread),
    (SELECT sum(epoch & 0xFFFFFFFF) FROM threadmark_thread),
    (SELECT sum(token & 0xFFFFFFFF) FROM threadmark_thread),
    (SELECT max(number) FROM threadmark_segment),
    (SELECT max(number) FROM threadmark_checkpoint),
    (SELECT count(*) FROM threadmark_checkpoint),
    (SELECT count(*) FROM threadmark_write)
"""

# Run on a file that has replaced the open one: savers must not use their memory of the old file here.
END_EPOCHS = """
UPDATE threadmark_thread
SET epoch = max(epoch + 1, ?)
"""

GET_APPLICATION_ID = "PRAGMA application_id"
SET_APPLICATION_ID = f"PRAGMA application_id = {APPLICATION_ID:d}"
# Chosen by the program that made the file.
GET_ENCODING = "PRAGMA encoding"
# The format in which the file is written, so that each transaction learns of a switch by one short statement.
GET_WRITTEN = "PRAGMA user_version"
SET_WRITTEN = "PRAGMA user_version = {number:d}"

HAS_MIGRATIONS = """
SELECT count(*)
FROM sqlite_master
WHERE type = 'table' AND name = 'threadmark_migration'
"""

# Everything that has one of our names or is attached to one of our tables. Names are compared in lower case. Indexes
# that SQLite makes for a key have no text.
SCHEMA = """
SELECT type, name, tbl_name, sql
FROM sqlite_master
WHERE sql IS NOT NULL AND (lower(name) GLOB 'threadmark_*' OR lower(tbl_name) GLOB 'threadmark_*')
"""

RECORDED_FORMAT = """
SELECT coalesce(max(number), 0), coalesce(max(least_reader), 0), coalesce(max(least_writer), 0)
FROM threadmark_migration
"""

RECORD_MIGRATION = """
INSERT INTO threadmark_migration (number, name, applied_at, least_reader, least_writer)
VALUES (?, ?, ?, ?, ?)
"""

# The same for a script, which has no parameters.
SCRIPTED_RECORD = """
INSERT INTO threadmark_migration (number, name, applied_at, least_reader, least_writer)
VALUES ({number:d}, '{name}', strftime('%Y-%m-%dT%H:%M:%S+00:00', 'now'), {reader}, {writer})
"""
PRESENT_READER = "(SELECT max(least_reader) FROM threadmark_migration)"
PRESENT_WRITER = "(SELECT max(least_writer) FROM threadmark_migration)"

RECORD_SWITCH = """
UPDATE threadmark_migration
SET least_reader = ?, least_writer = ?
WHERE number = ?
"""
