"""Adding the rows of a change, by one call of a server function, and copying segments."""

from threadmark_postgres.functions import each_param_of, params_of
from threadmark_postgres.sql.expressions import STARTED

ADD = f"SELECT * FROM tm.add_1({params_of('add_1')})"
# Most changes have a special function: one checkpoint whose rank is its id, and the writes of one task.
ADD_ONE = f"SELECT * FROM tm.add_one_1({params_of('add_one_1')})"

NO_EPOCH = -2
"""No thread has this epoch, and -1 means that there is no thread."""


def _of_start(name: str) -> str:
    """Return a call whose last parameter is a start of the server: the epoch counts only if that is the last one."""
    params = each_param_of(name)
    thread, epoch, *others = params
    start = f"${len(params) + 1}::bigint"
    relied_on = f"CASE WHEN coalesce({start} = {STARTED}, true) THEN {epoch} ELSE {NO_EPOCH} END"
    return f"SELECT * FROM tm.{name}({', '.join([thread, relied_on, *others])})"


ADD_OF_START, ADD_ONE_OF_START = _of_start("add_1"), _of_start("add_one_1")

START = f"SELECT {STARTED}"

# The thread is locked already.
END_EPOCH = """
UPDATE tm.thread AS t
SET epoch = greatest(t.epoch, $2::bigint) + 1
WHERE t.thread_id = $1::text
RETURNING t.epoch
"""

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
