"""The database's format, as a sequence of numbered steps. A released step is never changed; a new one is added.

Each step and its record are one transaction. A step only adds, so that it disturbs no process of an earlier release:
tables, indexes, and columns of the shapes in `_ADDED`. Its `switch`, which `upgrade` makes, is for the time when there
is no such process. The file's `user_version` is the format in which all write, and changes with the switch only.
"""

import re
import sqlite3
from datetime import UTC, datetime
from functools import cache
from textwrap import dedent
from typing import NamedTuple

from threadmark.backends import ConfigError, CorruptDataError, Format, Program, SchemaError, UpgradeReport
from threadmark_sqlite.sql import connections
from threadmark_sqlite.steps import execute


class Migration(NamedTuple):
    """One step."""

    number: int
    name: str
    statements: tuple[str, ...]
    switch: tuple[str, ...] = ()
    """Statements for the time when no process of an earlier release is left."""
    least_reader: int = 1
    """The least format that a process must know to read what is written after the switch."""
    least_writer: int = 1
    """The same to write. It is the format in which processes write from the switch on."""
    release: str = "0.1.0"
    """The first version of Threadmark that has this step."""


MIGRATIONS = (
    Migration(
        1,
        "tables of the first release",
        (
            """
            CREATE TABLE threadmark_migration (
                number INTEGER PRIMARY KEY,
                name TEXT NOT NULL,
                applied_at TEXT NOT NULL,
                least_reader INTEGER NOT NULL,
                least_writer INTEGER NOT NULL
            )
            """,
            """
            CREATE TABLE threadmark_thread (
                thread INTEGER PRIMARY KEY,
                thread_id TEXT NOT NULL UNIQUE,
                epoch INTEGER NOT NULL,
                live INTEGER NOT NULL,
                deleted_up_to TEXT,
                removed_up_to TEXT,
                created_at INTEGER NOT NULL,
                minute INTEGER,
                owner TEXT,
                expires_at INTEGER,
                checksum BLOB,
                token INTEGER NOT NULL DEFAULT 0,
                lease_ends INTEGER,
                lease_ttl INTEGER,
                holder TEXT,
                began TEXT,
                position INTEGER NOT NULL DEFAULT 0,
                copied_position INTEGER,
                copied_epoch INTEGER,
                title TEXT,
                folded_title TEXT,
                metadata TEXT
            )
            """,
            "CREATE INDEX threadmark_thread_created ON threadmark_thread (created_at, thread_id) WHERE live = 1",
            "CREATE INDEX threadmark_thread_minute ON threadmark_thread (minute, thread_id) WHERE live = 1",
            "CREATE INDEX threadmark_thread_owner ON threadmark_thread (owner, thread_id) WHERE owner IS NOT NULL",
            """
            CREATE INDEX threadmark_thread_owner_created
            ON threadmark_thread (owner, created_at, thread_id)
            WHERE owner IS NOT NULL
            """,
            """
            CREATE INDEX threadmark_thread_owner_minute
            ON threadmark_thread (owner, minute, thread_id)
            WHERE owner IS NOT NULL
            """,
            """
            CREATE INDEX threadmark_thread_expires
            ON threadmark_thread (expires_at)
            WHERE expires_at IS NOT NULL
            """,
            """
            CREATE INDEX threadmark_thread_lease
            ON threadmark_thread (lease_ends)
            WHERE lease_ends IS NOT NULL
            """,
            """
            CREATE TABLE threadmark_segment (
                number INTEGER PRIMARY KEY,
                thread INTEGER NOT NULL,
                key BLOB NOT NULL,
                data BLOB NOT NULL
            )
            """,
            """
            CREATE UNIQUE INDEX threadmark_segment_key
            ON threadmark_segment (thread, key)
            """,
            """
            CREATE TABLE threadmark_checkpoint (
                number INTEGER PRIMARY KEY,
                thread INTEGER NOT NULL,
                ns TEXT NOT NULL,
                rank TEXT NOT NULL,
                id TEXT,
                parent TEXT,
                created_at INTEGER NOT NULL,
                metadata TEXT NOT NULL,
                header BLOB NOT NULL,
                checksum BLOB NOT NULL
            )
            """,
            """
            CREATE UNIQUE INDEX threadmark_checkpoint_rank
            ON threadmark_checkpoint (thread, ns, rank)
            """,
            """
            CREATE UNIQUE INDEX threadmark_checkpoint_id
            ON threadmark_checkpoint (thread, ns, id)
            WHERE id IS NOT NULL
            """,
            # By the thread's id, because a listing reads heads without the rows of their threads.
            """
            CREATE TABLE threadmark_head (
                thread_id TEXT NOT NULL,
                ns TEXT NOT NULL,
                newest TEXT NOT NULL,
                checkpoints INTEGER NOT NULL,
                updated_at INTEGER NOT NULL,
                newest_id BLOB,
                PRIMARY KEY (thread_id, ns)
            )
            WITHOUT ROWID
            """,
            """
            CREATE TABLE threadmark_write (
                thread INTEGER NOT NULL,
                ns TEXT NOT NULL,
                checkpoint_id BLOB NOT NULL,
                task_id BLOB NOT NULL,
                idx INTEGER NOT NULL,
                task_path TEXT NOT NULL,
                channel TEXT NOT NULL,
                value BLOB NOT NULL,
                checksum BLOB NOT NULL,
                PRIMARY KEY (thread, ns, checkpoint_id, task_id, idx)
            )
            WITHOUT ROWID
            """,
            # A thread's status is derived from these writes; others are not in the index. IN, not `=`: if a statement
            # compared `idx` with a parameter, SQLite would prepare it again for each value.
            """
            CREATE INDEX threadmark_write_status
            ON threadmark_write (thread, ns)
            WHERE idx IN (-1, -3)
            """,
            # The columns of threadmark_write, in a separate tree: a damaged page hides neighbours.
            """
            CREATE TABLE threadmark_batch (
                thread INTEGER NOT NULL,
                ns TEXT NOT NULL,
                checkpoint_id BLOB NOT NULL,
                task_id BLOB NOT NULL,
                idx INTEGER NOT NULL,
                task_path TEXT NOT NULL,
                channel TEXT NOT NULL,
                value BLOB NOT NULL,
                checksum BLOB NOT NULL,
                PRIMARY KEY (thread, ns, checkpoint_id, task_id, idx)
            )
            WITHOUT ROWID
            """,
            """
            CREATE TABLE threadmark_replica (
                number INTEGER PRIMARY KEY CHECK (number = 1),
                term INTEGER NOT NULL,
                body TEXT NOT NULL
            )
            """,
            "INSERT INTO threadmark_replica (number, term, body) VALUES (1, 0, '')",
            # By the thread's id, because the thread may have been deleted and its row removed.
            """
            CREATE TABLE threadmark_outbox (
                thread_id TEXT NOT NULL,
                position INTEGER NOT NULL,
                body BLOB NOT NULL,
                PRIMARY KEY (thread_id, position)
            )
            WITHOUT ROWID
            """,
            "CREATE INDEX threadmark_outbox_position ON threadmark_outbox (position, thread_id)",
        ),
    ),
)

