"""Adding one checkpoint or one task's writes to a thread that has begun: what most changes are, in shorter statements.

They are those of `adding` for one change that continues a checkpoint: with no arrays but those of its rows, and with
nothing but conditions in place of the judgement. Where one of them is not met, or a removal holds the thread, no row
comes back and nothing was added: the statements of `adding` say why.
"""

from functools import cache

from threadmark.format.packs import PACK
from threadmark_postgres.sql.editing import replaced, without
from threadmark_postgres.sql.expressions import CHECKPOINT, CLOCK, IS_LET_IN, MINUTE, WRITE, listed
from threadmark_postgres.sql.judging import LEASE_REFUSAL

_RENEWAL = f"""
        CASE
            WHEN t.token = $3::bigint AND t.lease_ends IS NOT NULL
            THEN CASE WHEN t.lease_ends - {CLOCK} < t.lease_ttl / 2 THEN t.lease_ttl END
        END AS renewal"""
_LEASE_ACCEPTS = f"{LEASE_REFUSAL.format(given='$3::bigint', row='t')} IS NULL"
_ADD_ALONE = f"""
WITH held AS (
    SELECT epoch, owner, expires_at, {_RENEWAL.lstrip()}
    FROM tm.thread AS t
    WHERE thread_id = $1::text AND live
        AND epoch = {{epoch}}
        AND {_LEASE_ACCEPTS}
        AND ($4::text IS NULL OR owner = $4::text)
        AND (deleted_up_to IS NULL OR deleted_up_to < $5::text)
        AND {IS_LET_IN}
    FOR SHARE SKIP LOCKED
)"""
_SEGMENTS_ALONE = """, segments AS (
    INSERT INTO tm.segment (thread_id, key, data)
    SELECT $1::text, fresh.key, fresh.data
    FROM {source}
    CROSS JOIN unnest({keys}::bytea[], {data}::bytea[]) AS fresh (key, data)
    ORDER BY fresh.key
    ON CONFLICT DO NOTHING
)"""
_ACCEPTED = """
SELECT epoch, {exists}, renewal, expires_at
FROM held"""

# Where the rest of a statement reads something else that was there before the lock, the epoch must be the same with the
# lock as without it.
SEEN_EPOCH = "coalesce($2::bigint, (SELECT epoch FROM tm.thread WHERE thread_id = $1::text))"
ANY_EPOCH = "coalesce($2::bigint, epoch)"

# The parameters of a checkpoint follow the five of its change, then come the keys that it needs and its segments.
_UNDER_RANK = {column: kind for column, kind in CHECKPOINT.items() if column != "id"}
_GIVEN = {column: f"${number}::{kind}" for number, (column, kind) in enumerate(_UNDER_RANK.items(), 6)}
_NEEDS = 6 + len(_GIVEN)

_CHECKPOINT_COLUMNS = f"(thread_id, {listed(_GIVEN)})"
_CHECKPOINT_VALUES = f"$1::text, {listed(_GIVEN.values())}"
_HEAD_COLUMNS = "(thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)"
_HEAD_VALUES = f"""$1::text, {_GIVEN["ns"]}, {_GIVEN["rank"]}, ${_NEEDS}::bytea[], 1,
        {_GIVEN["created_at"]}, {MINUTE.format(_GIVEN["created_at"])},
        CASE WHEN {_GIVEN["ns"]} = '' THEN held.owner END"""
_HEAD_COUNTED = """checkpoints = h.checkpoints + 1,
        updated_at = greatest(CASE WHEN h.checkpoints > 0 THEN h.updated_at END, excluded.updated_at),
        minute = greatest(CASE WHEN h.checkpoints > 0 THEN h.minute END, excluded.minute)"""

