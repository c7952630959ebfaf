"""Listing: pages of checkpoints, rows by their keys, chains of ancestors, heads, and the names of all threads."""

from threadmark_postgres.sql.expressions import ALL, NEWEST, NO_CHECKPOINT, OUTLINE, ROW, WRITE, listed


def _page(columns: str) -> str:
    """Return the statement for a page of checkpoints, with the clauses of its scope joined by AND."""
    return f"""
SELECT c.thread_id, {columns}
FROM tm.checkpoint AS c
WHERE {{clauses}}
ORDER BY c.rank DESC, c.thread_id DESC, c.ns DESC
LIMIT $1::bigint
"""


PAGE, PAGE_OF_ROWS = _page(OUTLINE), _page(ROW)
PAGE_OF_ALL = "true"
PAGE_OF_THREAD = "c.thread_id = ${}::text"
PAGE_OF_NAMESPACE = "c.ns = ${}::text"
PAGE_WITH_ID = "((c.rank = ${0}::text AND c.id IS NULL) OR c.id = ${0}::text)"
PAGE_BEFORE = "c.rank < ${}::text"
PAGE_OF_RUN = "c.run = ${}::bigint"
PAGE_OF_OWNER = "EXISTS (SELECT FROM tm.thread AS t WHERE t.thread_id = c.thread_id AND t.owner = ${}::text)"
PAGE_WITH_FRAGMENT = "position(${}::text IN c.metadata) > 0"
PAGE_AFTER = "(c.rank, c.thread_id, c.ns) < (${}::text, ${}::text, ${}::text)"

# OFFSET 0 makes it one look-up in the index for each key; without statistics a join would read the whole thread.
ROWS = f"""
SELECT {ROW}
FROM unnest($2::text[], $3::text[]) AS asked (ns, id)
CROSS JOIN LATERAL (
    SELECT {ALL}
    FROM tm.checkpoint AS c
    WHERE c.thread_id = $1::text AND c.ns = asked.ns AND c.rank = asked.id AND c.id IS NULL
    UNION ALL
    SELECT {ALL}
    FROM tm.checkpoint AS c
    WHERE c.thread_id = $1::text AND c.ns = asked.ns AND c.id = asked.id
    OFFSET 0
) AS c
"""

_WRITE = listed(WRITE, "w")

WRITES = f"""
SELECT {_WRITE}
FROM unnest($2::text[], $3::text[]) AS asked (ns, id)
CROSS JOIN LATERAL (
    SELECT *
    FROM tm.write AS w
    WHERE w.thread_id = $1::text AND w.ns = asked.ns AND w.checkpoint_id = asked.id
    OFFSET 0
) AS w
"""

WRITES_OF_THREAD = f"""
SELECT {_WRITE}
FROM tm.write AS w
WHERE w.thread_id = $1::text
"""

# A checkpoint and its ancestors, nearest first. If two checkpoints name each other as parents, the limit ends it.
_CHAIN = f"""
WITH RECURSIVE chain AS (
    SELECT 0 AS depth, c.*
    FROM ({{choice}}) AS c
    UNION ALL
    SELECT chain.depth + 1, c.*
    FROM chain
    CROSS JOIN LATERAL (
        SELECT {ALL}
        FROM tm.checkpoint AS c
        WHERE c.thread_id = $1::text AND c.ns = $2::text AND c.rank = chain.parent AND c.id IS NULL
        UNION ALL
        SELECT {ALL}
        FROM tm.checkpoint AS c
        WHERE c.thread_id = $1::text AND c.ns = $2::text AND c.id = chain.parent
    ) AS c
    WHERE chain.depth < $3::bigint - 1
)
SELECT {ROW}
FROM chain AS c
ORDER BY c.depth
"""
CHAIN_FROM_NEWEST = _CHAIN.format(choice=NEWEST)
CHAIN = _CHAIN.format(
    choice=f"""
        SELECT {ALL}
        FROM tm.checkpoint AS c
        WHERE c.thread_id = $1::text AND c.ns = $2::text
            AND ((c.rank = $4::text AND c.id IS NULL) OR c.id = $4::text)
    """
)

HEADS = f"""
SELECT h.thread_id, h.ns, h.rank, h.checkpoints
FROM tm.head AS h
WHERE ($1::text IS NULL OR h.thread_id = $1::text) AND ($2::text IS NULL OR h.ns = $2::text)
    AND NOT ({NO_CHECKPOINT.format(head="h")})
"""

COUNTED_HEADS = """
SELECT c.thread_id, c.ns, max(c.rank), count(*)
FROM tm.checkpoint AS c
WHERE ($1::text IS NULL OR c.thread_id = $1::text) AND ($2::text IS NULL OR c.ns = $2::text)
    AND EXISTS (SELECT FROM tm.thread AS t WHERE t.thread_id = c.thread_id AND t.live)
GROUP BY c.thread_id, c.ns
"""

# A thread with a head but without a row was damaged, and must be visited as well. Each side has its own limit: a union
# of all of them would be sorted whole.
THREADS = """
(
    SELECT t.thread_id
    FROM tm.thread AS t
    WHERE t.live AND t.thread_id > $1::text
    ORDER BY t.thread_id
    LIMIT $2::bigint
)
UNION
(
    SELECT DISTINCT h.thread_id
    FROM tm.head AS h
    WHERE h.thread_id > $1::text
    ORDER BY h.thread_id
    LIMIT $2::bigint
)
ORDER BY thread_id
LIMIT $2::bigint
"""
