"""Every statement of the SQLite backend, one constant each.

Names of users (threads, channels, metadata keys) are always bound, never part of a statement. No parameter is numbered
(`?1`): up to Python 3.12.3 sqlite3 takes that for a name, and warns.
"""

from threadmark.names import MESSAGES_NS

APPLICATION_ID = 0x54484D4B  # "THMK"

# Run on every new connection.
BUSY_TIMEOUT = "PRAGMA busy_timeout = {milliseconds:d}"
SYNCHRONOUS = {
    "full": "PRAGMA synchronous = FULL",
    "normal": "PRAGMA synchronous = NORMAL",
}
WAL_SIZE_LIMIT = "PRAGMA journal_size_limit = 16777216"
# What is removed is overwritten with zeros, where SQLite was not built to do so anyway.
SECURE_DELETE = "PRAGMA secure_delete = ON"

# Run on a new file, before its first table. With a write-ahead log, readers go on while another connection writes.
INCREMENTAL_VACUUM = "PRAGMA auto_vacuum = INCREMENTAL"
WRITE_AHEAD_LOG = "PRAGMA journal_mode = WAL"
LOG_MODE = "PRAGMA journal_mode"

BEGIN_READ = "BEGIN"
BEGIN_WRITE = "BEGIN IMMEDIATE"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"

# Free pages are moved to the end of the file and cut off. Then the log, which may hold the old ones, is emptied.
GIVE_SPACE_BACK = "PRAGMA incremental_vacuum"
EMPTY_LOG = "PRAGMA wal_checkpoint(TRUNCATE)"

FILES = "PRAGMA database_list"
READS_ONLY = "PRAGMA query_only"

# The plan shows whether SQLite would open the database for writing. Asking runs nothing and locks nothing.
PLAN_OF_WRITING = "EXPLAIN BEGIN IMMEDIATE"

# A number that changes when another connection commits.
COMMITS_OF_OTHERS = "PRAGMA data_version"

# Figures that differ between two states of a database, and that need no reading of all of it. Epochs and tokens are
# microseconds: the sum of a few thousand would be no integer any more.
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

GET_APPLICATION_ID = "PRAGMA application_id"
SET_APPLICATION_ID = f"PRAGMA application_id = {APPLICATION_ID:d}"
GET_FORMAT = "PRAGMA user_version"
SET_FORMAT = "PRAGMA user_version = {number:d}"

HAS_MIGRATIONS = """
SELECT count(*)
FROM sqlite_master
WHERE type = 'table' AND name = 'threadmark_migration'
"""

LAST_MIGRATION = """
SELECT coalesce(max(number), 0)
FROM threadmark_migration
"""

RECORD_MIGRATION = """
INSERT INTO threadmark_migration (number, name, applied_at)
VALUES (?, ?, ?)
"""

# The same where a script has no parameters.
SCRIPTED_RECORD = """
INSERT INTO threadmark_migration (number, name, applied_at)
VALUES ({number:d}, '{name}', strftime('%Y-%m-%dT%H:%M:%S+00:00', 'now'))
"""

# The database's clock, in microseconds since 1970; SQLite knows it to the millisecond.
CLOCK = "(CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)"

# What listings by the last update go along: a put writes nothing there but in the first of its minute.
MINUTE = 60_000_000  # microseconds
_MINUTE_OF_HEAD = (
    f"(SELECT h.updated_at / {MINUTE} FROM threadmark_head AS h WHERE h.thread_id = {{thread_id}} AND h.ns = '')"
)

# What a change has to know of its thread. The clock is asked only where there was a lease that nobody has ended.
_THREAD = f"""
SELECT thread, epoch, live, deleted_up_to, owner, expires_at, token, lease_ttl,
    CASE WHEN lease_ends IS NOT NULL THEN lease_ends - {CLOCK} END,
    minute
"""
_OF_ID = """
FROM threadmark_thread AS t
WHERE t.thread_id = ?
"""
THREAD = f"{_THREAD}{_OF_ID}"

# The same, and whether a checkpoint is there.
THREAD_AND_CHECKPOINT = f"""{_THREAD},
    EXISTS (
        SELECT 1
        FROM threadmark_checkpoint AS c
        WHERE c.thread = t.thread AND c.ns = ? AND ((c.rank = ? AND c.id IS NULL) OR c.id = ?)
    )
{_OF_ID}"""

