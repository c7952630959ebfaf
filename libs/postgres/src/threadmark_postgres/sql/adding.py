"""Adding checkpoints and writes: the statements for any change, and for the changes of several callers at once."""

from threadmark.format.packs import PACK
from threadmark_postgres.sql.editing import without
from threadmark_postgres.sql.expressions import CHECKPOINT, MINUTE, WRITE, arrays, listed
from threadmark_postgres.sql.judging import ADD_MADE_HEADS, JUDGED, MADE_HEADS, OF_ONE

# What only a statement has whose checkpoints touch their thread.
_TOUCHED = """UNION ALL
        SELECT NULL, thread_id, '', '', NULL, now, owner
        FROM proven
        """

_ADD = f"""
{JUDGED}, proven AS (
    SELECT number, thread_id, now, owner
    FROM judged
    WHERE live AND steady AND expected AND refused IS NULL AND NOT too_late
), segments AS (
    INSERT INTO tm.segment (thread_id, key, data)
    SELECT proven.thread_id, fresh.key, fresh.data
    FROM unnest((SELECT $10::bigint[]), $11::bytea[], $12::bytea[]) AS fresh (number, key, data)
    JOIN proven ON proven.number = fresh.number
    ORDER BY proven.thread_id, fresh.key
    ON CONFLICT DO NOTHING
)
"""
_JUDGEMENT = """
SELECT number, epoch, live, steady, refused, too_late, renewal, expires_at, {outcome}
FROM judged
"""

# A checkpoint that is there already, perhaps under another rank, is not touched here: it may have another header, which
# others count on, so whoever replaces it takes the thread for itself (`PostgresStore.replace`). OFFSET 0 makes it one
# look-up in the index for each, as in `listing.ROWS`: a plan that was made when the tables were small, and is kept,
# would else go through the whole thread. Conditions that say again what a join says are there for the same reason.
_WITH_NEEDS = {**CHECKPOINT, "needs": "text"}
_LATEST = "coalesce(max(created_at) FILTER (WHERE number IS NOT NULL), max(created_at))"
_ADD_CHECKPOINTS = f"""
{_ADD}, given AS (
    SELECT proven.thread_id, proven.owner, fresh.*
    FROM unnest((SELECT $13::bigint[]), {arrays(_WITH_NEEDS, 14)}) AS fresh (number, {listed(_WITH_NEEDS)})
    JOIN proven ON proven.number = fresh.number
), ranked_otherwise AS (
    SELECT given.number
    FROM given
    CROSS JOIN LATERAL (
        SELECT
        FROM tm.checkpoint AS c
        WHERE c.thread_id = given.thread_id AND c.thread_id {OF_ONE}
            AND c.ns = given.ns AND c.rank = given.id AND c.id IS NULL
        UNION ALL
        SELECT
        FROM tm.checkpoint AS c
        WHERE c.thread_id = given.thread_id AND c.thread_id {OF_ONE}
            AND c.ns = given.ns AND c.id = coalesce(given.id, given.rank) AND c.rank <> given.rank
        OFFSET 0
    ) AS c
), fresh AS (
    SELECT DISTINCT ON (thread_id, ns, rank) *
    FROM given
    WHERE number NOT IN (SELECT number FROM ranked_otherwise)
    ORDER BY thread_id, ns, rank, number
), added AS (
    INSERT INTO tm.checkpoint (thread_id, {listed(CHECKPOINT)})
    SELECT thread_id, {listed(CHECKPOINT)}
    FROM fresh
    ORDER BY thread_id, ns, rank
    ON CONFLICT DO NOTHING
    RETURNING thread_id, ns, rank
), counted AS (
    SELECT number, thread_id, ns, rank, needs, created_at, owner
    FROM added
    JOIN fresh USING (thread_id, ns, rank)
), headed AS (
    INSERT INTO tm.head AS h (thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)
    SELECT
        thread_id,
        ns,
        max(rank),
        coalesce((array_agg(needs ORDER BY rank DESC))[1]::bytea[], '{{}}'),
        count(number),
        {_LATEST},
        {MINUTE.format(_LATEST)},
        CASE WHEN ns = '' THEN max(owner) END
    FROM (
        SELECT number, thread_id, ns, rank, needs, created_at, owner
        FROM counted
        {_TOUCHED}{MADE_HEADS}) AS headed
    GROUP BY thread_id, ns
    ORDER BY thread_id, ns
    ON CONFLICT (thread_id, ns) DO UPDATE
    SET rank = greatest(h.rank, excluded.rank),
        needs = CASE WHEN excluded.rank > h.rank OR excluded.needs <> '{{}}' THEN excluded.needs ELSE h.needs END,
        checkpoints = h.checkpoints + excluded.checkpoints,
        updated_at = greatest(
            CASE WHEN h.checkpoints > 0 OR excluded.checkpoints = 0 THEN h.updated_at END,
            excluded.updated_at
        ),
        minute = greatest(
            CASE WHEN h.checkpoints > 0 OR excluded.checkpoints = 0 THEN h.minute END,
            excluded.minute
        )
)
{
    _JUDGEMENT.format(
        outcome="(SELECT count(*) FROM given WHERE given.number = judged.number)"
        " <> (SELECT count(*) FROM counted WHERE counted.number = judged.number)"
    )
}
"""
ADD_CHECKPOINTS = without(_ADD_CHECKPOINTS, _TOUCHED)
ADD_TOUCHING_CHECKPOINTS = _ADD_CHECKPOINTS

