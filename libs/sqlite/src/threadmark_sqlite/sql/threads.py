"""The statements on threads themselves: their rows, their listing and their leases.

A listing walks along one index, which each statement names: without statistics, or with old ones, SQLite might sort all
threads.
"""

from threadmark.backends import SPECIAL_WRITES, UNFINISHED
from threadmark_sqlite.sql.expressions import CLOCK, MINUTE

# A damaged time that is not a number would hide other threads from a listing; the thread's minute is close.
_UPDATED = f"CASE typeof(h.updated_at) WHEN 'integer' THEN h.updated_at ELSE coalesce(t.minute * {MINUTE}, 0) END"

_ROW = "t.thread_id, t.created_at, t.owner, t.title, t.metadata, t.expires_at, t.checksum"

_THREADS_THERE = f"""
SELECT {_ROW}, CASE WHEN h.thread_id IS NULL THEN t.created_at ELSE {_UPDATED} END
FROM threadmark_thread AS t
LEFT JOIN threadmark_head AS h ON h.thread_id = t.thread_id AND h.ns = ''
WHERE t.live = 1
"""
THREAD = f"{_THREADS_THERE} AND t.thread_id = ?"
THREADS_OF_IDS = f"{_THREADS_THERE} AND t.thread_id IN ({{placeholders}})"

SET_THREAD = """
UPDATE threadmark_thread
SET owner = ?, title = ?, folded_title = ?, metadata = ?, expires_at = ?, checksum = ?
WHERE thread_id = ?
"""

# The start of a walk. Each needs the clause of its index among those of the page.
_THREADS = "threadmark_thread AS t INDEXED BY threadmark_thread"
BY_UPDATE = f"{_THREADS}_minute"
BY_OWNER_AND_UPDATE = f"{_THREADS}_owner_minute"
BY_CREATION = f"{_THREADS}_created"
BY_OWNER = f"{_THREADS}_owner"
BY_OWNER_AND_CREATION = f"{_THREADS}_owner_created"
BY_EXPIRY = f"{_THREADS}_expires"
BY_LEASE = f"{_THREADS}_lease"
BY_ID = "threadmark_thread AS t INDEXED BY sqlite_autoindex_threadmark_thread_1"
THREADS_BY = {
    ("updated", False): BY_UPDATE,
    ("updated", True): BY_OWNER_AND_UPDATE,
    ("created", False): BY_CREATION,
    ("created", True): BY_OWNER_AND_CREATION,
    ("id", False): BY_ID,
    ("id", True): BY_OWNER,
}
"""The indexes by sort key, and by whether one owner's threads are listed."""
BY_MINUTE = (BY_UPDATE, BY_OWNER_AND_UPDATE)
"""The indexes in which threads of one minute have any order, so that they are sorted."""
MINUTE_OF_THREAD = "t.minute"

BY_NUMBER = "threadmark_thread AS t"

HEAD_OF_THREAD = "CROSS JOIN threadmark_head AS h ON h.thread_id = t.thread_id"

PAGE = f"""
SELECT {_ROW}, {_UPDATED}
FROM {{tables}}
WHERE {{clauses}}
ORDER BY {{order}}
LIMIT ? OFFSET ?
"""

# The threads that a search finds, in any order: reading all rows once takes a tenth of a walk that looks up each.
FOUND = """
SELECT t.thread
FROM threadmark_thread AS t NOT INDEXED
WHERE {clauses}
LIMIT ?
"""
WITH_NUMBER = "t.thread IN (SELECT value FROM json_each(?))"

COUNT = """
SELECT count(*)
FROM {tables}
WHERE {clauses}
"""

SORT_COLUMNS = {
    "updated": (_UPDATED, "t.thread_id"),
    "created": ("t.created_at", "t.thread_id"),
    "id": ("t.thread_id",),
}
"""The sort keys of a listing, as in its index except for those of `BY_MINUTE`."""

AFTER = "({columns}) {sign} ({placeholders})"
# SQLite sorts values that are not numbers after all numbers.
AFTER_NO_NUMBER = "typeof(t.created_at) <> 'integer' AND t.thread_id > ?"

LIVE = "t.live = 1"
ROOT_HEAD = "h.ns IS ''"
OF_OWNER = "t.owner = ?"
SINCE = f"{_UPDATED} >= ?"
UNTIL = f"{_UPDATED} < ?"
FROM_MINUTE = f"{MINUTE_OF_THREAD} >= ? / {MINUTE}"
TO_MINUTE = f"{MINUTE_OF_THREAD} <= ? / {MINUTE}"
EXPIRED = "t.expires_at <= ?"
WITH_FRAGMENT = "instr(t.metadata, ?) > 0"
WITH_TEXT = "(instr(t.folded_title, ?) > 0 OR instr(t.thread_id, ?) > 0)"

_NEWEST = """(
    SELECT coalesce(c.id, c.rank)
    FROM threadmark_checkpoint AS c
    WHERE c.thread = t.thread AND c.ns = ''
    ORDER BY c.rank DESC
    LIMIT 1
)"""

# A UUID is stored as 16 bytes.
_STEPS_OF_UUID = " || '-' || ".join(
    f"substr(lower(hex(w.checkpoint_id)), {start}, {length})"
    for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
)
_STEP = f"CASE typeof(w.checkpoint_id) WHEN 'blob' THEN {_STEPS_OF_UUID} ELSE w.checkpoint_id END"


