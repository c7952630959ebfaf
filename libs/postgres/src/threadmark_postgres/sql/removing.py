"""Removing and rewriting: checkpoints that are pruned or replaced, threads, and what is remembered of deleted ones."""

from threadmark.names import MESSAGES_NS
from threadmark_postgres.sql.expressions import CHECKPOINT, CLOCK, arrays, listed

# The thread is locked by then, so its rows do not move, and they are deleted by ctid. A join would look up everything
# that is doomed once for each row of the thread, as long as the tables have no statistics. A ctid is unique within one
# partition only: hence the condition on the thread.
REMOVE = f"""
WITH doomed AS (
    SELECT ns, id
    FROM unnest($2::text[], $3::text[]) AS doomed (ns, id)
), found AS (
    SELECT c.tid
    FROM doomed
    CROSS JOIN LATERAL (
        SELECT c.ctid AS tid
        FROM tm.checkpoint AS c
        WHERE c.thread_id = $1::text AND c.ns = doomed.ns AND c.rank = doomed.id AND c.id IS NULL
        UNION ALL
        SELECT c.ctid
        FROM tm.checkpoint AS c
        WHERE c.thread_id = $1::text AND c.ns = doomed.ns AND c.id = doomed.id
        OFFSET 0
    ) AS c
), checkpoints AS (
    DELETE FROM tm.checkpoint
    WHERE thread_id = $1::text AND ctid = ANY (ARRAY(SELECT tid FROM found))
    RETURNING ns
), counted AS (
    UPDATE tm.head AS h
    SET checkpoints = h.checkpoints - removed.checkpoints
    FROM (SELECT ns, count(*) AS checkpoints FROM checkpoints GROUP BY ns) AS removed
    WHERE h.thread_id = $1::text AND h.ns = removed.ns
), writes AS (
    DELETE FROM tm.write
    WHERE thread_id = $1::text AND ctid = ANY (ARRAY(
        SELECT w.tid
        FROM doomed
        CROSS JOIN LATERAL (
            SELECT w.ctid AS tid
            FROM tm.write AS w
            WHERE w.thread_id = $1::text AND w.ns = doomed.ns AND w.checkpoint_id = doomed.id
            OFFSET 0
        ) AS w
    ))
), segments AS (
    DELETE FROM tm.segment
    WHERE thread_id = $1::text AND key = ANY ($4::bytea[])
)
UPDATE tm.thread
SET
    epoch = epoch + 1,
    removed_up_to = greatest(
        removed_up_to,
        (SELECT max(id COLLATE "C") FROM doomed WHERE ns <> '{MESSAGES_NS}')
    )
WHERE thread_id = $1::text
RETURNING epoch
"""

# The thread is locked by then.
REMOVE_REPLACED = """
WITH doomed AS (
    SELECT ns, rank
    FROM unnest($2::text[], $3::text[]) AS doomed (ns, rank)
), removed AS (
    DELETE FROM tm.checkpoint AS c
    USING doomed
    WHERE c.thread_id = $1::text AND c.ns = doomed.ns AND c.rank = doomed.rank
        AND c.ns = ANY ($2::text[]) AND c.rank = ANY ($3::text[])
    RETURNING c.ns
)
UPDATE tm.head AS h
SET checkpoints = h.checkpoints - (SELECT count(*) FROM removed WHERE removed.ns = h.ns)
WHERE h.thread_id = $1::text AND h.ns = ANY ($2::text[])
"""

# The thread is locked here, too.
# Its key stays, and its run.
REWRITTEN = {column: kind for column, kind in CHECKPOINT.items() if column not in ("id", "run")}
REWRITE_CHECKPOINTS = f"""
UPDATE tm.checkpoint AS c
SET {", ".join(f"{column} = fresh.{column}" for column in REWRITTEN if column not in ("ns", "rank"))}
FROM unnest({arrays(REWRITTEN, 2)}) AS fresh ({listed(REWRITTEN)})
WHERE c.thread_id = $1::text AND c.ns = fresh.ns AND c.rank = fresh.rank
    AND c.ns = ANY ($2::text[]) AND c.rank = ANY ($3::text[])
"""

NEXT_EPOCH = """
UPDATE tm.thread
SET epoch = epoch + 1
WHERE thread_id = $1::text
RETURNING epoch
"""

# After a removal, the newest checkpoint may be gone. Rows lost before stay counted, and so are missed.
SETTLE_HEADS = """
UPDATE tm.head AS h
SET rank = coalesce(left_over.rank, CASE WHEN h.checkpoints = 0 THEN '' ELSE h.rank END),
    needs = '{}'
FROM tm.head AS old
CROSS JOIN LATERAL (
    SELECT max(c.rank) AS rank
    FROM tm.checkpoint AS c
    WHERE c.thread_id = $1::text AND c.ns = old.ns
) AS left_over
WHERE h.thread_id = $1::text AND old.thread_id = $1::text AND old.ns = h.ns
    AND h.rank IS DISTINCT FROM left_over.rank
"""
REMOVE_EMPTY_HEADS = """
DELETE FROM tm.head
WHERE thread_id = $1::text AND checkpoints = 0 AND ns <> ''
"""

# The ids of messages are whatever their users choose, and no run continues one.
GREATEST_IDS = f"""
SELECT max(coalesce(c.id, c.rank))
FROM tm.checkpoint AS c
WHERE c.thread_id = $1::text AND c.ns <> '{MESSAGES_NS}'
UNION ALL
SELECT max(w.checkpoint_id)
FROM tm.write AS w
WHERE w.thread_id = $1::text
UNION ALL
SELECT greatest(t.deleted_up_to, t.removed_up_to)
FROM tm.thread AS t
WHERE t.thread_id = $1::text
"""

# Where there ever was a lease it gets the next token, so that no earlier one is accepted in a thread of the same name.
BURY_THREAD = f"""
UPDATE tm.thread
SET live = false,
    owner = NULL,
    title = NULL,
    folded_title = NULL,
    metadata = NULL,
    expires_at = NULL,
    checksum = NULL,
    token = CASE WHEN token > 0 THEN greatest(token + 1, {CLOCK}) ELSE 0 END,
    lease_ends = NULL,
    lease_ttl = NULL,
    holder = NULL,
    began = NULL,
    epoch = greatest(epoch + 1, $2::bigint),
    deleted_up_to = $3::text,
    removed_up_to = NULL
WHERE thread_id = $1::text
"""

EMPTY_THREAD = """
WITH checkpoints AS (
    DELETE FROM tm.checkpoint
    WHERE thread_id = $1::text
), writes AS (
    DELETE FROM tm.write
    WHERE thread_id = $1::text
), heads AS (
    DELETE FROM tm.head
    WHERE thread_id = $1::text
)
DELETE FROM tm.segment
WHERE thread_id = $1::text
"""

# A row that another transaction holds is left to the next removal, so that removals never wait for each other here.
# One of which somebody holds a lease stays until that has ended, and one of which another database is to learn that it
# was deleted until it has. OFFSET 0 makes that a look-up in the index for each.
FORGET_BURIED = f"""
DELETE FROM tm.thread
WHERE thread_id IN (
    SELECT thread_id
    FROM tm.thread AS t
    WHERE NOT live AND epoch < $1::bigint AND coalesce(lease_ends <= {CLOCK}, true)
        AND NOT EXISTS (SELECT FROM tm.outbox AS o WHERE o.thread_id = t.thread_id OFFSET 0)
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
)
RETURNING thread_id
"""
