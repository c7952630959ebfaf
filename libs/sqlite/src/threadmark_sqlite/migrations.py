"""The database's format, as a sequence of numbered steps. A released step is never changed; a new one is added.

Each step and its record are one transaction, and the file's `user_version` is the number of the last one, so that
a database tells its format even to tools that know nothing of its tables.
"""

from datetime import UTC, datetime
from textwrap import dedent
from typing import NamedTuple

from threadmark.errors import ConfigError, SchemaError
from threadmark.program import Program
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
        "threads, segments, checkpoints, writes",
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
                number INTEGER PRIMARY KEY,
                thread_id TEXT NOT NULL UNIQUE,
                epoch INTEGER NOT NULL,
                live INTEGER NOT NULL,
                deleted_up_to TEXT,
                created_at INTEGER NOT NULL,
                expires_at INTEGER,
                metadata TEXT
            )
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
        ),
    ),
    Migration(
        2,
        "heads, records of batches",
        (
            """
            CREATE TABLE threadmark_head (
                thread_id TEXT NOT NULL,
                ns TEXT NOT NULL,
                newest TEXT NOT NULL,
                checkpoints INTEGER NOT NULL,
                PRIMARY KEY (thread_id, ns)
            )
            WITHOUT ROWID
            """,
            # The columns of threadmark_write, in a tree of its own: a damaged page hides neighbours.
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
            INSERT INTO threadmark_head (thread_id, ns, newest, checkpoints)
            SELECT t.thread_id, c.ns, max(c.rank), count(*)
            FROM threadmark_thread AS t
            JOIN threadmark_checkpoint AS c ON c.thread = t.number
            GROUP BY t.thread_id, c.ns
            """,
        ),
    ),
    Migration(
        3,
        "threads that are listed, owned and leased",
        (
            "ALTER TABLE threadmark_thread ADD COLUMN owner TEXT",
            "ALTER TABLE threadmark_thread ADD COLUMN title TEXT",
            "ALTER TABLE threadmark_thread ADD COLUMN folded_title TEXT",
            "ALTER TABLE threadmark_thread ADD COLUMN checksum BLOB",
            "ALTER TABLE threadmark_thread ADD COLUMN token INTEGER NOT NULL DEFAULT 0",
            "ALTER TABLE threadmark_thread ADD COLUMN lease_ends INTEGER",
            "ALTER TABLE threadmark_thread ADD COLUMN lease_ttl INTEGER",
            "ALTER TABLE threadmark_thread ADD COLUMN holder TEXT",
            "ALTER TABLE threadmark_thread ADD COLUMN began TEXT",
            "CREATE INDEX threadmark_thread_created ON threadmark_thread (created_at, thread_id) WHERE live = 1",
            "CREATE INDEX threadmark_thread_owner ON threadmark_thread (owner, thread_id) WHERE owner IS NOT NULL",
            """
            CREATE INDEX threadmark_thread_owner_created
            ON threadmark_thread (owner, created_at, thread_id)
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
            # A new table, because `updated_at` has no default: a process of an earlier release that is still running
            # knows nothing of leases, and must not be able to go on putting.
            """
            CREATE TABLE threadmark_listed_head (
                thread_id TEXT NOT NULL,
                ns TEXT NOT NULL,
                newest TEXT NOT NULL,
                checkpoints INTEGER NOT NULL,
                updated_at INTEGER NOT NULL,
                owner TEXT,
                PRIMARY KEY (thread_id, ns)
            )
            WITHOUT ROWID
            """,
            """
            INSERT INTO threadmark_listed_head (thread_id, ns, newest, checkpoints, updated_at)
            SELECT h.thread_id, h.ns, h.newest, h.checkpoints, coalesce(
                (
                    SELECT max(c.created_at)
                    FROM threadmark_thread AS t
                    CROSS JOIN threadmark_checkpoint AS c ON c.thread = t.number
                    WHERE t.thread_id = h.thread_id AND c.ns = h.ns
                ),
                0
            )
            FROM threadmark_head AS h
            """,
            """
            INSERT OR IGNORE INTO threadmark_listed_head (thread_id, ns, newest, checkpoints, updated_at)
            SELECT thread_id, '', '', 0, created_at
            FROM threadmark_thread
            WHERE live = 1
            """,
            "DROP TABLE threadmark_head",
            "ALTER TABLE threadmark_listed_head RENAME TO threadmark_head",
            # Not `ns = ''`: where a statement compares `ns` with a parameter, SQLite would look at each value, whether
            # the index has it, and prepare the statement anew for that. Likewise IN below, and not `idx = -1`.
            "CREATE INDEX threadmark_head_updated ON threadmark_head (updated_at, thread_id) WHERE ns IS ''",
            """
            CREATE INDEX threadmark_head_owner
            ON threadmark_head (owner, updated_at, thread_id)
            WHERE owner IS NOT NULL
            """,
            # What a thread's status is derived from; other writes are not in it.
            """
            CREATE INDEX threadmark_write_status
            ON threadmark_write (thread, ns)
            WHERE idx IN (-1, -3)
            """,
        ),
    ),
    Migration(
        4,
        "replication",
        (
            """
            CREATE TABLE threadmark_replica (
                number INTEGER PRIMARY KEY CHECK (number = 1),
                term INTEGER NOT NULL,
                body TEXT NOT NULL
            )
            """,
            "INSERT INTO threadmark_replica (number, term, body) VALUES (1, 0, '')",
            "ALTER TABLE threadmark_thread ADD COLUMN position INTEGER NOT NULL DEFAULT 0",
            "ALTER TABLE threadmark_thread ADD COLUMN copied_position INTEGER",
            "ALTER TABLE threadmark_thread ADD COLUMN copied_epoch INTEGER",
            # By id, so that a process of an earlier release, which forgets deleted threads, leaves no row of nobody.
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
    Migration(
        5,
        "listings by the minute",
        (
            # Every statement of an earlier release names the old column: a process of one that is still running knows
            # nothing of what follows, and must neither read nor write.
            "ALTER TABLE threadmark_thread RENAME COLUMN number TO thread",
            # Without `owner`, without the indexes that each put would have to write, and with `newest_id`. That is not
            # known here: such ids are bytes, which SQLite cannot make of text.
            """
            CREATE TABLE threadmark_plain_head (
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
            INSERT INTO threadmark_plain_head (thread_id, ns, newest, checkpoints, updated_at)
            SELECT thread_id, ns, newest, checkpoints, updated_at
            FROM threadmark_head
            """,
            "DROP TABLE threadmark_head",
            "ALTER TABLE threadmark_plain_head RENAME TO threadmark_head",
            "ALTER TABLE threadmark_thread ADD COLUMN minute INTEGER",
            """
            UPDATE threadmark_thread
            SET minute = (
                SELECT h.updated_at / 60000000
                FROM threadmark_head AS h
                WHERE h.thread_id = threadmark_thread.thread_id AND h.ns = ''
            )
            WHERE live = 1
            """,
            "CREATE INDEX threadmark_thread_minute ON threadmark_thread (minute, thread_id) WHERE live = 1",
            """
            CREATE INDEX threadmark_thread_owner_minute
            ON threadmark_thread (owner, minute, thread_id)
            WHERE owner IS NOT NULL
            """,
        ),
    ),
)

CURRENT = MIGRATIONS[-1].number


def ddl(*, since: int = 0) -> str:
    """A script that sets up a file, for whoever makes it before a saver may write there.

    As it is, it is for an empty file, such as one that does not exist yet. With `since` it is for one of that format,
    and brings it to the current one.
    """
    if since not in range(CURRENT + 1):
        raise ConfigError(f"since must be a format from 0 (no tables yet) to {CURRENT}, not {since!r}")
    # Neither can be said within a transaction, nor the first once there is a table.
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
    """Return whether the tables exist, in any format. Raises SchemaError if the file is not Threadmark's."""
    ((application_id,),) = yield from execute(connections.GET_APPLICATION_ID)
    if application_id not in (0, connections.APPLICATION_ID):
        raise SchemaError(
            f"{location} belongs to another application (application_id {application_id:#x}): choose another file"
        )
    return bool(application_id == connections.APPLICATION_ID)


def is_current(location: str) -> Program[bool]:
    """Return whether the format is current. Raises SchemaError if the file is not ours or of a later release."""
    made = yield from is_made(location)
    ((number,),) = yield from execute(connections.GET_FORMAT)
    if made and number > CURRENT:
        raise SchemaError(
            f"{location} has format {number}, this release knows formats up to {CURRENT}: upgrade threadmark-sqlite"
        )
    return bool(made and number == CURRENT)


def migrate(location: str) -> Program[int]:
    """Bring the database to the current format. Run it in a write transaction, which keeps other processes out.

    Returns the format that it had before, 0 if it had no tables.
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