def _special(idx: int) -> str:
    """Return the condition that a task of the newest checkpoint has written to a special channel."""
    return f"""EXISTS (
    SELECT 1
    FROM threadmark_write AS w INDEXED BY threadmark_write_status
    WHERE w.thread = t.thread AND w.ns = '' AND w.idx IN (-1, -3) AND w.idx = {idx} AND {_STEP} = {_NEWEST}
)"""


def _written(idx: int) -> str:
    return f"""
SELECT DISTINCT w.thread
FROM threadmark_write AS w INDEXED BY threadmark_write_status
WHERE w.ns = '' AND w.idx IN (-1, -3) AND w.idx = {idx}
LIMIT ?
"""


WRITTEN = {
    "error": _written(SPECIAL_WRITES["__error__"]),
    "interrupted": _written(SPECIAL_WRITES["__interrupt__"]),
}
"""The threads that may have a status, including all that ever had it."""

# Whether nodes are still to run after a checkpoint, by its stored header: `is_unfinished` of threadmark.backends.
_IS_UNFINISHED = f"""
    CASE
        WHEN length(c.checksum) = 0 THEN substr(c.header, 1, {len(UNFINISHED.sealed)}) = x'{UNFINISHED.sealed.hex()}'
        WHEN substr(c.header, 1, 1) = x'00' THEN
            substr(c.header, 1, {len(UNFINISHED.literal)}) = x'{UNFINISHED.literal.hex()}'
        ELSE substr(c.header, -{len(UNFINISHED.end)}) = x'{UNFINISHED.end.hex()}'
    END
"""
_UNFINISHED = f"""coalesce((
    SELECT {_IS_UNFINISHED.strip()}
    FROM threadmark_checkpoint AS c
    WHERE c.thread = t.thread AND c.ns = ''
    ORDER BY c.rank DESC
    LIMIT 1
), 0)"""

_LEASED = f"t.lease_ends > {CLOCK}"
_NOT_LEASED = f"(t.lease_ends IS NULL OR t.lease_ends <= {CLOCK})"
_FAILED = _special(SPECIAL_WRITES["__error__"])
_INTERRUPTED = _special(SPECIAL_WRITES["__interrupt__"])

WITH_STATUS = {
    "busy": _LEASED,
    "error": f"{_NOT_LEASED} AND {_FAILED}",
    "interrupted": f"{_NOT_LEASED} AND NOT {_FAILED} AND {_INTERRUPTED}",
    "unfinished": f"{_NOT_LEASED} AND {_UNFINISHED} AND NOT {_FAILED} AND NOT {_INTERRUPTED}",
    "idle": f"{_NOT_LEASED} AND NOT {_UNFINISHED} AND NOT {_FAILED} AND NOT {_INTERRUPTED}",
}


def _sum(what: str, table: str) -> str:
    return f"(SELECT coalesce(sum({what}), 0) FROM threadmark_{table} AS x WHERE x.thread = t.thread)"


COUNTS = f"""
SELECT
    t.thread_id,
    (SELECT count(*) FROM threadmark_checkpoint AS c WHERE c.thread = t.thread),
    (SELECT count(DISTINCT c.ns) FROM threadmark_checkpoint AS c WHERE c.thread = t.thread),
    {_sum("length(x.data)", "segment")}
        + {_sum("length(x.header) + length(CAST(x.metadata AS BLOB))", "checkpoint")}
        + {_sum("length(x.value)", "write")}
        + {_sum("length(x.value)", "batch")},
    {_NEWEST},
    coalesce({_LEASED}, 0),
    {_FAILED},
    {_INTERRUPTED},
    {_UNFINISHED}
FROM threadmark_thread AS t
WHERE t.live = 1 AND t.thread_id IN ({{placeholders}})
"""

ADD_LEASED = """
INSERT OR IGNORE INTO threadmark_thread (thread_id, epoch, live, created_at)
VALUES (?, ?, 0, ?)
"""

# The clock is that of the process. A lease from another machine's clock, or from this one's before it was set back, may
# seem to have more time left than it ever had. A second more is not worth a check.
_LONGEST = f"{CLOCK} + lease_ttl"
_OUTLASTS = f"lease_ends > {_LONGEST} + 1000000"

LEASE = f"""
SELECT
    token,
    CASE WHEN lease_ends IS NOT NULL THEN max(min(lease_ends - {CLOCK}, lease_ttl), 0) ELSE 0 END,
    holder,
    began,
    coalesce({_OUTLASTS}, 0)
FROM threadmark_thread
WHERE thread_id = ?
"""

SET_LEASE = f"""
UPDATE threadmark_thread
SET token = max(token + 1, {CLOCK}), lease_ends = {CLOCK} + ?, lease_ttl = ?, holder = ?, began = ?
WHERE thread_id = ?
"""

BOUND_LEASE = f"""
UPDATE threadmark_thread
SET lease_ends = {_LONGEST}
WHERE thread_id = ? AND {_OUTLASTS}
"""

RENEW_LEASE = f"""
UPDATE threadmark_thread
SET lease_ends = {CLOCK} + ?, lease_ttl = ?
WHERE thread_id = ?
"""
