"""Adding the rows of a change, by one call of a server function, and copying segments."""

from collections.abc import Mapping
from functools import cache

from threadmark_postgres.sql.expressions import CHECKPOINT, WRITE


def _call(function: str, params: Mapping[str, str]) -> str:
    named = [f"p_{name} => ${number}::{kind}" for number, (name, kind) in enumerate(params.items(), 1)]
    return f"SELECT * FROM tm.{function}({', '.join(named)})"


def _params(declared: str) -> dict[str, str]:
    """The names and types of parameters, which are declared as in a function, without `p_`."""
    return dict(each.split() for each in declared.split(","))


# Most changes have special functions: one checkpoint whose rank is its id, and the writes of one task.
_ALONE = _params("thread text, epoch bigint, token bigint, only_owner boolean, owner text, continues text")
_ALONE_TOO = _params("keys bytea[], data bytea[], term bigint, entry bytea")
_UNDER_RANK = {column: kind for column, kind in CHECKPOINT.items() if column != "id"}
_TASK = _params(
    "ns text, task_id bytea, task_path text, value bytea, checksum bytea,"
    "record_idx bigint, record bytea, record_checksum bytea"
)
ADD_CHECKPOINT = _call("add_checkpoint_1", _ALONE | _UNDER_RANK | {"needs": "bytea[]"} | _ALONE_TOO)
ADD_TASK = _call("add_task_1", _ALONE | _TASK | _ALONE_TOO)

_CHANGE = _params(
    "thread text, epoch bigint, now bigint, continues text, token bigint, owner text, expires_at bigint, check bytea,"
    "begins boolean, only_owner boolean, expects text, sorts_last boolean, touches boolean,"
    "looks boolean, replaces boolean, waits boolean"
)
_SEGMENTS = _params("keys bytea[], data bytea[]")
_CHECKPOINTS = {column: f"{kind}[]" for column, kind in CHECKPOINT.items()} | {"needs": "bytea[]"}
_WRITES = {f"w_{column}": f"{kind}[]" for column, kind in WRITE.items()}
_REPLICATION = _params("term bigint, entry bytea, previous bigint, position bigint, copied_epoch bigint")


@cache
def add(*, segments: bool, checkpoints: bool, writes: bool, replicated: bool) -> str:
    """Return the call for a change with these parts. `columns` gives its parameters in their order."""
    params = dict(_CHANGE)
    for part, is_there in (
        (_SEGMENTS, segments),
        (_CHECKPOINTS, checkpoints),
        (_WRITES, writes),
        (_REPLICATION, replicated),
    ):
        params |= part if is_there else {}
    return _call("add_1", params)


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
