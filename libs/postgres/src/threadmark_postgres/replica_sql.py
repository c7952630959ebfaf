"""Every statement for replication, and the adding statements as they are for a change that is fenced by a term.

`sql` has the others. A put of a replicated saver is one statement like any other put: what it has more stands here, and
is set into the text of `sql`, so that a put of any other saver has nothing of it.
"""

import re
from functools import cache

from threadmark.replica_store import LONG_MARK, MARK_BYTES
from threadmark.store import NEVER
from threadmark_postgres.sql import ANY_EPOCH, CLOCK, SEEN_EPOCH

# Whether a change under this term, NULL for any, may be made. Its statement adds to the outbox, too, so it has that
# table's lock before it looks, and nobody raises the term from then until it is committed (LOCK_TERM).
_ALLOWED = "coalesce({given} >= (SELECT r.term FROM tm.replica AS r), true)"

# Positions of one thread follow each other in the order of commits: whoever takes one holds this row until then.
_NEXT_POSITION = f"""ON CONFLICT (thread_id) DO UPDATE
    SET position = greatest(p.position + 1, {CLOCK}){{more}},
        previous = p.position"""

# Of the statements for one change: what is numbered, and recorded.
_RECORDED_ALONE = f"""), numbered AS (
    INSERT INTO tm.position AS p (thread_id, position, previous)
    SELECT $1::text, {CLOCK}, 0
    FROM held{{source}}
    WHERE $entry::bytea IS NOT NULL
    {_NEXT_POSITION.format(more="")}
    RETURNING position, previous
), recorded AS (
    INSERT INTO tm.outbox (thread_id, position, body)
    SELECT $1::text, position, $entry::bytea
    FROM numbered
)

SELECT """

# The same of the statements for several. Those of one thread get positions one behind the other. They are taken in the
# order of threads, like all rows, behind the checkpoints and before the heads.
_RECORDED = f"""), accepted AS (
    SELECT judged.number, judged.thread_id, change.entry
    FROM proven AS judged
    JOIN change ON change.number = judged.number
    WHERE change.entry IS NOT NULL{{made}}
), numbered AS (
    INSERT INTO tm.position AS p (thread_id, position, previous)
    SELECT thread_id, {CLOCK} + count(*) - 1, 0
    FROM accepted
    GROUP BY thread_id
    ORDER BY thread_id
    {
    _NEXT_POSITION.format(
        more='''
            + (SELECT count(*) - 1 FROM accepted WHERE accepted.thread_id = p.thread_id)'''
    )
}
    RETURNING thread_id, position, previous
), recorded AS (
    SELECT
        accepted.number,
        accepted.thread_id,
        accepted.entry,
        numbered.position + 1 - row_number() OVER (behind) AS position,
        CASE
            WHEN count(*) OVER (behind) = count(*) OVER (PARTITION BY accepted.thread_id) THEN numbered.previous
            ELSE numbered.position - row_number() OVER (behind)
        END AS previous
    FROM accepted
    JOIN numbered ON numbered.thread_id = accepted.thread_id
    WINDOW behind AS (PARTITION BY accepted.thread_id ORDER BY accepted.number DESC)
), entered AS (
    INSERT INTO tm.outbox (thread_id, position, body)
    SELECT thread_id, position, entry
    FROM recorded
)

SELECT """

# Of the statements for one change: it is made where the thread, which is locked like any other that somebody adds to,
# has come up to the change before it, has no changes of its own, and lacks the checkpoint. Its row of `copied` is
# locked with it. What deletes nothing is there for its lock, which keeps the term.
_FOLLOWED = f"""        AND {_ALLOWED.format(given="$term::bigint")}
    FOR SHARE SKIP LOCKED
), kept AS (
    DELETE FROM tm.outbox
    WHERE false
), held AS (
    UPDATE tm.copied AS f
    SET position = $position::bigint, epoch = $epoch::bigint
    FROM reached
    WHERE f.thread_id = $1::text AND f.position = $previous::bigint
        AND f.epoch IN (0, $epoch::bigint)
        AND NOT EXISTS (SELECT FROM tm.outbox AS o WHERE o.thread_id = $1::text OFFSET 0){{fresh}}
    RETURNING reached.epoch, reached.owner, reached.expires_at, reached.renewal
"""
_FRESH = """
        AND NOT EXISTS (
            SELECT
            FROM tm.checkpoint AS c
            WHERE c.thread_id = $1::text AND c.ns = $6::text AND c.rank = $7::text
            UNION ALL
            SELECT
            FROM tm.checkpoint AS c
            WHERE c.thread_id = $1::text AND c.ns = $6::text AND c.id = $7::text
            OFFSET 0
        )"""

