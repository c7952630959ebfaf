"""What each change to a thread meets: the lock of the thread's row, and the judgement whether it is accepted.

The statements of `adding` begin with the judgement. What makes a thread where there is none stands here, too, because
a statement is made shorter by leaving all of it out (`for_begun`).
"""

from functools import cache

from threadmark.store.contract import ANYONE
from threadmark_postgres.sql.editing import replaced, without
from threadmark_postgres.sql.expressions import CLOCK, GATE_SHARED, IS_LET_IN, MINUTE

# A live thread's epoch.
EPOCH = """
SELECT epoch
FROM tm.thread
WHERE thread_id = $1::text AND live
"""

LOCK = "SELECT epoch, live FROM tm.lock_1($1::text)"

_AWAIT = f"""
WITH gate AS MATERIALIZED (
    SELECT {GATE_SHARED}
    FROM tm.thread
    WHERE thread_id = $1::text
)
SELECT epoch, live
FROM tm.thread
WHERE thread_id = $1::text AND (SELECT count(*) FROM gate) > 0
FOR {{strength}}
"""
# Waits for a removal that holds the thread's row, and keeps the next one away. With FOR SHARE, two that have waited and
# then both revive the thread would wait for each other; to revive it is no change of its key.
AWAIT_REMOVAL = _AWAIT.format(strength="KEY SHARE")

# Then somebody may still be reviving the thread, which that lock does not wait for; this one does. It comes second,
# when the thread is live or about to be: of those that waited for a removal with it, each would be in the others' way.
AWAIT_REVIVAL = _AWAIT.format(strength="SHARE")

# Why the lease of a thread's row refuses a change with a token, NULL where it does not. The row is read as it was
# locked, the clock at the latest then: a lease that ends while the statement waits still counts as living.
LEASE_REFUSAL = f"""
    CASE
        WHEN {{given}} NOT IN ({{row}}.token, {ANYONE}) THEN 'lost'
        WHEN {{given}} IS NULL AND {{row}}.lease_ends IS NOT NULL
            THEN CASE WHEN {{row}}.lease_ends > {CLOCK} THEN 'busy' END
    END
"""

# Nothing is revived where somebody else did it, or took a lease, after the change was judged; then it is judged anew.
# Nothing that was set of an earlier thread with this id stays.
REVIVE_THREAD = f"""
WITH revived AS (
    UPDATE tm.thread AS t
    SET live = true,
        created_at = $3::bigint,
        owner = $4::text,
        title = NULL,
        folded_title = NULL,
        metadata = NULL,
        expires_at = $5::bigint,
        checksum = $6::bytea
    WHERE thread_id = $1::text AND NOT live AND {LEASE_REFUSAL.format(given="$2::bigint", row="t")} IS NULL
    RETURNING thread_id, created_at, owner
)
INSERT INTO tm.head (thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)
SELECT thread_id, '', '', '{{}}', 0, created_at, {MINUTE.format("created_at")}, owner
FROM revived
ON CONFLICT DO NOTHING
"""

# The thread of a change, or of several to one thread, and the threads of changes to several (`for_several`).
OF_ONE = "= ($1::text[])[1]"
_OF_SEVERAL = "= ANY (ARRAY(SELECT thread_id FROM change))"

_HELD_COLUMNS = "thread_id, epoch, deleted_up_to, owner, expires_at, token, lease_ends, lease_ttl"

# What only a statement has that may begin threads. Of several changes that begin one the first decides whose it is.
MAKE = f"""), made AS (
    INSERT INTO tm.thread (thread_id, epoch, live, created_at, token, owner, expires_at, checksum)
    SELECT DISTINCT ON (thread_id) thread_id, now, true, now, 0, owner, expires_at, checksum
    FROM change
    WHERE epoch IS NULL AND coalesce(token, 0) IN (0, {ANYONE}) AND thread_id NOT IN (SELECT thread_id FROM seen)
    ORDER BY thread_id, number
    ON CONFLICT DO NOTHING
    RETURNING {_HELD_COLUMNS}, created_at
"""
_MADE = f"""UNION ALL
    SELECT {_HELD_COLUMNS}, true
    FROM made
    """
MADE_HEADS = """UNION ALL
        SELECT NULL, thread_id, '', '', NULL, created_at, owner
        FROM made
    """
ADD_MADE_HEADS = f"""), headed AS (
    INSERT INTO tm.head (thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)
    SELECT thread_id, '', '', '{{}}', 0, created_at, {MINUTE.format("created_at")}, owner
    FROM made
    ORDER BY thread_id
    ON CONFLICT DO NOTHING
"""

