"""The database's format, in numbered steps. A released step is never changed, a new one is added.

Steps are applied with their record in one transaction, under a lock that other processes wait for. A step only adds
what the release before does not mind, so that it may be applied while that release runs. The third, the fourth and the
sixth are the exceptions: a process of an earlier release can read then, and can add no checkpoint and begin no thread.
"""

from collections.abc import Iterator
from typing import NamedTuple

from threadmark.errors import ConfigError, SchemaError
from threadmark.program import Program
from threadmark_postgres.schema import in_schema, quoted
from threadmark_postgres.sql import connections
from threadmark_postgres.steps import execute

_MOST_PARTITIONS = 4096


class Table(NamedTuple):
    """A table of which every key starts with thread_id, so that it can be partitioned by it."""

    name: str
    columns: str
    free: int = 100
    """The fill factor of a page. The rest is for new versions of its rows."""


class Migration(NamedTuple):
    """One step: tables, then statements."""

    number: int
    name: str
    tables: tuple[Table, ...] = ()
    statements: tuple[str, ...] = ()


# Ids, ranks and names are compared as code points, whatever the database's language is.
MIGRATIONS = (
    Migration(
        1,
        "threads, segments, checkpoints, heads, writes",
        (
            Table(
                "thread",
                """
                thread_id text COLLATE "C" PRIMARY KEY,
                epoch bigint NOT NULL,
                live boolean NOT NULL,
                deleted_up_to text COLLATE "C",
                created_at bigint NOT NULL,
                expires_at bigint,
                metadata text
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
        ),
        (
            # A segment is compressed already where that pays.
            "ALTER TABLE tm.segment ALTER COLUMN data SET STORAGE EXTERNAL",
            """
            CREATE UNIQUE INDEX threadmark_checkpoint_id
            ON tm.checkpoint (thread_id, ns, id)
            WHERE id IS NOT NULL
            """,
            "CREATE INDEX threadmark_thread_buried ON tm.thread (epoch) WHERE NOT live",
        ),
    ),
    Migration(
        2,
        "runs",
        statements=("CREATE INDEX threadmark_checkpoint_run ON tm.checkpoint (run) WHERE run IS NOT NULL",),
    ),
    Migration(
        3,
        "counts",
        statements=(
            "ALTER TABLE tm.head ADD COLUMN checkpoints bigint NOT NULL DEFAULT 0",
            """
            INSERT INTO tm.head AS h (thread_id, ns, rank, needs, checkpoints)
            SELECT thread_id, ns, max(rank), '{}', count(*)
            FROM tm.checkpoint
            GROUP BY thread_id, ns
            ON CONFLICT (thread_id, ns) DO UPDATE
            SET needs = CASE WHEN h.rank = excluded.rank THEN h.needs ELSE excluded.needs END,
                rank = excluded.rank,
                checkpoints = excluded.checkpoints
            """,
            # A process that still runs an earlier release would not count: its puts are refused from here on.
            "ALTER TABLE tm.head ALTER COLUMN checkpoints DROP DEFAULT",
        ),
    ),
    Migration(
        4,
        "threads and leases",
        statements=(
            """
            ALTER TABLE tm.thread
                ALTER COLUMN metadata TYPE text COLLATE "C",
                ADD COLUMN owner text COLLATE "C",
                ADD COLUMN title text COLLATE "C",
                ADD COLUMN folded_title text COLLATE "C",
                ADD COLUMN token bigint NOT NULL DEFAULT 0,
                ADD COLUMN lease_ends bigint,
                ADD COLUMN lease_ttl bigint,
                ADD COLUMN holder text COLLATE "C",
                ADD COLUMN began text COLLATE "C",
                ADD COLUMN checksum bytea
            """,
            """
            ALTER TABLE tm.head
                ADD COLUMN updated_at bigint NOT NULL DEFAULT 0,
                ADD COLUMN owner text COLLATE "C"
            """,
            """
            UPDATE tm.head AS h
            SET updated_at = c.updated_at
            FROM (
                SELECT thread_id, ns, max(created_at) AS updated_at
                FROM tm.checkpoint
                GROUP BY thread_id, ns
            ) AS c
            WHERE c.thread_id = h.thread_id AND c.ns = h.ns
            """,
            """
            INSERT INTO tm.head (thread_id, ns, rank, needs, checkpoints, updated_at)
            SELECT thread_id, '', '', '{}', 0, created_at
            FROM tm.thread
            WHERE live
            ON CONFLICT DO NOTHING
            """,
            # A process that still runs an earlier release knows neither heads of threads nor leases: what would begin
            # a thread or move a head is refused from here on.
            "ALTER TABLE tm.thread ALTER COLUMN token DROP DEFAULT",
            "ALTER TABLE tm.head ALTER COLUMN updated_at DROP DEFAULT",
            "CREATE INDEX threadmark_head_updated ON tm.head (updated_at, thread_id) WHERE ns = ''",
            """
            CREATE INDEX threadmark_head_owner
            ON tm.head (owner, updated_at, thread_id)
            WHERE ns = '' AND owner IS NOT NULL
            """,
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
            "CREATE INDEX threadmark_write_status ON tm.write (thread_id) WHERE ns = '' AND idx IN (-1, -3)",
            "CREATE INDEX threadmark_thread_expiry ON tm.thread (expires_at) WHERE expires_at IS NOT NULL",
            "CREATE INDEX threadmark_thread_lease ON tm.thread (lease_ends) WHERE lease_ends IS NOT NULL",
        ),
    ),
    Migration(
        5,
        "replication",
        (
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
            "CREATE INDEX threadmark_outbox_position ON tm.outbox (position, thread_id)",
            """
            CREATE TABLE tm.replica (
                one boolean PRIMARY KEY DEFAULT true CHECK (one),
                term bigint NOT NULL,
                body text COLLATE "C" NOT NULL
            )
            """,
        ),
    ),
    Migration(
        6,
        "heads updated in place",
        statements=(
            "DROP INDEX tm.head_updated",
            "DROP INDEX tm.head_owner",
            "ALTER TABLE tm.head ADD COLUMN minute bigint NOT NULL DEFAULT 0",
            "UPDATE tm.head SET minute = updated_at / 60000000",
            # A process that still runs an earlier release would leave the minute as it was: where it would move a head,
            # it is refused from here on.
            "ALTER TABLE tm.head ALTER COLUMN minute DROP DEFAULT",
            "CREATE INDEX threadmark_head_minute ON tm.head (minute, thread_id) WHERE ns = ''",
            """
            CREATE INDEX threadmark_head_owner_minute
            ON tm.head (owner, minute, thread_id)
            WHERE ns = '' AND owner IS NOT NULL
            """,
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
    the saver's error names the format that it found. The saver's role then needs USAGE on the schema, and SELECT,
    INSERT, UPDATE and DELETE on its tables.
    """
    if since not in range(CURRENT + 1):
        raise ConfigError(f"since must be a format from 0 (no tables yet) to {CURRENT}, not {since!r}")
    statements = []
    if since == 0:
        statements += [f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}"] if schema is not None else []
        statements.append(_MIGRATION_TABLE)
    for migration in MIGRATIONS[since:]:
        statements += _statements(migration, checked_partitions(partitions))
        record = connections.RECORD_MIGRATION.replace("$1", str(migration.number))
        statements.append(record.replace("$2", f"'{migration.name}'"))
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


def _dedented(statement: str) -> str:
    return "\n".join(line.rstrip() for line in statement.strip().splitlines())
