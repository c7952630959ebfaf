"""The database's format, in numbered steps. A released step is never changed, a new one is added.

Steps are applied with their record in one transaction, under a lock that other processes wait for.
"""

from collections.abc import Iterator
from typing import NamedTuple

from threadmark.errors import ConfigError, SchemaError
from threadmark.program import Program
from threadmark_postgres.functions import text_of
from threadmark_postgres.schema import in_schema, quoted
from threadmark_postgres.sql import connections
from threadmark_postgres.sql.editing import replaced
from threadmark_postgres.steps import execute

_MOST_PARTITIONS = 4096


class Table(NamedTuple):
    """A table of which every key starts with thread_id, so that it can be partitioned by it."""

    name: str
    columns: str
    free: int = 100
    """The fill factor of a page. The rest is for new versions of its rows."""


class Migration(NamedTuple):
    """One step: tables, then statements, then functions."""

    number: int
    name: str
    tables: tuple[Table, ...] = ()
    statements: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    """Those that are made, by their names, which end with the number of the step."""


# Ids, ranks and names are compared as code points, whatever the database's language is.
MIGRATIONS = (
    Migration(
        1,
        "tables of the first release",
        (
            Table(
                "thread",
                """
                thread_id text COLLATE "C" PRIMARY KEY,
                epoch bigint NOT NULL,
                live boolean NOT NULL,
                deleted_up_to text COLLATE "C",
                removed_up_to text COLLATE "C",
                created_at bigint NOT NULL,
                owner text COLLATE "C",
                title text COLLATE "C",
                folded_title text COLLATE "C",
                metadata text COLLATE "C",
                expires_at bigint,
                checksum bytea,
                token bigint NOT NULL,
                lease_ends bigint,
                lease_ttl bigint,
                holder text COLLATE "C",
                began text COLLATE "C"
                """,
                80,
            ),
            Table(
                "segment",
                """
                thread_id text COLLATE "C" NOT NULL,
                key bytea NOT NULL,
                data bytea NOT NULL,
                PRIMARY KEY (thread_id, key)
                """,
            ),
            Table(
                "checkpoint",
                """
                thread_id text COLLATE "C" NOT NULL,
                ns text COLLATE "C" NOT NULL,
                rank text COLLATE "C" NOT NULL,
                id text COLLATE "C",
                parent text COLLATE "C",
                created_at bigint NOT NULL,
                run bigint,
                metadata text COLLATE "C" NOT NULL,
                header bytea NOT NULL,
                checksum bytea NOT NULL,
                PRIMARY KEY (thread_id, ns, rank)
                """,
            ),
            Table(
                "head",
                """
                thread_id text COLLATE "C" NOT NULL,
                ns text COLLATE "C" NOT NULL,
                rank text COLLATE "C" NOT NULL,
                needs bytea[] NOT NULL,
                checkpoints bigint NOT NULL,
                updated_at bigint NOT NULL,
                minute bigint NOT NULL,
                owner text COLLATE "C",
                PRIMARY KEY (thread_id, ns)
                """,
                50,
            ),
            Table(
                "write",
                """
                thread_id text COLLATE "C" NOT NULL,
                ns text COLLATE "C" NOT NULL,
                checkpoint_id text COLLATE "C" NOT NULL,
                task_id bytea NOT NULL,
                idx integer NOT NULL,
                task_path text COLLATE "C" NOT NULL,
                channel text COLLATE "C" NOT NULL,
                value bytea NOT NULL,
                checksum bytea NOT NULL,
                PRIMARY KEY (thread_id, ns, checkpoint_id, task_id, idx)
                """,
            ),
            Table(
                "outbox",
                """
                thread_id text COLLATE "C" NOT NULL,
                position bigint NOT NULL,
                body bytea NOT NULL,
                PRIMARY KEY (thread_id, position)
                """,
            ),
            Table(
                "position",
                """
                thread_id text COLLATE "C" PRIMARY KEY,
                position bigint NOT NULL,
                previous bigint NOT NULL
                """,
                50,
            ),
            Table(
                "copied",
                """
                thread_id text COLLATE "C" PRIMARY KEY,
                position bigint NOT NULL,
                epoch bigint NOT NULL
                """,
                50,
            ),
        ),
        (
            # A segment is compressed already where that pays.
            "ALTER TABLE tm.segment ALTER COLUMN data SET STORAGE EXTERNAL",
            """
            CREATE UNIQUE INDEX threadmark_checkpoint_id
            ON tm.checkpoint (thread_id, ns, id)
            WHERE id IS NOT NULL
            """,
            "CREATE INDEX threadmark_checkpoint_run ON tm.checkpoint (run) WHERE run IS NOT NULL",
            "CREATE INDEX threadmark_thread_buried ON tm.thread (epoch) WHERE NOT live",
            "CREATE INDEX threadmark_thread_created ON tm.thread (created_at, thread_id) WHERE live",
            """
            CREATE INDEX threadmark_thread_owner
            ON tm.thread (owner, created_at, thread_id)
            WHERE live AND owner IS NOT NULL
            """,
            """
            CREATE INDEX threadmark_thread_owner_id
            ON tm.thread (owner, thread_id)
            WHERE live AND owner IS NOT NULL
            """,
            "CREATE INDEX threadmark_thread_expiry ON tm.thread (expires_at) WHERE expires_at IS NOT NULL",
            "CREATE INDEX threadmark_thread_lease ON tm.thread (lease_ends) WHERE lease_ends IS NOT NULL",
            "CREATE INDEX threadmark_head_minute ON tm.head (minute, thread_id) WHERE ns = ''",
            """
            CREATE INDEX threadmark_head_owner_minute
            ON tm.head (owner, minute, thread_id)
            WHERE ns = '' AND owner IS NOT NULL
            """,
            "CREATE INDEX threadmark_write_status ON tm.write (thread_id) WHERE ns = '' AND idx IN (-1, -3)",
            "CREATE INDEX threadmark_outbox_position ON tm.outbox (position, thread_id)",
            """
            CREATE TABLE tm.replica (
                one boolean PRIMARY KEY DEFAULT true CHECK (one),
                term bigint NOT NULL,
                body text COLLATE "C" NOT NULL
            )
            """,
        ),
        (
            "lock_1",
            "lock_lease_1",
            "set_lease_1",
            "renew_lease_1",
            "find_1",
            "has_checkpoint_1",
            "is_outdated_1",
            "is_behind_1",
            "enter_1",
            "record_1",
            "begin_1",
            "refusal_1",
            "renewal_1",
            "judge_1",
            "add_checkpoint_1",
            "add_task_1",
            "unset_1",
            "add_1",
            "remove_1",
            "forget_1",
            "drop_1",
        ),
    ),
)

