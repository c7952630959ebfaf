"""Expressions that several modules share, so that the clock, a minute and a row are the same in all statements."""

from collections.abc import Iterable, Mapping

# Microseconds since 1970, by the server's clock.
MICROSECONDS = "(extract(epoch FROM {}) * 1000000)::bigint"
CLOCK = MICROSECONDS.format("clock_timestamp()")

# When the server started. It is another one after a crash, and if a standby has taken over.
STARTED = MICROSECONDS.format("pg_postmaster_start_time()")

# A head's `minute`, by which listings find it. `updated_at` changes with each put, and in an index each put would write
# it there.
MINUTE = "{} / 60000000"

# A live thread has a head for the namespace "", with the rank "" if that has no checkpoint.
NO_CHECKPOINT = "{head}.rank = '' AND {head}.checkpoints = 0"

# The columns of a checkpoint and of a pending write with their types, without their thread. Statements that read or add
# whole rows derive from these two, and `columns` packs and unpacks in their order; only `functions/find_1.sql` lists
# them again. `id` is NULL if it equals `rank`, which it does unless a clock was set back; `run` is never read.
CHECKPOINT = {
    "ns": "text",
    "id": "text",
    "rank": "text",
    "parent": "text",
    "created_at": "bigint",
    "metadata": "text",
    "header": "bytea",
    "checksum": "bytea",
    "run": "bigint",
}
WRITE = {
    "ns": "text",
    "checkpoint_id": "text",
    "task_id": "bytea",
    "idx": "bigint",
    "task_path": "text",
    "channel": "text",
    "value": "bytea",
    "checksum": "bytea",
}


def listed(columns: Iterable[str], table: str = "") -> str:
    """Return a list of columns, such as "c.ns, c.rank" with the table "c"."""
    return ", ".join(f"{table}.{column}" if table else column for column in columns)


def arrays(columns: Mapping[str, str], first: int) -> str:
    """Return an array as a parameter for each column, such as "$3::text[], $4::bytea[]" from 3 on."""
    return ", ".join(f"${number}::{kind}[]" for number, kind in enumerate(columns.values(), first))


_READ = [column for column in CHECKPOINT if column != "run"]
_WITH_ID = ["coalesce(c.id, c.rank)" if column == "id" else f"c.{column}" for column in _READ]
ALL = listed(_READ, "c")
ROW = listed(_WITH_ID)
OUTLINE = listed(_WITH_ID[: _READ.index("header")])


NEWEST = f"""
SELECT {ALL}
FROM tm.checkpoint AS c
WHERE c.thread_id = $1::text AND c.ns = $2::text
ORDER BY c.rank DESC
LIMIT 1
"""