# A change that found one of its checkpoints stored already is not made.
_MADE = """
        AND (SELECT count(*) FROM given WHERE given.number = judged.number)
            = (SELECT count(*) FROM counted WHERE counted.number = judged.number)"""

_LOCKED, _ADDED, _LAST_SELECT = "    FOR SHARE SKIP LOCKED", "RETURNING rank", ")\n\nSELECT "
_ENTRY = "$term", "$entry"


@cache
def alone(statement: str) -> str:
    """Return a statement for one change as one that compares the term and records an entry.

    Their parameters follow the others. Its row ends with the entry's position and the one before, NULL where none is.
    """
    source = "\n    CROSS JOIN added" if _ADDED in statement else ""
    begin, _, select = statement.rpartition(_LAST_SELECT)
    begin = begin.replace(_LOCKED, f"        AND {_ALLOWED.format(given='$term::bigint')}\n{_LOCKED}")
    select = select.replace(
        "expires_at\nFROM held", "expires_at, position, previous\nFROM held\nLEFT JOIN numbered ON true"
    )
    return _numbered(begin + _RECORDED_ALONE.format(source=source) + select, *_ENTRY)


@cache
def following(statement: str) -> str:
    """Return a statement for one change as one for a change that another database has told, to a thread that came.

    Behind the others it has as parameters the term, the position that the change follows, its own, and its epoch.
    """
    fresh = _FRESH if _ADDED in statement else ""
    # With writes, too, this reads what was there before the lock: whether the thread has changes of its own.
    statement = statement.replace(ANY_EPOCH, SEEN_EPOCH).replace("WITH held AS (", "WITH reached AS (")
    statement = statement.replace(f"{_LOCKED}\n", _FOLLOWED.format(fresh=fresh))
    return _numbered(statement, "$term", "$previous", "$position", "$epoch")


@cache
def recording(statement: str) -> str:
    """Return a statement for several changes as one that compares their terms and records their entries.

    Their parameters follow the others. The entry's position and the one before stand behind `expires_at` in its rows.
    """
    begin, _, select = _fenced(statement).rpartition(_LAST_SELECT)
    select = select.replace("renewal, expires_at, ", "renewal, expires_at, position, previous, ")
    select = select.replace("FROM judged", "FROM judged\nLEFT JOIN recorded USING (number)")
    return _numbered(begin + _RECORDED.format(made=_MADE if "counted AS (" in begin else "") + select, *_ENTRY)


@cache
def judging(statement: str) -> str:
    """Return the judgement of a change as one that compares its term. It has the parameters of both, too."""
    return _numbered(_fenced(statement), *_ENTRY)


def _fenced(statement: str) -> str:
    outdated = f"NOT {_ALLOWED.format(given='change.term')}"
    for part, fenced in (
        ("$9::bigint[]\n", "$9::bigint[], $term::bigint[], $entry::bytea[]\n"),
        ("only_owner, number\n", "only_owner, term, entry, number\n"),
        ("WHERE epoch IS NULL AND", f"WHERE {_ALLOWED.format(given='term')} AND epoch IS NULL AND"),
        (
            "            WHEN change.only_owner",
            f"            WHEN {outdated} THEN 'term'\n            WHEN change.only_owner",
        ),
    ):
        statement = statement.replace(part, fenced)
    return statement


def _numbered(statement: str, *names: str) -> str:
    """Give these parameters the numbers behind those of the others."""
    last = max(int(number) for number in re.findall(r"\$(\d+)", statement))
    for number, name in enumerate(names, last + 1):
        statement = statement.replace(name, f"${number}")
    return statement


