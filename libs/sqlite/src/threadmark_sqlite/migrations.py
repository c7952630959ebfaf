"""The database's format, as a sequence of numbered steps. A released step is never changed; a new one is added.

Each step and its record are one transaction, and the file's `user_version` is the number of the last one, so that
a database tells its format even to tools that know nothing of its tables.
"""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from textwrap import dedent
from typing import NamedTuple

from threadmark.backends import ConfigError, Program, SchemaError
from threadmark_sqlite.sql import connections
from threadmark_sqlite.steps import execute


class Migration(NamedTuple):
    """One step."""

    number: int
    name: str
    statements: tuple[str, ...]


MIGRATIONS = (
    Migration(
        1,
        "tables of the first release",
        (
            """
            CREATE TABLE threadmark_migration (
                number INTEGER PRIMARY KEY,
                name TEXT NOT NULL,
                applied_at TEXT NOT NULL
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
    of that format to the current one.
    """
    if since not in range(CURRENT + 1):
        raise ConfigError(f"since must be a format from 0 (no tables yet) to {CURRENT}, not {since!r}")
    # Neither works within a transaction, nor does the first once there is a table.
    before = [connections.INCREMENTAL_VACUUM, connections.WRITE_AHEAD_LOG] if since == 0 else []
    statements = [connections.BEGIN_WRITE]
    for migration in MIGRATIONS[since:]:
        statements += [
            *migration.statements,
            connections.SCRIPTED_RECORD.format(number=migration.number, name=migration.name),
        ]
    statements += [connections.SET_FORMAT.format(number=CURRENT), connections.SET_APPLICATION_ID, connections.COMMIT]
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


def is_current(location: str) -> Program[bool]:
    """Return whether the format is current. Raises SchemaError if the file is another application's or newer."""
    made = yield from is_made(location)
    ((number,),) = yield from execute(connections.GET_FORMAT)
    if made and number > CURRENT:
        raise SchemaError(
            f"{location} has format {number}, this release knows formats up to {CURRENT}: upgrade threadmark-sqlite"
        )
    if not made or number != CURRENT:
        return False
    yield from _expect_own_schema(location)
    return True


def _expect_own_schema(location: str) -> Program[None]:
    """Raise SchemaError if a table or an index has been changed: a view, for example, could answer with anything.

    Indexes that you added are accepted. Triggers are refused, because their effects are unknown here.
    """
    expected = _schema_of(MIGRATIONS)
    missing = set(expected)
    for kind, name, _, sql in (yield from execute(connections.SCHEMA)):
        if expected.get(name) == _normal(sql):
            missing.discard(name)
        elif kind != "index" or name.lower().startswith("threadmark_"):
            raise SchemaError(f"{location} has a {kind} {name!r} that Threadmark did not make: it is not read")
    for name in sorted(missing):
        raise SchemaError(f"{location} has no {name!r}, which Threadmark made: something has removed it")


@cache
def _schema_of(made: tuple[Migration, ...]) -> dict[str, str]:
    """Return the statements of all tables and indexes that these migrations create, by name."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in (statement for migration in made for statement in migration.statements):
            connection.execute(statement)
        return {name: _normal(sql) for _, name, _, sql in connection.execute(connections.SCHEMA)}


def _normal(sql: str) -> str:
    """Return a statement without its line breaks."""
    return " ".join(sql.split())


def migrate(location: str) -> Program[int]:
    """Bring the database to the current format. Run it in a write transaction, which keeps other processes out.

    Returns the previous format, 0 if there were no tables.
    """
    if (yield from is_current(location)):
        return CURRENT
    ((exists,),) = yield from execute(connections.HAS_MIGRATIONS)
    ((last,),) = (yield from execute(connections.LAST_MIGRATION)) if exists else ((0,),)
    for migration in MIGRATIONS:
        if migration.number <= last:
            continue
        for statement in migration.statements:
            yield from execute(statement)
        yield from execute(
            connections.RECORD_MIGRATION,
            (migration.number, migration.name, datetime.now(UTC).isoformat(timespec="seconds")),
        )
    yield from execute(connections.SET_FORMAT.format(number=CURRENT))
    yield from execute(connections.SET_APPLICATION_ID)
    return int(last)
