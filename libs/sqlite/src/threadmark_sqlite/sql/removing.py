"""Removing and rewriting: checkpoints that are pruned or replaced, threads, and the memory of deleted ones."""

from threadmark.backends import MESSAGES_NS
from threadmark_sqlite.sql.expressions import CHECKPOINT, CLOCK, RECORDS, WRITES

REMOVE_CHECKPOINT = """
DELETE FROM threadmark_checkpoint
WHERE thread = ? AND ns = ? AND ((rank = ? AND id IS NULL) OR id = ?)
"""

# Its key stays.
REWRITTEN = tuple(column for column in CHECKPOINT if column not in ("ns", "rank", "id"))
REWRITE_CHECKPOINT = f"""
UPDATE threadmark_checkpoint
SET {", ".join(f"{column} = ?" for column in REWRITTEN)}
WHERE thread = ? AND ns = ? AND rank = ?
"""

NEXT_EPOCH = """
UPDATE threadmark_thread
SET epoch = epoch + 1, removed_up_to = nullif(max(coalesce(removed_up_to, ''), ?), '')
WHERE thread = ?
"""

# The number of rows that this connection has changed so far, read before and after a removal, to subtract the removed
# rows from the count of the head. Rows that were lost before stay counted, so that they are detected as missing.
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

_OF_CHECKPOINT = """
WHERE thread = ? AND ns = ? AND checkpoint_id = ?
"""
REMOVE_WRITES = f"DELETE FROM {WRITES}{_OF_CHECKPOINT}"
REMOVE_RECORDS = f"DELETE FROM {RECORDS}{_OF_CHECKPOINT}"

REMOVE_SEGMENT = """
DELETE FROM threadmark_segment
WHERE thread = ? AND key = ?
"""

# Only of checkpoints that a run may continue, because users choose the ids of messages freely.
GREATEST_IDS = f"""
SELECT max(coalesce(id, rank)) FROM threadmark_checkpoint WHERE thread = ? AND ns <> '{MESSAGES_NS}'
UNION ALL
SELECT removed_up_to FROM threadmark_thread WHERE thread = ?
"""

WRITTEN_FOR = """
SELECT DISTINCT checkpoint_id
FROM threadmark_write
WHERE thread = ?
"""

BURY_THREAD = f"""
UPDATE threadmark_thread
SET live = 0,
    deleted_up_to = ?,
    removed_up_to = NULL,
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

EMPTY_THREAD = (
    "DELETE FROM threadmark_checkpoint WHERE thread = ?",
    "DELETE FROM threadmark_write WHERE thread = ?",
    "DELETE FROM threadmark_batch WHERE thread = ?",
    "DELETE FROM threadmark_segment WHERE thread = ?",
)

FORGET_BURIED = f"""
DELETE FROM threadmark_thread
WHERE live = 0 AND epoch < ? AND (lease_ends IS NULL OR lease_ends <= {CLOCK})
    AND NOT EXISTS (SELECT 1 FROM threadmark_outbox AS o WHERE o.thread_id = threadmark_thread.thread_id)
"""
