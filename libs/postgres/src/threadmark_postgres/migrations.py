"""The database's format, as numbered steps. A released step never changes; a change of format is a new step.

Steps are applied with their record in one transaction, under a lock that other processes wait for. A step only adds, so
that it disturbs no process of an earlier release: tables, functions, columns that may be NULL or have a default. Its
switch, which `upgrade` makes, is for the time when there is no such process. With it, functions that every change of an
earlier release calls raise an error: so a running process is refused, and pays nothing for it before.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from threadmark.backends import ConfigError, Format, Operation, Program, SchemaError, UpgradeReport
from threadmark_postgres import indexes
from threadmark_postgres.functions import refusal_of, text_of
from threadmark_postgres.indexes import Index
from threadmark_postgres.schema import in_schema, quoted
from threadmark_postgres.sql import connections, distributing
from threadmark_postgres.sql.editing import replaced
from threadmark_postgres.steps import execute

_MOST_PARTITIONS = 4096
CITUS = "citus"


class Layout(NamedTuple):
    """How new tables are laid out."""

    partitions: int | None = None
    """Into how many parts they are divided by thread."""
    distribute: str | None = None
    """`CITUS`: over the nodes of its cluster, by thread."""


class Found(NamedTuple):
    """The format and the layout of a database."""

    format: Format
    distribute: str | None = None
    """As in `Layout`."""
    started: int | None = None
    """When the server started."""
    functions: tuple[str, ...] = ()
    """Those in the schema of the tables, with the names that they have there."""
    elsewhere: str | None = None
    """A sentence about functions that use the tables of another schema, if these do."""

    @property
    def number(self) -> int:
        """The last step; 0 if there are no tables."""
        return self.format.number

    @property
    def lacks_functions(self) -> bool:
        """Whether `migrate` has to make the functions again: some are missing, or they use other tables."""
        return self.elsewhere is not None or not {*_functions(self.format)} <= {*self.functions}


class Table(NamedTuple):
    """A table whose keys all start with thread_id, so that it can be partitioned by it."""

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
    everywhere: tuple[str, ...] = ()
    """Tables of the statements of which every node of a cluster has a copy."""
    indexes: tuple[Index, ...] = ()
    """Those of tables of earlier steps. In a database in use, `setup()` builds them after the step."""
    switch: tuple[str, ...] = ()
    """Statements for the time when no process of an earlier release is left."""
    retired: tuple[str, ...] = ()
    """Functions of earlier steps that raise an error from the switch on."""
    least_reader: int = 1
    """The least format that a process must know to read the rows of the new form."""
    least_writer: int = 1
    """The same to write. It is the format in which processes write from the switch on."""
    release: str = "0.1.0"
    """The first version of Threadmark that has this step."""


# Ids, ranks and names are compared as code points in a database of any language.
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
            # A segment that is worth compressing is compressed already.
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
            # Calls of functions that have a type as their result are faster than those with OUT parameters.
            """
            CREATE TYPE tm.added_1 AS (
                epoch bigint,
                outcome text,
                renewal bigint,
                expires_at bigint,
                entered bigint,
                entered_after bigint,
                pack_left_out boolean,
                replaced boolean,
                old_idx bigint[],
                old_values bytea[]
            )
            """,
        ),
        (
            "gate_1",
            "lock_1",
            "lock_lease_1",
            "set_lease_1",
            "renew_lease_1",
            "find_1",
            "segments_1",
            "thread_1",
            "position_1",
            "copied_1",
            "mark_1",
            "summary_1",
            "has_checkpoint_1",
            "is_outdated_1",
            "is_behind_1",
            "enter_1",
            "record_1",
            "begin_1",
            "refusal_1",
            "renewal_1",
            "add_one_1",
            "unset_1",
            "add_1",
            "remove_1",
            "forget_1",
            "drop_1",
        ),
        ("replica",),
    ),
)

CURRENT = MIGRATIONS[-1].number

GATES = ("gate_1", "refusal_1", "begin_1", "enter_1")
"""Functions of format 1. Each change calls one of them after its first lock on a table (tests/releases)."""

_MIGRATION_TABLE = """
CREATE TABLE tm.migration (
    number integer PRIMARY KEY,
    name text NOT NULL,
    applied_at timestamptz NOT NULL,
    distribute text,
    least_reader integer NOT NULL,
    least_writer integer NOT NULL
)
"""


def ddl(
    schema: str | None = None, *, partitions: int | None = None, distribute: str | None = None, since: int = 0
) -> str:
    """Return the SQL script that sets up a database, if the saver's role may not create tables.

    By default the script is for an empty database. With `since` it updates a database of that format to the current
    one, and processes of the earlier release may go on; the saver's error names the format that it found. It also makes
    the functions again, in case they are missing or their schema was renamed. Grant the saver's role USAGE on the
    schema, SELECT, INSERT, UPDATE and DELETE on its tables, and EXECUTE on its functions, which every role has unless
    it was revoked.
    """
    if since not in range(CURRENT + 1):
        raise ConfigError(f"since must be a format from 0 (no tables yet) to {CURRENT}, not {since!r}")
    layout = checked_layout(partitions, distribute)
    statements = []
    if since == 0:
        statements += [f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}"] if schema is not None else []
        statements += _first(layout, schema)
    else:
        statements += _statements(_again(Format(since, since, since)), layout, schema)
    for step in MIGRATIONS[since:]:
        least = (
            (str(step.least_reader), str(step.least_writer))
            if since == 0
            else (connections.PRESENT_READER, connections.PRESENT_WRITER)
        )
        statements += _statements(step, layout, schema)
        statements += (*_plain_indexes(step), *_switched(step)) if since == 0 else ()
        values = step.number, f"'{step.name}'", f"'{distribute}'" if distribute else "NULL", *least
        placed = [(f"${place}", str(value)) for place, value in enumerate(values, 1)]
        statements.append(replaced(connections.RECORD_MIGRATION, *placed))
    later = [index.statement(concurrently=True) for index in _indexes() if since]
    whole = ("BEGIN", *statements, "COMMIT", *later)
    script = ";\n\n".join(_dedented(in_schema(statement, schema)) for statement in whole)
    return f"{script};\n"


def ddl_call(schema: str | None, layout: Layout, since: int) -> str:
    """Return the call of `ddl` that an error names: its script does to a database what `migrate` would do."""
    arguments = [repr(schema)] if schema is not None else []
    arguments += [f"{name}={value!r}" for name, value in layout._asdict().items() if value is not None]
    arguments += [f"since={since}"] if since else []
    return f"threadmark_postgres.ddl({', '.join(arguments)})"


def format_of(schema: str | None, database: str, *, writes: bool, repairs: bool = False) -> Program[Found]:
    """Return the database's format. Raises SchemaError if this release must not read it, or `writes` and must not.

    Unless the caller `repairs` them, functions that use the tables of another schema are an error, too.
    """
    found = yield from _recorded(schema, database)
    found.format.expect_known(CURRENT, database, "threadmark-postgres", writes=writes)
    if found.elsewhere is not None and not repairs:
        raise SchemaError(f"{database}: {found.elsewhere}")
    return found


def migrate(schema: str | None, layout: Layout, database: str) -> Program[Found]:
    """Add the steps that are missing, and make the functions again if they need it. Run it in a write transaction.

    Returns the previous format and how the tables are distributed; new tables are distributed like existing ones, and
    a new database is written in the newest format at once.
    """
    yield from execute(connections.LOCK_SETUP)
    found = yield from format_of(schema, database, writes=True, repairs=True)
    if found.number == 0:
        yield from _begin(layout, schema)
    else:
        layout = layout._replace(distribute=found.distribute)
        yield from execute(connections.SHORT_WAIT)
    if found.lacks_functions:
        yield from _execute_all(_statements(_again(found.format), layout, schema), schema)
    for step in MIGRATIONS[found.number :]:
        switched = () if found.number else (*_plain_indexes(step), *_switched(step))
        yield from _execute_all((*_statements(step, layout, schema), *switched), schema)
        least = found.format[1:] if found.number else (step.least_reader, step.least_writer)
        record = in_schema(connections.RECORD_MIGRATION, schema)
        yield from execute(record, (step.number, step.name, layout.distribute, *least))
    return found._replace(distribute=layout.distribute)


def build_indexes(schema: str | None) -> Operation[None]:
    """Build indexes of the steps that are missing, while others write."""
    return indexes.build_missing(schema, _indexes())


def missing_indexes(schema: str | None) -> Program[tuple[str, ...]]:
    """Return the names of those that `build_indexes` would build, or that others are building."""
    return indexes.missing(schema, _indexes())


def upgrade(schema: str | None, *, dry_run: bool) -> Program[UpgradeReport]:
    """Make the switch of every step, when all transactions that write have ended, and before the next one begins."""
    if not dry_run:
        yield from execute(connections.LOCK_SETUP)
    found = (yield from _recorded(schema, "this database")).format
    newest = MIGRATIONS[-1]
    report = UpgradeReport(found.least_writer, max(found.least_writer, newest.least_writer), newest.release)
    if dry_run or (newest.least_reader, newest.least_writer) <= found[1:]:
        return report
    yield from execute(connections.SHORT_WAIT)
    yield from execute(in_schema(connections.LOCK_WRITING, schema))
    for step in MIGRATIONS:
        if (step.least_reader, step.least_writer) > found[1:]:
            yield from _execute_all(_switched(step), schema)
            record = in_schema(connections.RECORD_SWITCH, schema)
            yield from execute(record, (step.number, step.least_reader, step.least_writer))
    return report


def checked_layout(partitions: int | None, distribute: str | None) -> Layout:
    """Return the layout of new tables. Raises ConfigError for one that cannot be made."""
    if partitions is not None and not (type(partitions) is int and 1 <= partitions <= _MOST_PARTITIONS):
        raise ConfigError(f"partitions must be None or a number from 1 to {_MOST_PARTITIONS}, not {partitions!r}")
    if distribute not in (None, CITUS):
        raise ConfigError(f"distribute must be None or {CITUS!r}, not {distribute!r}")
    if partitions is not None and distribute is not None:
        raise ConfigError("give partitions or distribute, not both: Citus divides the tables itself")
    return Layout(partitions, distribute)


def _begin(layout: Layout, schema: str | None) -> Program[None]:
    if layout.distribute is not None and not (yield from execute(connections.HAS_CITUS)):
        raise ConfigError("this database has no Citus: execute CREATE EXTENSION citus there and on every other node")
    if schema is not None:
        ((exists,),) = yield from execute(connections.HAS_SCHEMA, (schema,))
        if not exists:
            yield from execute(f"CREATE SCHEMA {quoted(schema)}")
    yield from _execute_all(_first(layout, schema), schema)


def _execute_all(statements: Iterable[str], schema: str | None) -> Program[None]:
    for statement in statements:
        yield from execute(in_schema(statement, schema))


def _recorded(schema: str | None, database: str) -> Program[Found]:
    ((started, place, is_ours, functions, named),) = yield from execute(connections.FIND_TABLES, (schema,))
    if place is None:
        return Found(Format(0, 0, 0), started=started)
    if not is_ours:
        raise SchemaError(
            f"{database}: threadmark_migration in the schema {quoted(place)} belongs to another application: choose "
            "another schema"
        )
    ((*columns, distribute),) = yield from execute(in_schema(connections.RECORDED_FORMAT, schema))
    names = tuple(name.removeprefix("threadmark_") for name in functions)
    elsewhere = None if named is None else _elsewhere(place, named, Layout(distribute=distribute), columns[0])
    return Found(Format(*columns), distribute, started, names, elsewhere)


def _elsewhere(schema: str, named: str, layout: Layout, number: int) -> str:
    other = named.removesuffix("threadmark_position").removesuffix(".") or "the connection's search path"
    return (
        f"the functions of Threadmark in the schema {quoted(schema)} use the tables of {other}. The schema was "
        "renamed, or the tables were made under another option `schema`: run setup() of a saver that may make "
        f"functions, or the script of {ddl_call(schema, layout, number)}"
    )


def _functions(present: Format) -> list[str]:
    """Return the functions of a format that processes may call: those of its steps that no switch has retired."""
    steps = MIGRATIONS[: present.number]
    switched = [step for step in steps if (step.least_reader, step.least_writer) <= present[1:]]
    retired = {name for step in switched for name in step.retired}
    return [name for step in steps for name in step.functions if name not in retired]


def _again(present: Format) -> Migration:
    """Return the step that makes these functions once more."""
    return Migration(present.number, "functions", functions=tuple(_functions(present)))


def _indexes() -> list[Index]:
    return [index for step in MIGRATIONS for index in step.indexes]


def _plain_indexes(step: Migration) -> tuple[str, ...]:
    """Return the statements for a new database."""
    return tuple(index.statement(concurrently=False) for index in step.indexes)


def _switched(step: Migration) -> tuple[str, ...]:
    return *step.switch, *map(refusal_of, step.retired)


def _first(layout: Layout, schema: str | None) -> Iterator[str]:
    """Create the table that records the steps."""
    if layout.distribute is not None:
        yield distributing.ONE_AFTER_ANOTHER
    yield _MIGRATION_TABLE
    if layout.distribute is not None:
        yield distributing.everywhere("migration", schema)


def _statements(migration: Migration, layout: Layout, schema: str | None) -> Iterator[str]:
    for table in migration.tables:
        free = f"WITH (fillfactor = {table.free})"
        if layout.partitions is None:
            yield f"CREATE TABLE tm.{table.name} ({table.columns}) {free}"
            continue
        yield f"CREATE TABLE tm.{table.name} ({table.columns}) PARTITION BY HASH (thread_id)"
        for part in range(layout.partitions):
            yield (
                f"CREATE TABLE tm.{table.name}_{part} PARTITION OF tm.{table.name} "
                f"FOR VALUES WITH (MODULUS {layout.partitions}, REMAINDER {part}) {free}"
            )
    yield from migration.statements
    yield from map(text_of, migration.functions)
    if layout.distribute is not None:
        yield distributing.ONE_AFTER_ANOTHER
        for table in migration.tables:
            yield distributing.by_thread(table.name, schema)
        for name in migration.everywhere:
            yield distributing.everywhere(name, schema)
        for name in migration.functions:
            yield from distributing.function(name, schema)


def _dedented(statement: str) -> str:
    return "\n".join(line.rstrip() for line in statement.strip().splitlines())
