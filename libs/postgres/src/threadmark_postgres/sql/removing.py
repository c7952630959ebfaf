"""Removing and rewriting: checkpoints that are pruned or replaced, and threads."""

from threadmark_postgres.sql.expressions import CHECKPOINT, arrays, listed

REMOVE = "SELECT tm.remove_1($1::text, $2::text[], $3::text[], $4::bytea[])"
DROP = "SELECT * FROM tm.drop_1($1::text, $2::bigint, $3::text, $4::bigint)"

# The thread is locked already. The checkpoint's key and run stay.
REWRITTEN = {column: kind for column, kind in CHECKPOINT.items() if column not in ("id", "run")}
REWRITE_CHECKPOINTS = f"""
UPDATE tm.checkpoint AS c
SET {", ".join(f"{column} = fresh.{column}" for column in REWRITTEN if column not in ("ns", "rank"))}
FROM unnest({arrays(REWRITTEN, 2)}) AS fresh ({listed(REWRITTEN)})
WHERE c.thread_id = $1::text AND c.ns = fresh.ns AND c.rank = fresh.rank
    AND c.ns = ANY ($2::text[]) AND c.rank = ANY ($3::text[])
"""