CURRENT = MIGRATIONS[-1].number


def ddl(*, since: int = 0) -> str:
    """Return the SQL script that creates the tables, if you make the file before a saver may write there.

    By default the script is for an empty file, which may be one that does not exist yet. With `since` it updates a file
    of that format to the current one, and processes of the earlier release may go on using it.
    """
    if since not in range(CURRENT + 1):
        raise ConfigError(f"since must be a format from 0 (no tables yet) to {CURRENT}, not {since!r}")
    # Neither works within a transaction, nor does the first once there is a table.
    before = [connections.INCREMENTAL_VACUUM, connections.WRITE_AHEAD_LOG] if since == 0 else []
    statements = [connections.BEGIN_WRITE]
    for step in MIGRATIONS[since:]:
        reader, writer = (
            (step.least_reader, step.least_writer)
            if since == 0
            else (connections.PRESENT_READER, connections.PRESENT_WRITER)
        )
        statements += [
            *(_all_of(step) if since == 0 else step.statements),
            connections.SCRIPTED_RECORD.format(number=step.number, name=step.name, reader=reader, writer=writer),
        ]
    if since == 0:
        statements.append(connections.SET_WRITTEN.format(number=MIGRATIONS[-1].least_writer))
    statements += [connections.SET_APPLICATION_ID, connections.COMMIT]
    script = ";\n\n".join(dedent(statement).strip() for statement in (*before, *statements))
    return f"{script};\n"