CURRENT = MIGRATIONS[-1].number

_MIGRATION_TABLE = """
CREATE TABLE tm.migration (
    number integer PRIMARY KEY,
    name text NOT NULL,
    applied_at timestamptz NOT NULL
)
"""


def ddl(schema: str | None = None, *, partitions: int | None = None, since: int = 0) -> str:
    """A script that sets up a database, for whoever may create tables where the saver may not.

    As it is, it is for an empty database. With `since` it is for one of that format, and brings it to the current one;
    the saver's error names the format that it found. The saver's role then needs USAGE on the schema, SELECT, INSERT,
    UPDATE and DELETE on its tables, and EXECUTE on its functions, which everybody has unless it is revoked.
    """
    if since not in range(CURRENT + 1):
        raise ConfigError(f"since must be a format from 0 (no tables yet) to {CURRENT}, not {since!r}")
    statements = []
    if since == 0:
        statements += [f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}"] if schema is not None else []
        statements.append(_MIGRATION_TABLE)
    for migration in MIGRATIONS[since:]:
        statements += _statements(migration, checked_partitions(partitions))
        values = ("$1", str(migration.number)), ("$2", f"'{migration.name}'")
        statements.append(replaced(connections.RECORD_MIGRATION, *values))
    script = ";\n\n".join(_dedented(in_schema(statement, schema)) for statement in ("BEGIN", *statements, "COMMIT"))
    return f"{script};\n"


def format_of(schema: str | None) -> Program[int]:
    """Return the database's format, 0 if there are no tables. Raises SchemaError if it is of a later release."""
    last = yield from _last(schema)
    if last > CURRENT:
        raise SchemaError(
            f"the database has format {last}, this release knows formats up to {CURRENT}: upgrade threadmark-postgres"
        )
    return int(last)


def migrate(schema: str | None, partitions: int | None) -> Program[int]:
    """Bring the database to the current format. Run it in a write transaction.

    Returns the format that it had before, 0 if it had no tables.
    """
    yield from execute(connections.LOCK_SETUP)
    last = yield from format_of(schema)
    if last == 0:
        yield from _begin(schema)
    for migration in MIGRATIONS:
        if migration.number > last:
            for statement in _statements(migration, partitions):
                yield from execute(in_schema(statement, schema))
            record = in_schema(connections.RECORD_MIGRATION, schema)
            yield from execute(record, (migration.number, migration.name))
    return last


def checked_partitions(partitions: int | None) -> int | None:
    """A number of partitions that can be made."""
    if partitions is None or (type(partitions) is int and 1 <= partitions <= _MOST_PARTITIONS):
        return partitions
    raise ConfigError(f"partitions must be None or a number from 1 to {_MOST_PARTITIONS}, not {partitions!r}")


def _begin(schema: str | None) -> Program[None]:
    if schema is not None:
        ((exists,),) = yield from execute(connections.HAS_SCHEMA, (schema,))
        if not exists:
            yield from execute(f"CREATE SCHEMA {quoted(schema)}")
    yield from execute(in_schema(_MIGRATION_TABLE, schema))


def _last(schema: str | None) -> Program[int]:
    ((exists,),) = yield from execute(connections.HAS_MIGRATIONS, (schema,))
    if not exists:
        return 0
    ((last,),) = yield from execute(in_schema(connections.LAST_MIGRATION, schema))
    return int(last)


def _statements(migration: Migration, partitions: int | None) -> Iterator[str]:
    for table in migration.tables:
        free = f"WITH (fillfactor = {table.free})"
        if partitions is None:
            yield f"CREATE TABLE tm.{table.name} ({table.columns}) {free}"
            continue
        yield f"CREATE TABLE tm.{table.name} ({table.columns}) PARTITION BY HASH (thread_id)"
        for part in range(partitions):
            yield (
                f"CREATE TABLE tm.{table.name}_{part} PARTITION OF tm.{table.name} "
                f"FOR VALUES WITH (MODULUS {partitions}, REMAINDER {part}) {free}"
            )
    yield from migration.statements
    yield from map(text_of, migration.functions)


def _dedented(statement: str) -> str:
    return "\n".join(line.rstrip() for line in statement.strip().splitlines())
