"""Writes the databases of the present formats that later releases must go on reading.

    PYTHONPATH=tests python tests/stored/make.py

Run it once for each format, when that is released; the file of an older format is never written again. Until format 1
is released, delete its files and run this when you change the stored form.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from damage import fill
from postgres.cluster import shared
from threadmark import Saver
from threadmark.program import Program, Transaction
from threadmark.store.replica import Copied, Replica, ReplicaStore
from threadmark_postgres import PostgresSaver, ddl
from threadmark_postgres import migrations as postgres_migrations
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite import migrations as sqlite_migrations

FOLDER = Path(__file__).parent
TABLES = ("thread", "segment", "checkpoint", "head", "write", "replica", "outbox", "position", "copied")
ABOUT: dict[str, Any] = {
    "title": "Straße",
    "metadata": {"k": "v"},
    "owner": "ada",
    "expires_at": datetime(2096, 1, 1, tzinfo=UTC),
}
"""The row of the thread "one", in formats that have it."""
REPLICA, ENTRY, COPIED = Replica(1, "{}"), b"entry", Copied(5, 6)
"""The replication data, in formats that have it: of the database, and of the thread "deleted"."""


def fill_database(saver: Saver) -> None:
    """Everything that `damage.fill` stores, a thread with nothing but a pending write, and a deleted thread that is to
    be copied to another database.
    """
    fill(saver)
    for name in ("only a write", "deleted"):
        where = {"configurable": {"thread_id": name, "checkpoint_ns": "", "checkpoint_id": "1"}}
        saver.put_writes(where, [("messages", "written")], "task")
    saver.delete_thread("deleted")
    saver.update_thread("one", **ABOUT)
    store = saver._store
    assert isinstance(store, ReplicaStore)
    saver._driver.run(Transaction(_replicate, (store,), writes=True))


def _replicate(store: ReplicaStore) -> Program[None]:
    yield from store.set_replica(REPLICA)
    yield from store.lock("deleted")
    yield from store.record("deleted", ENTRY, REPLICA.term)
    yield from store.set_copied("deleted", COPIED)


def write_sqlite() -> None:
    """The SQLite file of the present format, unless there is one."""
    path = FOLDER / f"sqlite-{sqlite_migrations.CURRENT}.sqlite"
    if not path.exists():
        with SqliteSaver(path) as saver:
            fill_database(saver)


def write_postgres() -> None:
    """A script that makes a Postgres database of the present format, in the schema "stored"; unless there is one."""
    path = FOLDER / f"postgres-{postgres_migrations.CURRENT}.sql"
    if not path.exists():
        url = shared().database("stored")
        with PostgresSaver(url, schema="stored") as saver, psycopg.connect(url) as connection:
            fill_database(saver)
            rows = [line for table in TABLES for line in _rows(connection, table)]
            path.write_text("\n".join([ddl("stored"), *rows, ""]))


def _rows(connection: psycopg.Connection[Any], table: str) -> Iterator[str]:
    name = sql.Identifier("stored", f"threadmark_{table}")
    cursor = connection.execute(sql.SQL("SELECT * FROM {}").format(name))
    columns = sql.SQL(", ").join(sql.Identifier(column.name) for column in cursor.description or ())
    for row in cursor:
        values = sql.SQL(", ").join(map(sql.Literal, row))
        yield sql.SQL("INSERT INTO {} ({}) VALUES ({});").format(name, columns, values).as_string(connection)


if __name__ == "__main__":
    write_sqlite()
    write_postgres()