# A thread that a change goes to like most: it is there, was never deleted, and has no lease. Each column less is a
# twentieth of what the statement costs. A checkpoint under its own rank is not looked for: adding it again fails.
PLAIN_THREAD = """
SELECT thread, epoch, owner, expires_at, minute
FROM threadmark_thread AS t
WHERE t.thread_id = ? AND t.live = 1 AND t.deleted_up_to IS NULL AND t.lease_ends IS NULL
"""
PLAIN_THREAD_WITHOUT = f"""{PLAIN_THREAD}
    AND NOT EXISTS (
        SELECT 1
        FROM threadmark_checkpoint AS c
        WHERE c.thread = t.thread AND c.ns = ? AND c.id = ?
    )
"""

# A new thread, or one of which only the memory of a deleted one or a lease is there.
# A process of an earlier release that deletes a thread leaves its title and metadata.
BEGIN_THREAD = f"""
INSERT INTO threadmark_thread (thread_id, epoch, live, created_at, owner, expires_at, checksum, minute)
VALUES (?, ?, 1, ?, ?, ?, ?, {_MINUTE_OF_HEAD.format(thread_id="?")})
ON CONFLICT (thread_id) DO UPDATE
SET live = 1,
    created_at = excluded.created_at,
    owner = excluded.owner,
    title = NULL,
    folded_title = NULL,
    metadata = NULL,
    expires_at = excluded.expires_at,
    checksum = excluded.checksum,
    minute = excluded.minute
"""

NEXT_EPOCH = """
UPDATE threadmark_thread
SET epoch = epoch + 1
WHERE thread = ?
"""

# Run on a file that has replaced the open one: what savers remember of the old file must not be relied on here.
END_EPOCHS = """
UPDATE threadmark_thread
SET epoch = max(epoch + 1, ?)
"""

BURY_THREAD = f"""
UPDATE threadmark_thread
SET live = 0,
    deleted_up_to = ?,
    epoch = max(epoch + 1, ?),
    owner = NULL,
    title = NULL,
    folded_title = NULL,
    metadata = NULL,
    expires_at = NULL,
    checksum = NULL,
    minute = NULL,
    token = CASE WHEN token > 0 THEN max(token + 1, {CLOCK}) ELSE token END,
    lease_ends = NULL,
    lease_ttl = NULL,
    holder = NULL,
    began = NULL
WHERE thread = ?
"""

FORGET_BURIED = f"""
DELETE FROM threadmark_thread
WHERE live = 0 AND epoch < ? AND (lease_ends IS NULL OR lease_ends <= {CLOCK})
    AND NOT EXISTS (SELECT 1 FROM threadmark_outbox AS o WHERE o.thread_id = threadmark_thread.thread_id)
"""

# A thread that has a head but no row of its own was damaged, and is to be looked at as well.
THREADS = """
SELECT thread_id
FROM threadmark_thread
WHERE live = 1 AND thread_id > ?
UNION
SELECT thread_id
FROM threadmark_head
WHERE thread_id > ?
ORDER BY thread_id
LIMIT ?
"""

# Some checkpoint.
SAMPLE = """
SELECT checksum, header
FROM threadmark_checkpoint
LIMIT 1
"""

# Whether the file has the tables of LangGraph's own saver.
LANGGRAPH_TABLES = """
SELECT EXISTS (SELECT 1 FROM pragma_table_info('checkpoints') WHERE name = 'checkpoint_ns')
    AND EXISTS (SELECT 1 FROM pragma_table_info('writes') WHERE name = 'checkpoint_ns')
"""

# What a report says of the file.
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

# A row if there are checkpoints in those tables, and none in ours.
HAS_ONLY_LANGGRAPH_DATA = """
SELECT 1
FROM checkpoints
WHERE NOT EXISTS (SELECT 1 FROM threadmark_head WHERE checkpoints <> 0)
LIMIT 1
"""

# `id` is NULL where it equals `rank`, which it does unless a clock was set back.
_OUTLINE = "c.ns, c.id, c.rank, c.parent, c.created_at, c.metadata"
_ROW = f"{_OUTLINE}, c.header, c.checksum"

