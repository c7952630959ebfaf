"""Adding the rows of a change, by one call of a server function, and copying segments."""

from threadmark_postgres.functions import params_of

ADD = f"SELECT * FROM tm.add_1({params_of('add_1')})"
# Most changes have a special function: one checkpoint whose rank is its id, and the writes of one task.
ADD_ONE = f"SELECT * FROM tm.add_one_1({params_of('add_one_1')})"

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
