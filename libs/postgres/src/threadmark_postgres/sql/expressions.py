"""What statements of several modules have in common, so that the clock, a minute and a row are the same in all."""

# Microseconds since 1970, by the server's clock.
CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

# A head's `minute`, by which listings find it: `updated_at` changes with each put, and in an index it would be written
# there each time.
MINUTE = "{} / 60000000"

# A thread has a head for the namespace "" as long as it is there: with the rank "" where it has no checkpoint.
NO_CHECKPOINT = "{head}.rank = '' AND {head}.checkpoints = 0"

# The gate in front of a thread's row. Those who share a row's lock overtake whoever waits to have it alone; who asks
# for a lock of this kind does not. It belongs to the transaction, and to the table (decision 44).
_GATE = "hashtextextended(thread_id, tableoid::bigint)"
IS_LET_IN = f"pg_try_advisory_xact_lock_shared({_GATE})"
GATE_SHARED = f"pg_advisory_xact_lock_shared({_GATE})"
# Alone, and shared as well, because what this transaction adds then asks for that without waiting, which fails where
# somebody else waits, although the gate is its own.
GATE_ALONE = f"pg_advisory_xact_lock({_GATE}), {GATE_SHARED}"

# `id` is NULL where it equals `rank`, which it does unless a clock was set back.
OUTLINE = "c.ns, coalesce(c.id, c.rank), c.rank, c.parent, c.created_at, c.metadata"
ROW = f"{OUTLINE}, c.header, c.checksum"
ALL = "c.ns, c.id, c.rank, c.parent, c.created_at, c.metadata, c.header, c.checksum"

NEWEST = f"""
SELECT {ALL}
FROM tm.checkpoint AS c
WHERE c.thread_id = $1::text AND c.ns = $2::text
ORDER BY c.rank DESC
LIMIT 1
"""
