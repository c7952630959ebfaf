"""The adding statements as they are for a change that is fenced by a term, or that another database has told.

A put of a replicated saver is one statement like any other put: what it has more stands here, and is set into the text
of the statements of `adding` and `adding_alone`, so that a put of any other saver has nothing of it.
"""

import re
from functools import cache

from threadmark_postgres.sql.adding_alone import ANY_EPOCH, SEEN_EPOCH
from threadmark_postgres.sql.editing import replaced
from threadmark_postgres.sql.expressions import CLOCK
from threadmark_postgres.sql.judging import MAKE

# Whether a change under this term, NULL for any, may be made. Its statement adds to the outbox, too, so it has that
# table's lock before it looks, and nobody raises the term from then until it is committed (`replication.LOCK_TERM`).
ALLOWED = "coalesce({given} >= (SELECT r.term FROM tm.replica AS r), true)"

# Positions of one thread follow each other in the order of commits: whoever takes one holds this row until then.
NEXT_POSITION = f"""ON CONFLICT (thread_id) DO UPDATE
    SET position = greatest(p.position + 1, {CLOCK}){{more}},
        previous = p.position"""

# Of the statements for one change: what is numbered, and recorded.
_RECORDED_ALONE = f"""), numbered AS (
    INSERT INTO tm.position AS p (thread_id, position, previous)
    SELECT $1::text, {CLOCK}, 0
    FROM held{{source}}
    WHERE $entry::bytea IS NOT NULL
    {NEXT_POSITION.format(more="")}
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
    NEXT_POSITION.format(
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
_FOLLOWED = f"""        AND {ALLOWED.format(given="$term::bigint")}
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

_LOCKED, _LAST_SELECT = "    FOR SHARE SKIP LOCKED", ")\n\nSELECT "
_BEGINS = "WHERE epoch IS NULL AND", f"WHERE {ALLOWED.format(given='term')} AND epoch IS NULL AND"
_ENTRY = "$term", "$entry"


@cache
def alone(statement: str) -> str:
    """Return a statement for one change as one that compares the term and records an entry.

    Their parameters follow the others. Its row ends with the entry's position and the one before, NULL where none is.
    """
    source = "\n    CROSS JOIN added" if _adds_checkpoint(statement) else ""
    begin, select = _halves(statement)
    begin = replaced(begin, (_LOCKED, f"        AND {ALLOWED.format(given='$term::bigint')}\n{_LOCKED}"))
    select = replaced(
        select, ("expires_at\nFROM held", "expires_at, position, previous\nFROM held\nLEFT JOIN numbered ON true")
    )
    return _numbered(begin + _RECORDED_ALONE.format(source=source) + select, *_ENTRY)


@cache
def following(statement: str) -> str:
    """Return a statement for one change as one for a change that another database has told, to a thread that came.

    Behind the others it has as parameters the term, the position that the change follows, its own, and its epoch.
    """
    fresh = _FRESH if _adds_checkpoint(statement) else ""
    # With writes, too, this reads what was there before the lock: whether the thread has changes of its own.
    epochs = () if SEEN_EPOCH in statement else ((ANY_EPOCH, SEEN_EPOCH),)
    statement = replaced(
        statement,
        *epochs,
        ("WITH held AS (", "WITH reached AS ("),
        (f"{_LOCKED}\n", _FOLLOWED.format(fresh=fresh)),
    )
    return _numbered(statement, "$term", "$previous", "$position", "$epoch")


@cache
def recording(statement: str) -> str:
    """Return a statement for several changes as one that compares their terms and records their entries.

    Their parameters follow the others. The entry's position and the one before stand behind `expires_at` in its rows.
    """
    begin, select = _halves(_fenced(statement))
    select = replaced(
        select,
        ("renewal, expires_at, ", "renewal, expires_at, position, previous, "),
        ("FROM judged", "FROM judged\nLEFT JOIN recorded USING (number)"),
    )
    return _numbered(begin + _RECORDED.format(made=_MADE if _adds_checkpoint(statement) else "") + select, *_ENTRY)


@cache
def judging(statement: str) -> str:
    """Return the judgement of a change as one that compares its term. It has the parameters of both, too."""
    return _numbered(_fenced(statement), *_ENTRY)


def _adds_checkpoint(statement: str) -> bool:
    """Whether it adds a checkpoint, or several, and not what tasks wrote."""
    adds_checkpoint = "INSERT INTO tm.checkpoint" in statement
    if adds_checkpoint == ("INSERT INTO tm.write" in statement):
        raise ValueError(f"this statement adds both checkpoints and writes, or neither: {statement!r}")
    return adds_checkpoint


def _halves(statement: str) -> tuple[str, str]:
    """Split a statement into its common table expressions and its final select list."""
    begin, found, select = statement.rpartition(_LAST_SELECT)
    if not found:
        raise ValueError(f"this statement has no {_LAST_SELECT!r}: {statement!r}")
    return begin, select


def _fenced(statement: str) -> str:
    outdated = f"NOT {ALLOWED.format(given='change.term')}"
    begins = (_BEGINS,) if MAKE in statement else ()
    return replaced(
        statement,
        ("$9::bigint[]\n", "$9::bigint[], $term::bigint[], $entry::bytea[]\n"),
        ("only_owner, number\n", "only_owner, term, entry, number\n"),
        *begins,
        (
            "            WHEN change.only_owner",
            f"            WHEN {outdated} THEN 'term'\n            WHEN change.only_owner",
        ),
    )


def _numbered(statement: str, *names: str) -> str:
    """Give these parameters the numbers behind those of the others."""
    last = max(int(number) for number in re.findall(r"\$(\d+)", statement))
    return replaced(statement, *((name, f"${number}") for number, name in enumerate(names, last + 1)))