def is_made(location: str) -> Program[bool]:
    """Return whether the tables exist, in any format. Raises SchemaError if the file is another application's."""
    ((application_id,),) = yield from execute(connections.GET_APPLICATION_ID)
    if application_id not in (0, connections.APPLICATION_ID):
        raise SchemaError(
            f"{location} belongs to another application (application_id {application_id:#x}): choose another file"
        )
    return bool(application_id == connections.APPLICATION_ID)


def is_current(location: str, *, writes: bool) -> Program[bool]:
    """Return whether the tables have every step that this release knows.

    Raises SchemaError if the file is another application's, or this release must not read it, or `writes` and must not.
    """
    if not (yield from is_made(location)):
        return False
    found = yield from _expected_format(location)
    found.expect_known(CURRENT, location, "threadmark-sqlite", writes=writes)
    return found.number >= CURRENT


def recorded_format() -> Program[Format]:
    """Return the format of a file that has tables."""
    ((number, least_reader, least_writer),) = yield from execute(connections.RECORDED_FORMAT)
    ((written,),) = yield from execute(connections.GET_WRITTEN)
    if not all(isinstance(each, int) for each in (number, least_reader, least_writer)):
        raise CorruptDataError("the record of its format is damaged", "table threadmark_migration")
    return Format(number, least_reader, max(least_writer, written))


def refusal(connection: sqlite3.Connection) -> SchemaError:
    """Return the error of a transaction that found the file switched to a form that this release does not write."""
    ((_, _, path), *_) = connection.execute(connections.FILES).fetchall()
    ((number, _, _),) = connection.execute(connections.RECORDED_FORMAT).fetchall()
    ((written,),) = connection.execute(connections.GET_WRITTEN).fetchall()
    try:
        Format(number, 0, written).expect_known(CURRENT, f"SQLite database {path!r}", "threadmark-sqlite", writes=True)
    except SchemaError as error:
        return error
    return SchemaError(f"SQLite database {path!r} was switched to another format; try again")


def _expected_format(location: str) -> Program[Format]:
    """Return the format. Raises SchemaError if a table or an index has been changed: a view could answer with anything.

    Indexes that you added are accepted, tables of threadmark-store, and additions of a later release. Triggers are
    refused, because their effects are unknown here.
    """
    rows = yield from execute(connections.SCHEMA)
    there = {name: _normal(sql) for _, name, _, sql in rows}
    expected = _schema_of(MIGRATIONS)
    if there.get(_RECORDS) != expected[_RECORDS]:
        raise SchemaError(f"{location} has no {_RECORDS!r}, which Threadmark made, as it was made: it is not read")
    found = yield from recorded_format()
    expected = _schema_of(MIGRATIONS[: found.number])
    is_later = found.number > CURRENT
    missing = set(expected)
    for kind, name, _, _ in rows:
        sql = there[name]
        if expected.get(name) == sql or (is_later and name in expected and _has_more_columns(expected[name], sql)):
            missing.discard(name)
        elif (kind != "index" or name.lower().startswith("threadmark_")) and not (
            (is_later or name.startswith(_STORE)) and name not in expected and _LATER[kind].fullmatch(sql)
        ):
            raise SchemaError(f"{location} has a {kind} {name!r} that Threadmark did not make: it is not read")
    for name in sorted(missing):
        raise SchemaError(f"{location} has no {name!r}, which Threadmark made: something has removed it")
    return found


_RECORDS = "threadmark_migration"
_STORE = "threadmark_store_"
"""The beginning of the names of threadmark-store's tables, which it creates."""

_ADDED = r"\w+ (?:TEXT|INTEGER|BLOB|REAL)(?: NOT NULL)?(?: DEFAULT (?:NULL|-?\d+|'[^']*'))?"
"""A column that a later release may add to a table. It cannot compute anything."""

