"""The tables of a store in a SQLite file, which has one writer, and statements as SQLite wants them."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from threadmark.backends import Program
from threadmark_sqlite.placeholders import chunks
from threadmark_sqlite.steps import Rows, execute, execute_alone, executemany
from threadmark_store.shapes import ItemKey
from threadmark_store.tables.sql import Columns, Keys, packed

# `value` of an item is the last column, so that the others are read without it, however long it is.
_TABLES = {
    "item": (
        """
        CREATE TABLE IF NOT EXISTS threadmark_store_item (
            namespace TEXT NOT NULL,
            key TEXT NOT NULL,
            checksum INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            owner TEXT,
            expires_at INTEGER,
            ttl INTEGER,
            value NOT NULL
        )
        """,
        "CREATE UNIQUE INDEX IF NOT EXISTS threadmark_store_item_key ON threadmark_store_item (namespace, key)",
        "CREATE INDEX IF NOT EXISTS threadmark_store_item_newest ON threadmark_store_item (updated_at)",
        """
        CREATE INDEX IF NOT EXISTS threadmark_store_item_expiry
        ON threadmark_store_item (expires_at)
        WHERE expires_at IS NOT NULL
        """,
    ),
    "vector": (
        """
        CREATE TABLE IF NOT EXISTS threadmark_store_vector (
            namespace TEXT NOT NULL,
            key TEXT NOT NULL,
            field TEXT NOT NULL,
            place INTEGER NOT NULL,
            model TEXT NOT NULL,
            checksum INTEGER NOT NULL,
            owner TEXT,
            vector BLOB NOT NULL
        )
        """,
        """
        CREATE INDEX IF NOT EXISTS threadmark_store_vector_item
        ON threadmark_store_vector (namespace, key, field, place, model, checksum, owner)
        """,
    ),
    "word": (
        """
        CREATE TABLE IF NOT EXISTS threadmark_store_word (
            word TEXT NOT NULL,
            namespace TEXT NOT NULL,
            key TEXT NOT NULL,
            count INTEGER NOT NULL,
            length INTEGER NOT NULL,
            checksum INTEGER NOT NULL,
            owner TEXT,
            PRIMARY KEY (word, namespace, key)
        )
        WITHOUT ROWID
        """,
        "CREATE INDEX IF NOT EXISTS threadmark_store_word_item ON threadmark_store_word (namespace, key)",
    ),
    "cached": (
        """
        CREATE TABLE IF NOT EXISTS threadmark_store_cached (
            key BLOB NOT NULL,
            namespace BLOB NOT NULL,
            owner TEXT NOT NULL,
            value BLOB NOT NULL,
            checksum INTEGER NOT NULL,
            size INTEGER NOT NULL,
            used_at INTEGER NOT NULL,
            expires_at INTEGER
        )
        """,
        "CREATE UNIQUE INDEX IF NOT EXISTS threadmark_store_cached_key ON threadmark_store_cached (key)",
        """
        CREATE INDEX IF NOT EXISTS threadmark_store_cached_used
        ON threadmark_store_cached (owner, used_at, size)
        """,
        "CREATE INDEX IF NOT EXISTS threadmark_store_cached_namespace ON threadmark_store_cached (namespace)",
        """
        CREATE INDEX IF NOT EXISTS threadmark_store_cached_expiry
        ON threadmark_store_cached (expires_at)
        WHERE expires_at IS NOT NULL
        """,
    ),
}

_EXISTS = "SELECT 1 FROM sqlite_master WHERE name = ?"

_PARAMETER = re.compile(r"\?[a-z]+")


class Database:
    """The tables of a store in a file."""

    def any_of(self, query: str) -> str:
        return f"IN ({query})"

    free = any_of

    def exists(self, table: str) -> Program[bool]:
        return bool((yield from execute_alone(_EXISTS, (f"threadmark_store_{table}",))))

    def create(self, table: str) -> Program[None]:
        for statement in _TABLES[table]:
            yield from execute(statement)

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:
        yield from ()

    def lock(self, table: str) -> Program[None]:
        yield from ()

    def select(self, statement: str, *params: Any, last: bool = False) -> Program[Rows]:
        return (execute_alone if last else execute)(_written(statement), params)

    def among(
        self, statement: str, keys: Keys, *params: Any, before: Sequence[Any] = (), last: bool = False
    ) -> Program[Rows]:
        """One statement for each 256 keys."""
        found: Rows = []
        for some in chunks(list(map(packed, keys))):
            one = f"({', '.join('?' * len(some[0]))})"
            # SQLite would compare each row of the table with a bare list of pairs, without the index.
            asked = statement.format(among=f"IN (SELECT * FROM (VALUES {', '.join([one] * len(some))}))")
            ends = last and len(some) >= len(keys)
            found += yield from self.select(asked, *before, *chain.from_iterable(some), *params, last=ends)
        return found

    def add(
        self, table: str, columns: Columns, rows: Sequence[Sequence[Any]], conflict: str = "", *, last: bool = False
    ) -> Program[None]:
        names, values = ", ".join(columns), ", ".join("?" * len(columns))
        statement = f"INSERT INTO threadmark_store_{table} ({names}) VALUES ({values}) {conflict}"
        return executemany(statement, list(map(packed, rows)))

    def each(self, statement: str, params: Sequence[Sequence[Any]]) -> Program[None]:
        """Execute a statement for each of several parameters."""
        return executemany(_written(statement), params)


def database_over(rows: object) -> Database:
    """Return the database of a saver's rows."""
    return Database()


@lru_cache(512)
def _written(statement: str) -> str:
    return _PARAMETER.sub("?", statement).replace("tm.", "threadmark_")