# The join order is pinned: without statistics SQLite might walk all checkpoints for one thread.
_OF_THREAD = """
FROM threadmark_thread AS t
CROSS JOIN threadmark_checkpoint AS c ON c.thread = t.thread
WHERE t.thread_id = ?
"""

_WITH_ID = "((c.rank = ? AND c.id IS NULL) OR c.id = ?)"

_FOUND = f"t.epoch, t.owner, t.expires_at, {_ROW}"

# Pending writes of a checkpoint, without the columns that are asked for.
_WRITES = "w.task_id, w.idx, w.task_path, w.channel, w.value, w.checksum"


def _of_records(statement: str) -> str:
    """The same statement for the records of batches."""
    return statement.replace("threadmark_write", "threadmark_batch")


def _with_records(statement: str) -> str:
    return f"{statement}UNION ALL{_of_records(statement)}"


WRITES_OF_CHECKPOINT = _with_records(f"""
SELECT NULL, {_WRITES}
FROM threadmark_thread AS t
CROSS JOIN threadmark_write AS w ON w.thread = t.thread
WHERE t.thread_id = ? AND w.ns = ? AND w.checkpoint_id = ?
""")
_WRITES_BESIDE = f"NULL, {_WRITES}, NULL, NULL, NULL, NULL, NULL, NULL"

# The checkpoint and its writes: one statement sees one snapshot, and takes less than two. The first column tells which.
_FIND_WRITES = _with_records(f"""
SELECT {_WRITES_BESIDE}
FROM threadmark_thread AS t
CROSS JOIN threadmark_write AS w ON w.thread = t.thread
WHERE t.thread_id = ? AND w.ns = ? AND w.checkpoint_id = ?
""")
FIND = f"""
SELECT 1, NULL, {_FOUND}
{_OF_THREAD} AND c.ns = ? AND {_WITH_ID}
UNION ALL{_FIND_WRITES}"""

# The head stands by itself: where the thread or its checkpoints are not found, it tells that they should be.
_NEWEST_OF_HEADS = """
FROM threadmark_head AS h
LEFT JOIN threadmark_thread AS t ON t.thread_id = h.thread_id
LEFT JOIN threadmark_checkpoint AS c ON c.number = (
    SELECT n.number
    FROM threadmark_checkpoint AS n
    WHERE n.thread = t.thread AND n.ns = h.ns
    ORDER BY n.rank DESC
    LIMIT 1
)
"""

# The head's row is the first. The writes are those of the checkpoint that the head names.
_FIND_WRITES_OF_NEWEST = _with_records(f"""
SELECT {_WRITES_BESIDE}
FROM threadmark_head AS h
CROSS JOIN threadmark_thread AS t ON t.thread_id = h.thread_id
CROSS JOIN threadmark_write AS w ON w.thread = t.thread AND w.ns = h.ns AND w.checkpoint_id = h.newest_id
WHERE h.thread_id = ? AND h.ns = ? AND h.checkpoints <> 0
""")
FIND_NEWEST = f"""
SELECT h.newest, h.newest_id, {_FOUND}
{_NEWEST_OF_HEADS}
WHERE h.thread_id = ? AND h.ns = ? AND h.checkpoints <> 0
UNION ALL{_FIND_WRITES_OF_NEWEST}"""
NEWEST_OF_THREADS = f"""
SELECT h.thread_id, h.newest, NULL, {_FOUND}
{_NEWEST_OF_HEADS}
WHERE h.ns = ? AND h.checkpoints <> 0 AND h.thread_id IN ({{placeholders}})
"""

FIND_NEWEST_WITHOUT_HEAD = f"""
SELECT '', NULL, {_FOUND}
{_OF_THREAD} AND c.ns = ?
ORDER BY c.rank DESC
LIMIT 1
"""

# The head of a thread's listing may have no checkpoints.
HEADS = """
SELECT h.thread_id, h.ns, h.newest, h.checkpoints
FROM threadmark_head AS h
WHERE h.checkpoints <> 0 AND {clauses}
"""
HEADS_OF_ALL = "TRUE"
HEADS_OF_THREAD = "h.thread_id = ?"
HEADS_OF_NAMESPACE = "h.ns = ?"
COUNTED_HEADS = """
SELECT h.thread_id, c.ns, max(c.rank), count(*)
FROM threadmark_thread AS h
CROSS JOIN threadmark_checkpoint AS c ON c.thread = h.thread
WHERE h.live = 1 AND {clauses}
GROUP BY h.thread_id, c.ns
"""
COUNTED_OF_NAMESPACE = "c.ns = ?"