REPLICA = """
SELECT term, body
FROM tm.replica
"""

# Whoever asks whether a term is still the one that counts, before several statements that count on it, asks first that
# nobody may raise it until the transaction ends.
HOLD_TERM = "LOCK TABLE tm.outbox IN ROW EXCLUSIVE MODE"
IS_OUTDATED = f"SELECT NOT {_ALLOWED.format(given='$1::bigint')}"

# Waits for all that add under the smaller term, and keeps others away until the greater one is committed. They queue
# behind it, so where somebody holds a transaction open it gives up soon.
LIMIT_WAIT = "SET LOCAL lock_timeout = '5s'"
LOCK_TERM = "LOCK TABLE tm.outbox IN SHARE ROW EXCLUSIVE MODE"

# Waits for nobody who adds: the term stays.
SET_REPLICA_BODY = """
UPDATE tm.replica
SET body = $2::text
WHERE term = $1::bigint
RETURNING term, body
"""
RAISE_TERM = """
INSERT INTO tm.replica AS r (one, term, body)
VALUES (true, $1::bigint, $2::text)
ON CONFLICT (one) DO UPDATE
SET term = excluded.term, body = excluded.body
WHERE r.term <= excluded.term
"""

# A thread of which something is to be remembered has a row, which is not live, and by which it is forgotten in time.
_REMEMBERED = f"""
WITH remembered AS (
    INSERT INTO tm.thread (thread_id, epoch, live, created_at, token)
    SELECT $1::text, clock.microseconds, false, clock.microseconds, 0
    FROM (SELECT {CLOCK} AS microseconds) AS clock{{condition}}
    ON CONFLICT DO NOTHING
    RETURNING thread_id
)"""

# The thread's row comes before the position, as in the adding statements.
RECORD = f"""
{_REMEMBERED.format(condition=f" WHERE {_ALLOWED.format(given='$3::bigint')}").strip()}, numbered AS (
    INSERT INTO tm.position AS p (thread_id, position, previous)
    SELECT $1::text, {CLOCK}, 0
    FROM (SELECT count(*) FROM remembered) AS first
    WHERE {_ALLOWED.format(given="$3::bigint")}
    {_NEXT_POSITION.format(more="")}
    RETURNING position
)
INSERT INTO tm.outbox (thread_id, position, body)
SELECT $1::text, position, $2::bytea
FROM numbered
RETURNING position
"""

OUTBOX = """
SELECT thread_id, position, body
FROM tm.outbox
ORDER BY position, thread_id
LIMIT $1::bigint
"""
OUTBOX_OF_THREAD = """
SELECT thread_id, position, body
FROM tm.outbox
WHERE thread_id = $2::text
ORDER BY position
LIMIT $1::bigint
"""

WAITING = """
SELECT
    (SELECT count(*) FROM tm.outbox),
    coalesce((SELECT position FROM tm.outbox ORDER BY position, thread_id LIMIT 1), 0)
"""

SETTLE = """
DELETE FROM tm.outbox
WHERE thread_id = $1::text AND position <= $2::bigint
"""

# OFFSET 0 makes it one look-up in the index for each, as in `sql.ROWS`.
POSITIONS = """
SELECT p.*
FROM unnest($1::text[]) AS asked (thread_id)
CROSS JOIN LATERAL (
    SELECT p.thread_id, p.position
    FROM tm.position AS p
    WHERE p.thread_id = asked.thread_id
    OFFSET 0
) AS p
"""
COPIED = """
SELECT c.*
FROM unnest($1::text[]) AS asked (thread_id)
CROSS JOIN LATERAL (
    SELECT c.thread_id, c.position, c.epoch
    FROM tm.copied AS c
    WHERE c.thread_id = asked.thread_id
    OFFSET 0
) AS c
"""
SET_COPIED = f"""
{_REMEMBERED.format(condition="").strip()}
INSERT INTO tm.copied (thread_id, position, epoch)
VALUES ($1::text, $2::bigint, $3::bigint)
ON CONFLICT (thread_id) DO UPDATE
SET position = excluded.position, epoch = excluded.epoch
"""

