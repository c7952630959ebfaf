"""The statements on threads themselves: their rows, their listing and their leases."""

from threadmark.backends import SPECIAL_WRITES, UNFINISHED
from threadmark_postgres.sql.expressions import CLOCK, MINUTE

_THREAD = "t.thread_id, t.created_at, t.owner, t.title, t.metadata, t.expires_at, t.checksum"

# A row is found even if its head is lost, which then shows when the thread is read.
THREAD = f"""
SELECT {_THREAD}, coalesce(h.updated_at, t.created_at)
FROM tm.thread AS t
LEFT JOIN tm.head AS h ON h.thread_id = t.thread_id AND h.thread_id = $1::text AND h.ns = ''
WHERE t.thread_id = $1::text AND t.live
"""
THREADS_OF_IDS = """
SELECT t.*
FROM unnest($1::text[]) AS asked (thread_id)
CROSS JOIN LATERAL tm.thread_1(asked.thread_id) AS t
"""

SET_THREAD = """
WITH head AS (
    UPDATE tm.head
    SET owner = $2::text
    WHERE thread_id = $1::text AND ns = '' AND owner IS DISTINCT FROM $2::text
)
UPDATE tm.thread
SET owner = $2::text,
    title = $3::text,
    folded_title = $4::text,
    metadata = $5::text,
    expires_at = $6::bigint,
    checksum = $7::bytea
WHERE thread_id = $1::text
"""

# A page of threads, or their number: the clauses of the scope are joined by AND. Each sort has an index, on heads for
# "updated" and on threads for the others; both tables also have one by owner.
_LISTED = """
FROM tm.thread AS t
JOIN tm.head AS h ON h.thread_id = t.thread_id AND h.ns = ''
WHERE t.live AND {clauses}
"""
THREAD_PAGE = f"""
SELECT {_THREAD}, h.updated_at
{_LISTED.strip()}
ORDER BY {{order}}
LIMIT $1::bigint OFFSET $2::bigint
"""
COUNT_THREADS = f"""
SELECT count(*)
{_LISTED.strip()}
"""
ORDERS = {
    "updated": "h.minute {direction}, h.updated_at {direction}, h.thread_id {direction}",
    "created": "t.created_at {direction}, t.thread_id {direction}",
    "id": "t.thread_id {direction}",
}

# The index has the minute, the rest is sorted within each.
_MINUTE = MINUTE.format("${0}::bigint")
THREADS_BEHIND = {
    "updated": f"(h.updated_at, h.thread_id) {{sign}} (${{0}}::bigint, ${{1}}::text) AND h.minute {{sign}}= {_MINUTE}",
    "created": "(t.created_at, t.thread_id) {sign} (${}::bigint, ${}::text)",
}
# So both tables are read in this order, and neither from its beginning.
THREADS_BEHIND_ID = "t.thread_id {sign} ${0}::text AND h.thread_id {sign} ${0}::text"

ALL_THREADS = "true"
THREADS_OF_OWNER = {"updated": "h.owner = ${}::text", "created": "t.owner = ${}::text", "id": "t.owner = ${}::text"}
THREADS_SINCE = f"h.updated_at >= ${{0}}::bigint AND h.minute >= {_MINUTE}"
THREADS_UNTIL = f"h.updated_at < ${{0}}::bigint AND h.minute <= {_MINUTE}"
THREADS_EXPIRED = "t.expires_at <= ${}::bigint"
# The planner estimates how many rows LIKE matches: if they are few, it does not walk the index of the sort order.
THREADS_WITH_FRAGMENT = "t.metadata LIKE ${}::text"
THREADS_WITH_TEXT = "(t.folded_title LIKE ${}::text OR t.thread_id LIKE ${}::text)"

# The clock is read once for the whole statement, so that an index is used; few threads have ever had a lease.
_LEASED = f"t.lease_ends IS NOT NULL AND t.lease_ends > (SELECT {CLOCK})"
_NOT_LEASED = f"NOT ({_LEASED})"