# Without it the thread would be in no listing.
ADD_ROOT_HEAD = """
INSERT OR IGNORE INTO threadmark_head (thread_id, ns, newest, checkpoints, updated_at)
VALUES (?, '', '', 0, ?)
"""

# The root head of a thread without checkpoints was updated when the thread was created: that does not count here.
ADD_TO_HEAD = """
INSERT INTO threadmark_head (thread_id, ns, newest, checkpoints, updated_at, newest_id)
VALUES (?, ?, ?, 1, ?, ?)
ON CONFLICT (thread_id, ns) DO UPDATE
SET newest = max(newest, excluded.newest),
    newest_id = CASE WHEN excluded.newest >= newest THEN excluded.newest_id ELSE newest_id END,
    checkpoints = checkpoints + 1,
    updated_at = CASE WHEN checkpoints > 0 THEN max(updated_at, excluded.updated_at) ELSE excluded.updated_at END
"""

# The same for a checkpoint that is newer than all others, where the thread is as it was found before and plain: the
# conditions are those of PLAIN_THREAD_WITHOUT. It changes no row where anything is otherwise, so that the thread need
# not be looked at by itself.
ADD_TO_HEAD_OF_SAME = """
UPDATE threadmark_head
SET newest = ?, checkpoints = checkpoints + 1, updated_at = ?, newest_id = ?
WHERE thread_id = ? AND ns = ? AND newest < ? AND checkpoints > 0 AND updated_at <= ?
    AND EXISTS (
        SELECT 1
        FROM threadmark_thread AS t
        WHERE t.thread = ? AND t.thread_id = threadmark_head.thread_id AND t.epoch = ? AND t.minute = ?
            AND t.live = 1 AND t.deleted_up_to IS NULL AND t.lease_ends IS NULL
            AND t.owner IS NULL AND t.expires_at IS NULL
            AND NOT EXISTS (
                SELECT 1
                FROM threadmark_checkpoint AS c
                WHERE c.thread = t.thread AND c.ns = threadmark_head.ns AND c.id = ?
            )
    )
"""

# One that was just added.
TAKE_BACK = """
DELETE FROM threadmark_checkpoint
WHERE thread = ? AND ns = ? AND rank = ?
"""

HEAD = """
SELECT newest
FROM threadmark_head
WHERE thread_id = ? AND ns = ?
"""

# Something else was stored in the thread that listings go by.
TOUCH = """
UPDATE threadmark_head
SET updated_at = max(updated_at, ?)
WHERE thread_id = ? AND ns = ''
"""

# Run where the root head's last update may have come to be in another minute.
FOLLOW_HEAD = f"""
UPDATE threadmark_thread
SET minute = {_MINUTE_OF_HEAD.format(thread_id="threadmark_thread.thread_id")}
WHERE thread = ?
"""