# A checkpoint that is stored under another rank than its id has a greater one (`rank_after`). So none with this id is
# stored where its rank is greater than that of its head, and only such a one is added here; where a damaged head does
# not know that it is there, the statement fails (`driver.conversation`). The head comes first for that: two who put the
# same checkpoint, or the same segment, at once, one of them by a statement of `adding`, may meet in a circle, which the
# server ends. What was there before the lock is not read, so the epoch is not compared with that.
_SEGMENTS_OF_CHECKPOINT = _SEGMENTS_ALONE.format(source="headed", keys=f"${_NEEDS + 1}", data=f"${_NEEDS + 2}")
ADD_CHECKPOINT_ALONE = f"""
{_ADD_ALONE.format(epoch=ANY_EPOCH)}, headed AS (
    INSERT INTO tm.head AS h {_HEAD_COLUMNS}
    SELECT
        {_HEAD_VALUES}
    FROM held
    ON CONFLICT (thread_id, ns) DO UPDATE
    SET rank = excluded.rank,
        needs = excluded.needs,
        {_HEAD_COUNTED}
    WHERE h.rank < excluded.rank
    RETURNING rank
){_SEGMENTS_OF_CHECKPOINT}, added AS (
    INSERT INTO tm.checkpoint
        {_CHECKPOINT_COLUMNS}
    SELECT
        {_CHECKPOINT_VALUES}
    FROM headed
)
{_ACCEPTED.format(exists="false")}
CROSS JOIN headed
"""

# The same in the order of those of `adding`, for a change that is recorded: its position is taken between its
# checkpoint and its head.
_SEGMENTS_OF_CHECKPOINT_IN_ORDER = _SEGMENTS_ALONE.format(source="held", keys=f"${_NEEDS + 1}", data=f"${_NEEDS + 2}")
ADD_CHECKPOINT_IN_ORDER = f"""
{_ADD_ALONE.format(epoch=SEEN_EPOCH)}{_SEGMENTS_OF_CHECKPOINT_IN_ORDER}, added AS (
    INSERT INTO tm.checkpoint
        {_CHECKPOINT_COLUMNS}
    SELECT
        {_CHECKPOINT_VALUES}
    FROM held
    WHERE NOT EXISTS (
        SELECT
        FROM tm.checkpoint AS c
        WHERE c.thread_id = $1::text AND c.ns = {_GIVEN["ns"]} AND c.id = {_GIVEN["rank"]}
    )
    ON CONFLICT DO NOTHING
    RETURNING rank
), headed AS (
    INSERT INTO tm.head AS h {_HEAD_COLUMNS}
    SELECT
        {_HEAD_VALUES}
    FROM held
    CROSS JOIN added
    ON CONFLICT (thread_id, ns) DO UPDATE
    SET rank = greatest(h.rank, excluded.rank),
        needs = CASE WHEN excluded.rank > h.rank THEN excluded.needs ELSE h.needs END,
        {_HEAD_COUNTED}
)
{_ACCEPTED.format(exists="NOT EXISTS (SELECT FROM added)")}
"""

# A pack and the record of its batch.
_SEGMENTS_OF_WRITES = _SEGMENTS_ALONE.format(source="held", keys="$14", data="$15")
ADD_WRITES_ALONE = f"""
{_ADD_ALONE.format(epoch=ANY_EPOCH)}{_SEGMENTS_OF_WRITES}, added AS (
    INSERT INTO tm.write
        (thread_id, {listed(WRITE)})
    SELECT $1::text, $6::text, $5::text, $7::bytea, fresh.idx, fresh.task_path, '', fresh.value, fresh.checksum
    FROM held
    CROSS JOIN (
        VALUES
        ({PACK}, $8::text, $9::bytea, $10::bytea),
        ($11::bigint, '', $12::bytea, $13::bytea)
    ) AS fresh (idx, task_path, value, checksum)
    ON CONFLICT DO NOTHING
    RETURNING idx
)
{_ACCEPTED.format(exists=f"NOT EXISTS (SELECT FROM added WHERE idx = {PACK})")}
"""


@cache
def without_segments(statement: str) -> str:
    """Return a statement for one change as one for a change that brings none: it ends with two parameters less."""
    kinds = _SEGMENTS_OF_CHECKPOINT, _SEGMENTS_OF_CHECKPOINT_IN_ORDER, _SEGMENTS_OF_WRITES
    return without(statement, next((segments for segments in kinds if segments in statement), kinds[0]))


@cache
def without_token(statement: str) -> str:
    """Return a statement for one change as one that accepts only changes without a token. It has the same parameters.

    Each expression costs the server time in every statement, though most threads never have a lease.
    """
    unleased = f"$3::bigint IS NULL AND (t.lease_ends IS NULL OR t.lease_ends <= {CLOCK})"
    return replaced(statement, (_RENEWAL.lstrip(), "NULL::bigint AS renewal"), (_LEASE_ACCEPTS, unleased))