# How adding begins, which is one statement, one transaction and one round trip. It adds the changes of several callers,
# to one thread or to several, or that of one; what belongs to a change says so by its number, and each is judged for
# itself. Adders of a thread share its row's lock. A row that a removal holds, or waits for, is passed over, so that
# nobody waits here on account of others' threads; its change gets no judgement. `seen` is what was there before any
# lock and `held` what is there with it: where the two differ the rest of the statement would still see the old state,
# so nothing is added. The lease, too, is read from the row as it was locked: whoever takes one changes that row, so no
# change is accepted with the token before once that is committed. Adders cannot wait for each other in a circle: all
# take rows in one order (see decision 6).
JUDGED = f"""
WITH change AS (
    SELECT *
    FROM unnest(
        (SELECT $1::text[]), $2::bigint[], $3::bigint[], $4::text[], $5::bigint[],
        $6::text[], $7::bigint[], $8::bytea[], $9::bigint[]
    )
        WITH ORDINALITY AS change (
            thread_id, epoch, now, continues, token, owner, expires_at, checksum, only_owner, number
        )
), seen AS (
    SELECT {_HELD_COLUMNS}, live
    FROM tm.thread
    WHERE thread_id {OF_ONE}
), locked AS (
    SELECT {_HELD_COLUMNS}
    FROM tm.thread
    WHERE thread_id {OF_ONE} AND live AND {IS_LET_IN}
    FOR SHARE SKIP LOCKED
{MAKE}), held AS (
    SELECT {_HELD_COLUMNS}, true AS live
    FROM locked
    {_MADE}UNION ALL
    SELECT {_HELD_COLUMNS}, false
    FROM seen
    WHERE NOT live
), judged AS (
    SELECT
        change.number,
        held.thread_id,
        held.epoch,
        held.epoch = coalesce(change.epoch, held.epoch) AS expected,
        held.live,
        change.now,
        CASE
            WHEN change.only_owner = 1 AND held.live AND held.owner IS DISTINCT FROM change.owner THEN 'owner'
            ELSE {LEASE_REFUSAL.format(given="change.token", row="held").strip()}
        END AS refused,
        CASE
            WHEN change.token = held.token AND held.lease_ends IS NOT NULL
            THEN CASE WHEN held.lease_ends - {CLOCK} < held.lease_ttl / 2 THEN held.lease_ttl END
        END AS renewal,
        held.owner,
        held.expires_at,
        NOT EXISTS (SELECT FROM seen WHERE seen.thread_id = held.thread_id AND seen.epoch <> held.epoch) AS steady,
        coalesce(change.continues <> '' AND change.continues <= held.deleted_up_to, false) AND NOT EXISTS (
            SELECT
            FROM tm.checkpoint AS c
            WHERE c.thread_id = held.thread_id AND c.thread_id {OF_ONE}
                AND (c.rank = change.continues OR c.id = change.continues)
        ) AS too_late
    FROM change
    JOIN held ON held.thread_id = change.thread_id
)
"""


def for_several(statement: str) -> str:
    """Return an adding statement as one for changes to several threads."""
    return replaced(statement, (OF_ONE, _OF_SEVERAL))


@cache
def for_begun(statement: str) -> str:
    """Return an adding statement as one that begins no thread: what every put after the first needs costs less."""
    return without(statement, MAKE, _MADE, MADE_HEADS if MADE_HEADS in statement else ADD_MADE_HEADS)


# The judgement alone, the greatest rank that is recorded for a namespace, and whether it has one of some checkpoints.
# The thread is locked by then. OFFSET 0 makes it one look-up in the index for each, as in `listing.ROWS`.
JUDGE = without(
    f"""
{JUDGED}
SELECT
    epoch, refused, too_late,
    coalesce((SELECT h.rank FROM tm.head AS h WHERE h.thread_id {OF_ONE} AND h.ns = $10::text), ''),
    EXISTS (
        SELECT
        FROM unnest($11::text[]) AS asked (id)
        CROSS JOIN LATERAL (
            SELECT
            FROM tm.checkpoint AS c
            WHERE c.thread_id {OF_ONE} AND c.ns = $10::text AND c.rank = asked.id AND c.id IS NULL
            UNION ALL
            SELECT
            FROM tm.checkpoint AS c
            WHERE c.thread_id {OF_ONE} AND c.ns = $10::text AND c.id = asked.id
            OFFSET 0
        ) AS c
    )
FROM judged
""",
    MAKE,
    _MADE,
)