# Whether a change of the other database does not follow what a thread, which is locked, has from there
# (`threadmark.replica_store.is_followed`), or the thread has changes of its own for that one.
IS_BEHIND = f"""
SELECT NOT coalesce(
        (
            SELECT position = $2::bigint AND epoch IN (0, $3::bigint)
            FROM tm.copied
            WHERE thread_id = $1::text
        ),
        $2::bigint = {NEVER}
    )
    OR EXISTS (SELECT FROM tm.outbox WHERE thread_id = $1::text)
"""

# What was kept of threads that are forgotten now.
FORGET = """
WITH positions AS (
    DELETE FROM tm.position
    WHERE thread_id = ANY ($1::text[])
)
DELETE FROM tm.copied
WHERE thread_id = ANY ($1::text[])
"""

# The last bytes of a value, all of it where it is shorter.
_END = "substring({{of}} FROM greatest(octet_length({{of}}) - {bytes} + 1, 1))"

# The number of a row's mark (`threadmark.replica_store.mark_of`), the last seven bytes. Of a damaged one that has fewer
# it is what they make.
_CHECK_OF_CHECKPOINT = "CASE WHEN c.checksum = '' THEN c.header ELSE c.checksum END"
_CHECK_OF_WRITE = "CASE WHEN w.checksum = '' THEN w.value ELSE w.checksum END"
_HEX = f"lpad(encode({_END.format(bytes=MARK_BYTES)}, 'hex'), {2 * MARK_BYTES}, '0')"
_MARK = f"('x' || {_HEX})::bit({8 * MARK_BYTES})::bigint"

_LONG_MARK = _END.format(bytes=LONG_MARK)

# A page of threads first, and then of each what is counted and added up, along the keys of their rows.
SUMMARIES = f"""
WITH page AS MATERIALIZED (
    SELECT thread_id, epoch, checksum
    FROM tm.thread
    WHERE live AND thread_id > $1::text
    ORDER BY thread_id
    LIMIT $2::bigint
)
SELECT
    page.thread_id,
    page.epoch,
    coalesce((SELECT p.position FROM tm.position AS p WHERE p.thread_id = page.thread_id), 0),
    coalesce((SELECT max(c.rank) FROM tm.checkpoint AS c WHERE c.thread_id = page.thread_id AND c.ns = ''), ''),
    checkpoints.rows,
    writes.rows,
    mod(checkpoints.total + writes.total + coalesce({_MARK.format(of="page.checksum")}, 0), {2**63})::bigint
FROM page
CROSS JOIN LATERAL (
    SELECT count(*) AS rows, coalesce(sum({_MARK.format(of=_CHECK_OF_CHECKPOINT)}), 0) AS total
    FROM tm.checkpoint AS c
    WHERE c.thread_id = page.thread_id
) AS checkpoints
CROSS JOIN LATERAL (
    SELECT count(*) AS rows, coalesce(sum({_MARK.format(of=_CHECK_OF_WRITE)}), 0) AS total
    FROM tm.write AS w
    WHERE w.thread_id = page.thread_id
) AS writes
ORDER BY page.thread_id
"""

# A row says by `kind` what it is: a checkpoint, a write or a segment.
MARKS = f"""
SELECT
    0 AS kind, c.ns, coalesce(c.id, c.rank), c.rank, NULL::bytea, NULL::bigint,
    {_LONG_MARK.format(of=_CHECK_OF_CHECKPOINT)}
FROM tm.checkpoint AS c
WHERE c.thread_id = $1::text
UNION ALL
SELECT 1, w.ns, w.checkpoint_id, NULL, w.task_id, w.idx, {_LONG_MARK.format(of=_CHECK_OF_WRITE)}
FROM tm.write AS w
WHERE w.thread_id = $1::text
UNION ALL
SELECT 2, NULL, NULL, NULL, s.key, octet_length(s.data), {_LONG_MARK.format(of="s.data")}
FROM tm.segment AS s
WHERE s.thread_id = $1::text
"""