# The newest checkpoint of the namespace "", and whether one of its tasks wrote to a special channel.
_NEWEST_ID = """
    SELECT coalesce(c.id, c.rank)
    FROM tm.checkpoint AS c
    WHERE c.thread_id = t.thread_id AND c.ns = ''
    ORDER BY c.rank DESC
    LIMIT 1
"""
_WROTE = f"""EXISTS (
    SELECT
    FROM tm.write AS w
    WHERE w.thread_id = t.thread_id AND w.ns = '' AND w.checkpoint_id = ({_NEWEST_ID}) AND w.idx = {{idx}}
)"""
_ERROR, _INTERRUPT = SPECIAL_WRITES["__error__"], SPECIAL_WRITES["__interrupt__"]
_FAILED = _WROTE.format(idx=_ERROR)
_INTERRUPTED = _WROTE.format(idx=_INTERRUPT)

# Whether nodes are still to run after it, by its stored header: `is_unfinished` of threadmark.backends.
# Literals have no backslash, which means something else under standard_conforming_strings = off.
_SEALED, _LITERAL, _END, _ZERO = (f"decode('{mark.hex()}', 'hex')" for mark in (*UNFINISHED, b"\x00"))
_IS_UNFINISHED = f"""
        CASE
            WHEN c.checksum = '' THEN substring(c.header FROM 1 FOR {len(UNFINISHED.sealed)}) = {_SEALED}
            WHEN substring(c.header FROM 1 FOR 1) = {_ZERO} THEN
                substring(c.header FROM 1 FOR {len(UNFINISHED.literal)}) = {_LITERAL}
            ELSE substring(c.header FROM octet_length(c.header) - {len(UNFINISHED.end) - 1}) = {_END}
        END
"""
_UNFINISHED = f"""coalesce((
    SELECT {_IS_UNFINISHED.strip()}
    FROM tm.checkpoint AS c
    WHERE c.thread_id = t.thread_id AND c.ns = ''
    ORDER BY c.rank DESC
    LIMIT 1
), false)"""

# An index has the few threads that this holds for, at whichever checkpoint.
_HAS_SPECIAL = f"""t.thread_id IN (
    SELECT w.thread_id
    FROM tm.write AS w
    WHERE w.ns = '' AND w.idx IN ({_ERROR}, {_INTERRUPT})
)"""

THREADS_WITH_STATUS = {
    "busy": _LEASED,
    "error": f"{_NOT_LEASED} AND {_HAS_SPECIAL} AND {_FAILED}",
    "interrupted": f"{_NOT_LEASED} AND {_HAS_SPECIAL} AND NOT {_FAILED} AND {_INTERRUPTED}",
    "unfinished": f"{_NOT_LEASED} AND {_UNFINISHED} AND NOT {_FAILED} AND NOT {_INTERRUPTED}",
    "idle": f"{_NOT_LEASED} AND NOT {_UNFINISHED} AND NOT {_FAILED} AND NOT {_INTERRUPTED}",
}

# Lengths are read from the rows, without the long values.
THREAD_COUNTS = f"""
SELECT
    t.thread_id,
    held.checkpoints,
    held.namespaces,
    held.bytes
        + (SELECT coalesce(sum(octet_length(s.data)), 0) FROM tm.segment AS s WHERE s.thread_id = t.thread_id)
        + (SELECT coalesce(sum(octet_length(w.value)), 0) FROM tm.write AS w WHERE w.thread_id = t.thread_id),
    ({_NEWEST_ID}),
    {_LEASED},
    {_FAILED},
    {_INTERRUPTED},
    {_UNFINISHED}
FROM tm.thread AS t
CROSS JOIN LATERAL (
    SELECT
        count(*) AS checkpoints,
        count(DISTINCT c.ns) AS namespaces,
        coalesce(sum(octet_length(c.header) + octet_length(c.metadata)), 0) AS bytes
    FROM tm.checkpoint AS c
    WHERE c.thread_id = t.thread_id
) AS held
WHERE t.thread_id = ANY ($1::text[]) AND t.live
"""

# A live thread's epoch.
EPOCH = """
SELECT epoch
FROM tm.thread
WHERE thread_id = $1::text AND live
"""
LOCK = "SELECT epoch, live FROM tm.lock_1($1::text)"

LEASE = f"""
SELECT token, greatest(lease_ends - {CLOCK}, 0), coalesce(holder, ''), began
FROM tm.thread
WHERE thread_id = $1::text
"""

LOCK_LEASE = "SELECT token, lease_left, holder, began FROM tm.lock_lease_1($1::text)"
SET_LEASE = """
SELECT token, lease_left, holder, began
FROM tm.set_lease_1($1::text, $2::bigint, $3::text, $4::text)
"""
RENEW_LEASE = "SELECT tm.renew_lease_1($1::text, $2::bigint, $3::bigint)"