# How many rows this connection has changed so far: asked before and after a removal, to subtract what it removed from
# the count of the head. Rows that were lost before stay counted, and so are missed.
CHANGED_ROWS = "SELECT total_changes()"
COUNT_OFF = """
UPDATE threadmark_head
SET checkpoints = checkpoints - ?,
    newest_id = NULL,
    newest = coalesce((SELECT max(c.rank) FROM threadmark_checkpoint AS c WHERE c.thread = ? AND c.ns = ?), newest)
WHERE thread_id = ? AND ns = ?
"""
EMPTY_ROOT_HEAD = """
UPDATE threadmark_head
SET newest = ''
WHERE thread_id = ? AND ns = '' AND checkpoints = 0
"""
REMOVE_EMPTY_HEADS = """
DELETE FROM threadmark_head
WHERE thread_id = ? AND ns <> '' AND checkpoints = 0
"""
REMOVE_HEADS = """
DELETE FROM threadmark_head
WHERE thread_id = ?
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
# Threads that no listing finds, and those that one by the last update has in a wrong place.
UNLISTED = f"""
SELECT coalesce(sum(h.ns IS NULL), 0), coalesce(sum(h.ns IS NOT NULL AND t.minute IS NOT h.updated_at / {MINUTE}), 0)
FROM threadmark_thread AS t
LEFT JOIN threadmark_head AS h ON h.thread_id = t.thread_id AND h.ns = ''
WHERE t.live = 1
"""
CHECK_STRUCTURE = "PRAGMA integrity_check"

# In two parts, because SQLite would use neither index for an OR of lists.
ROWS = f"""
SELECT {_ROW}
{_OF_THREAD} AND c.ns = ? AND c.rank IN ({{placeholders}}) AND c.id IS NULL
UNION ALL
SELECT {_ROW}
{_OF_THREAD} AND c.ns = ? AND c.id IN ({{placeholders}})
"""

_CHAIN = f"""
WITH RECURSIVE chain (depth, number, thread, ns, parent) AS (
    SELECT *
    FROM (
        SELECT 0, c.number, c.thread, c.ns, c.parent
        {_OF_THREAD} AND c.ns = ? {{start}}
    )
    UNION ALL
    SELECT chain.depth + 1, c.number, c.thread, c.ns, c.parent
    FROM chain
    CROSS JOIN threadmark_checkpoint AS c
    WHERE c.thread = chain.thread AND c.ns = chain.ns
        AND ((c.rank = chain.parent AND c.id IS NULL) OR c.id = chain.parent)
    LIMIT ?
)
SELECT {_ROW}
FROM chain
CROSS JOIN threadmark_checkpoint AS c ON c.number = chain.number
ORDER BY chain.depth
"""

# A checkpoint and its ancestors, nearest first.
CHAIN = _CHAIN.format(start=f"AND {_WITH_ID}")
CHAIN_OF_NEWEST = _CHAIN.format(start="ORDER BY c.rank DESC LIMIT 1")

# A page of outlines: the clauses that a scope asks for are joined by AND.
PAGE = f"""
SELECT t.thread_id, {_OUTLINE}
FROM threadmark_thread AS t
CROSS JOIN threadmark_checkpoint AS c ON c.thread = t.thread
WHERE {{clauses}}
ORDER BY c.rank DESC, t.thread_id DESC, c.ns DESC
LIMIT ?
"""
PAGE_OF_ROWS = PAGE.replace(_OUTLINE, _ROW)
PAGE_ALL = "TRUE"
PAGE_OF_THREAD = "t.thread_id = ?"
PAGE_OF_OWNER = "t.owner = ?"
PAGE_OF_NAMESPACE = "c.ns = ?"
PAGE_WITH_ID = _WITH_ID
PAGE_BEFORE = "c.rank < ?"
PAGE_WITH_FRAGMENT = "instr(c.metadata, ?) > 0"
PAGE_AFTER = "(c.rank, t.thread_id, c.ns) < (?, ?, ?)"

REMOVE_CHECKPOINT = """
DELETE FROM threadmark_checkpoint
WHERE thread = ? AND ns = ? AND ((rank = ? AND id IS NULL) OR id = ?)
"""

HAS_CHECKPOINT = """
SELECT 1
FROM threadmark_checkpoint
WHERE thread = ? AND (rank = ? OR id = ?)
LIMIT 1
"""

STORED_CHECKPOINT = """
SELECT header
FROM threadmark_checkpoint
WHERE thread = ? AND ns = ? AND ((rank = ? AND id IS NULL) OR id = ?)
"""

REWRITE_CHECKPOINT = """
UPDATE threadmark_checkpoint
SET parent = ?, metadata = ?, header = ?, checksum = ?
WHERE thread = ? AND ns = ? AND rank = ?
"""

ADD_CHECKPOINT = """
INSERT INTO threadmark_checkpoint (thread, ns, rank, id, parent, created_at, metadata, header, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

# The same for one whose rank is its id. For None, sqlite3 looks for an adapter, which takes as long as five values.
ADD_UNDER_RANK = """
INSERT INTO threadmark_checkpoint (thread, ns, rank, parent, created_at, metadata, header, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""

_WRITE = f"w.ns, w.checkpoint_id, {_WRITES}"


WRITES_OF_CHECKPOINTS = _with_records(f"""
SELECT {_WRITE}
FROM threadmark_thread AS t
CROSS JOIN threadmark_write AS w ON w.thread = t.thread
WHERE t.thread_id = ? AND w.ns = ? AND w.checkpoint_id IN ({{placeholders}})
""")

WRITES_OF_THREAD = _with_records(f"""
SELECT {_WRITE}
FROM threadmark_thread AS t
CROSS JOIN threadmark_write AS w ON w.thread = t.thread
WHERE t.thread_id = ?
""")

_ADD_WRITES = """
INTO threadmark_write (thread, ns, checkpoint_id, task_id, task_path, idx, channel, value, checksum)
VALUES {rows}
"""
ADD_WRITES = f"INSERT OR IGNORE {_ADD_WRITES}"
ADD_RECORDS = _of_records(ADD_WRITES)
REPLACE_WRITES = f"INSERT OR REPLACE {_ADD_WRITES}"
ROW_OF_WRITE = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
ADDED_ROWS = "SELECT changes()"  # how many rows the statement before added

# A pack, only where the thread is as it was found before, and plain, without an expiry: then it need not be looked at
# by itself. No row is added where anything is otherwise, nor where the pack is there.
ADD_PACK_OF_SAME = """
INSERT OR IGNORE
INTO threadmark_write (thread, ns, checkpoint_id, task_id, task_path, idx, channel, value, checksum)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?
FROM threadmark_thread AS t
WHERE t.thread = ? AND t.thread_id = ? AND t.epoch = ?
    AND t.live = 1 AND t.deleted_up_to IS NULL AND t.lease_ends IS NULL AND t.expires_at IS NULL
"""

STORED_WRITE = """
SELECT value
FROM threadmark_write
WHERE thread = ? AND ns = ? AND checkpoint_id = ? AND task_id = ? AND idx = ?
"""

REMOVE_WRITES = """
DELETE FROM threadmark_write
WHERE thread = ? AND ns = ? AND checkpoint_id = ?
"""
REMOVE_RECORDS = _of_records(REMOVE_WRITES)

SEGMENTS = """
SELECT s.key, s.data
FROM threadmark_thread AS t
CROSS JOIN threadmark_segment AS s ON s.thread = t.thread
WHERE t.thread_id = ? AND s.key IN ({placeholders})
"""

SEGMENTS_OF_THREADS = """
WITH asked (thread_id, key) AS (VALUES {placeholders})
SELECT t.thread_id, s.key, s.data
FROM asked
CROSS JOIN threadmark_thread AS t ON t.thread_id = asked.thread_id
CROSS JOIN threadmark_segment AS s ON s.thread = t.thread AND s.key = asked.key
"""

SEGMENT_SIZES = """
SELECT s.key, length(s.data)
FROM threadmark_thread AS t
CROSS JOIN threadmark_segment AS s ON s.thread = t.thread
WHERE t.thread_id = ?
"""

ADD_SEGMENTS = """
INSERT OR IGNORE INTO threadmark_segment (thread, key, data)
VALUES {rows}
"""
ROW_OF_SEGMENT = "(?, ?, ?)"

COPY_SEGMENTS = """
INSERT OR IGNORE INTO threadmark_segment (thread, key, data)
SELECT target.thread, s.key, s.data
FROM threadmark_segment AS s, threadmark_thread AS source, threadmark_thread AS target
WHERE source.thread_id = ? AND target.thread_id = ? AND s.thread = source.thread
"""

REMOVE_SEGMENT = """
DELETE FROM threadmark_segment
WHERE thread = ? AND key = ?
"""

# Of checkpoints that a run may continue: the ids of messages are whatever their users choose.
GREATEST_ID = f"""
SELECT max(coalesce(id, rank))
FROM threadmark_checkpoint
WHERE thread = ? AND ns <> '{MESSAGES_NS}'
"""

WRITTEN_FOR = """
SELECT DISTINCT checkpoint_id
FROM threadmark_write
WHERE thread = ?
"""

EMPTY_THREAD = (
    "DELETE FROM threadmark_checkpoint WHERE thread = ?",
    "DELETE FROM threadmark_write WHERE thread = ?",
    "DELETE FROM threadmark_batch WHERE thread = ?",
    "DELETE FROM threadmark_segment WHERE thread = ?",
)