_GIVEN_WRITES = f"""
{_ADD}, given AS (
    SELECT proven.thread_id, fresh.*
    FROM unnest((SELECT $13::bigint[]), {arrays(WRITE, 14)}) AS fresh (number, {listed(WRITE)})
    JOIN proven ON proven.number = fresh.number
)
"""
# Whether a change's packs (`store.PACK`) were left out. Of two that one statement adds for one task the first stays,
# and the checks tell whose that is.
_PACK_LEFT_OUT = f"""EXISTS (
        SELECT
        FROM given
        WHERE given.number = judged.number AND given.idx = {PACK}
            AND (given.ns, given.checkpoint_id, given.task_id, given.checksum) NOT IN (
                SELECT ns, checkpoint_id, task_id, checksum
                FROM added
                WHERE thread_id = given.thread_id AND idx = {PACK}
            )
    )"""
_ADDED_WRITES = "RETURNING w.thread_id, w.ns, w.checkpoint_id, w.task_id, w.idx, w.checksum"
_INSERT_WRITES = f"""
    INSERT INTO tm.write AS w (thread_id, {listed(WRITE)})
    SELECT thread_id, {listed(WRITE)}
    FROM given
    ORDER BY thread_id, ns, checkpoint_id, task_id, idx
    ON CONFLICT (thread_id, ns, checkpoint_id, task_id, idx)
"""
ADD_WRITES = f"""
{_GIVEN_WRITES}, added AS (
    {_INSERT_WRITES}
    DO NOTHING
    {_ADDED_WRITES}
{ADD_MADE_HEADS})
{_JUDGEMENT.format(outcome=f"{_PACK_LEFT_OUT}, NULL, NULL")}
"""

# A write of a special channel (its idx is negative) replaces the one that is there, another one leaves it. What was
# there is returned.
ADD_SPECIAL_WRITES = f"""
{_GIVEN_WRITES}, old AS (
    SELECT given.number, array_agg(w.idx) AS indexes, array_agg(w.value) AS contents
    FROM given
    CROSS JOIN LATERAL (
        SELECT w.idx, w.value
        FROM tm.write AS w
        WHERE w.thread_id = given.thread_id AND w.thread_id {OF_ONE}
            AND w.ns = given.ns
            AND w.checkpoint_id = given.checkpoint_id
            AND w.task_id = given.task_id
            AND w.idx = given.idx
        OFFSET 0
    ) AS w
    WHERE given.idx < 0
    GROUP BY given.number
), added AS (
    {_INSERT_WRITES}
    DO UPDATE
    SET task_path = excluded.task_path,
        channel = excluded.channel,
        value = excluded.value,
        checksum = excluded.checksum
    WHERE w.idx < 0
    {_ADDED_WRITES}
{ADD_MADE_HEADS})
{
    _JUDGEMENT.format(
        outcome=f"{_PACK_LEFT_OUT}, (SELECT indexes FROM old WHERE number = judged.number),"
        " (SELECT contents FROM old WHERE number = judged.number)"
    )
}
"""

# Something else was stored in the thread that listings go by.
TOUCH = """
UPDATE tm.head
SET updated_at = greatest(updated_at, $2::bigint), minute = greatest(minute, {})
WHERE thread_id = $1::text AND ns = ''
""".format(MINUTE.format("$2::bigint"))

COPY_SEGMENTS = """
WITH heads AS (
    INSERT INTO tm.head AS h (thread_id, ns, rank, needs, checkpoints, updated_at, minute)
    SELECT $2::text, ns, rank, needs, 0, updated_at, minute
    FROM tm.head
    WHERE thread_id = $1::text
    ON CONFLICT (thread_id, ns) DO UPDATE
    SET rank = excluded.rank, needs = excluded.needs
    WHERE h.rank <= excluded.rank
)
INSERT INTO tm.segment (thread_id, key, data)
SELECT $2::text, key, data
FROM tm.segment
WHERE thread_id = $1::text
ON CONFLICT DO NOTHING
"""
