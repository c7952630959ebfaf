"""Removing and rewriting: checkpoints that are pruned or replaced, and threads."""

from threadmark_postgres.sql.expressions import CHECKPOINT, arrays, listed

REMOVE = "SELECT tm.remove_1($1::text, $2::text[], $3::text[], $4::bytea[])"
DROP = "SELECT tm.drop_1($1::text, $2::bigint, $3::text, $4::bigint)"

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
