"""Statements that add checkpoints and writes, and those that read the thread before."""

from threadmark_sqlite.sql.expressions import CHECKPOINT, CLOCK, MINUTE, RECORDS, WRITE, WRITES, listed, parameters

_MINUTE_OF_HEAD = (
    f"(SELECT h.updated_at / {MINUTE} FROM threadmark_head AS h WHERE h.thread_id = {{thread_id}} AND h.ns = '')"
)

# The state of a change's thread. The clock is only read if the thread has a lease that was not released.
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

# The state of a thread in the usual case: it exists, was never deleted, and has no lease. Each column less saves a
# twentieth of the statement's time. A checkpoint under its own rank is not looked up, because adding it again fails.
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

# A new thread, or one with only a lease or the memory of a deleted thread.
# The description of an earlier thread with this id is removed.
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

# Without it the thread would be in no listing.
ADD_ROOT_HEAD = """
INSERT OR IGNORE INTO threadmark_head (thread_id, ns, newest, checkpoints, updated_at)
VALUES (?, '', '', 0, ?)
"""

ADD_CHECKPOINT = f"""
INSERT INTO threadmark_checkpoint (thread, {listed(CHECKPOINT)})
VALUES (?, {parameters(len(CHECKPOINT))})
"""

# The same for a checkpoint whose rank is its id. For None, sqlite3 looks for an adapter, which costs five values.
ADD_UNDER_RANK = f"""
INSERT INTO threadmark_checkpoint (thread, {listed([column for column in CHECKPOINT if column != "id"])})
VALUES (?, {parameters(len(CHECKPOINT) - 1)})
"""

# The root head of a thread without checkpoints has the time of the thread's creation, which does not count here.
ADD_TO_HEAD = """
INSERT INTO threadmark_head (thread_id, ns, newest, checkpoints, updated_at, newest_id)
VALUES (?, ?, ?, 1, ?, ?)
ON CONFLICT (thread_id, ns) DO UPDATE
SET newest = max(newest, excluded.newest),
    newest_id = CASE WHEN excluded.newest >= newest THEN excluded.newest_id ELSE newest_id END,
    checkpoints = checkpoints + 1,
    updated_at = CASE WHEN checkpoints > 0 THEN max(updated_at, excluded.updated_at) ELSE excluded.updated_at END
"""

# The same for a checkpoint that is newer than all others, if the thread is plain and has not changed since it was
# found. The conditions are those of PLAIN_THREAD_WITHOUT. If one fails, no row changes, so that the thread need not be
# read first.
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

# A checkpoint that was just added.
TAKE_BACK = """
DELETE FROM threadmark_checkpoint
WHERE thread = ? AND ns = ? AND rank = ?
"""

HEAD = """
SELECT newest
FROM threadmark_head
WHERE thread_id = ? AND ns = ?
"""

# Something else was stored in the thread: this updates its root head, by which listings go.
TOUCH = """
UPDATE threadmark_head
SET updated_at = max(updated_at, ?)
WHERE thread_id = ? AND ns = ''
"""

# Run if the root head's last update may now be in another minute.
FOLLOW_HEAD = f"""
UPDATE threadmark_thread
SET minute = {_MINUTE_OF_HEAD.format(thread_id="threadmark_thread.thread_id")}
WHERE thread = ?
"""

_ROWS_OF_WRITES = f"""(thread, {listed(WRITE)})
VALUES {{rows}}
"""
ADD_WRITES = f"INSERT OR IGNORE INTO {WRITES} {_ROWS_OF_WRITES}"
ADD_RECORDS = f"INSERT OR IGNORE INTO {RECORDS} {_ROWS_OF_WRITES}"
REPLACE_WRITES = f"INSERT OR REPLACE INTO {WRITES} {_ROWS_OF_WRITES}"
ROW_OF_WRITE = f"(?, {parameters(len(WRITE))})"
ADDED_ROWS = "SELECT changes()"  # how many rows the statement before added

# A pack, if the thread is plain, has no expiry and has not changed since it was found, so that it need not be read
# first. No row is added if a condition fails or the pack exists.
ADD_PACK_OF_SAME = f"""
INSERT OR IGNORE INTO {WRITES} (thread, {listed(WRITE)})
SELECT ?, {parameters(len(WRITE))}
FROM threadmark_thread AS t
WHERE t.thread = ? AND t.thread_id = ? AND t.epoch = ?
    AND t.live = 1 AND t.deleted_up_to IS NULL AND t.lease_ends IS NULL AND t.expires_at IS NULL
"""

STORED_WRITE = """
SELECT value
FROM threadmark_write
WHERE thread = ? AND ns = ? AND checkpoint_id = ? AND task_id = ? AND idx = ?
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
