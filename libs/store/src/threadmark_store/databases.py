"""Opening LangGraph's store in a database that is named by a path or a URL, for the command."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from langgraph.store.base import BaseStore

from threadmark.backends import StoreError
from threadmark.bounded_sqlite import expect_plain_tables
from threadmark.errors import importing
from threadmark_store import sql

_POSTGRES = ("postgres://", "postgresql://")
_TABLES = ("store", "store_vectors")


def has_items(database: str | Path) -> bool:
    """Return whether a database has items of LangGraph's store. Nothing is created."""
    if isinstance(database, Path):
        if not database.is_file():
            return False
        with _failing_as_store(sqlite3.Error), closing(_connected(database, "rw")) as file:
            return file.execute(sql.SQLITE_HAS_ITEMS).fetchone() is not None
    if not database.startswith(_POSTGRES):
        return False
    with importing("{missing}: pip install psycopg"):
        import psycopg
    with _failing_as_store(psycopg.Error), psycopg.connect(database) as server:
        return server.execute(sql.POSTGRES_HAS_ITEMS).fetchone() is not None


@contextmanager
def langgraphs_store(database: str | Path, *, is_source: bool) -> Iterator[BaseStore]:
    """Open LangGraph's store for a SQLite file or the URL of a Postgres database. A source is not changed."""
    if isinstance(database, Path):
        with importing("{missing}: pip install langgraph-checkpoint-sqlite"):
            from langgraph.store.sqlite import SqliteStore
        # A read-only connection would leave the files of a log behind.
        with _failing_as_store(sqlite3.Error), closing(_connected(database, "rw" if is_source else "rwc")) as file:
            store = SqliteStore(file)
            store.is_setup = is_source  # else its first use adds tables and columns
            yield store
        return
    with importing("{missing}: pip install langgraph-checkpoint-postgres"):
        import psycopg
        from langgraph.store.postgres import PostgresStore
    with _failing_as_store(psycopg.Error), PostgresStore.from_conn_string(database) as server:
        yield server


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, check_same_thread=False, isolation_level=None
    )
    try:
        expect_plain_tables(connection, _TABLES, str(path))
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _failing_as_store(kind: type[Exception]) -> Iterator[None]:
    """A block in which an error of a driver becomes a StoreError."""
    try:
        yield
    except kind as error:
        raise StoreError(f"LangGraph's items cannot be used: {' '.join(str(error).split())}") from error