_LATER = {
    "table": re.compile(r"CREATE TABLE (?!.*\b(?:AS|GENERATED|CHECK)\b)threadmark_\w+ ?\(.*\)(?: WITHOUT ROWID)?"),
    "index": re.compile(r"CREATE (?:UNIQUE )?INDEX threadmark_\w+ ON threadmark_\w+ .*"),
    "view": re.compile(r"(?!)"),
    "trigger": re.compile(r"(?!)"),
}
"""What a later release may add. This one neither reads nor writes it."""


def _has_more_columns(made: str, found: str) -> bool:
    """Return whether a table is as it was made, with columns added to it. SQLite writes them behind the last column."""
    end = made.find(", PRIMARY KEY (")
    end = made.rindex(" )") if end < 0 else end
    last = re.escape(made[end:].lstrip())
    return re.fullmatch(f"{re.escape(made[:end])} ?(?:, {_ADDED})+ ?{last}", found) is not None


@cache
def _schema_of(made: tuple[Migration, ...]) -> dict[str, str]:
    """Return the statements of all tables and indexes that these migrations create, by name, as SQLite records them.

    A database in memory would answer the same, but takes a third of a new process's first get.
    """
    schema: dict[str, str] = {}
    for statement in (_normal(statement) for step in made for statement in step.statements):
        if statement.startswith("CREATE "):
            schema[statement.partition(" (")[0].partition(" ON ")[0].rpartition(" ")[2]] = statement
        elif statement.startswith("ALTER TABLE "):
            table, _, column = statement.removeprefix("ALTER TABLE ").partition(" ADD COLUMN ")
            made_so_far = schema[table]
            end = made_so_far.find(", PRIMARY KEY (")
            end = made_so_far.rindex(")") if end < 0 else end
            schema[table] = f"{made_so_far[:end]}, {column}{made_so_far[end:]}"
    return schema


def _normal(sql: str) -> str:
    """Return a statement without its line breaks."""
    return " ".join(sql.split())


def _all_of(step: Migration) -> tuple[str, ...]:
    return *step.statements, *step.switch


def migrate(location: str) -> Program[int]:
    """Add the steps that are missing. Run it in a write transaction, which keeps other processes out.

    Returns the previous format, 0 if there were no tables: a new file is written in the newest form at once.
    """
    if (yield from is_current(location, writes=True)):
        return CURRENT
    is_made_before = yield from is_made(location)
    found = (yield from recorded_format()) if is_made_before else Format(0, 0, 0)
    yield from _expect_utf8(location)
    for step in MIGRATIONS[found.number :]:
        for statement in step.statements if found.number else _all_of(step):
            yield from execute(statement)
        least = found[1:] if found.number else (step.least_reader, step.least_writer)
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        yield from execute(connections.RECORD_MIGRATION, (step.number, step.name, moment, *least))
    if not found.number:
        yield from execute(connections.SET_WRITTEN.format(number=MIGRATIONS[-1].least_writer))
        yield from execute(connections.SET_APPLICATION_ID)
    return found.number


def _expect_utf8(location: str) -> Program[None]:
    """Raise SchemaError for a file in another encoding, in which text is not in the order of its code points."""
    ((encoding,),) = yield from execute(connections.GET_ENCODING)
    if encoding != "UTF-8":
        raise SchemaError(f"{location} was made with the encoding {encoding}, and ids need UTF-8: choose another file")


def upgrade(*, dry_run: bool) -> Program[UpgradeReport]:
    """Make the switch of every step, in the transaction that writes."""
    found = yield from recorded_format()
    newest = MIGRATIONS[-1]
    report = UpgradeReport(found.least_writer, max(found.least_writer, newest.least_writer), newest.release)
    if dry_run or (newest.least_reader, newest.least_writer) <= found[1:]:
        return report
    for step in MIGRATIONS:
        if (step.least_reader, step.least_writer) > found[1:]:
            for statement in step.switch:
                yield from execute(statement)
            yield from execute(connections.RECORD_SWITCH, (step.least_reader, step.least_writer, step.number))
    yield from execute(connections.SET_WRITTEN.format(number=newest.least_writer))
    return report
