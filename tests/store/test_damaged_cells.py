"""Every column of a store's tables on SQLite with a value of another kind: an error says so, and the rest is served."""

import sqlite3
import struct
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cli.running import in_pipe
from threadmark import CorruptDataError
from threadmark_cli.exits import DONE, WRONG
from threadmark_sqlite import SqliteSaver
from threadmark_store import Cache, InMemoryStore, Store
from threadmark_store.shapes import StoreVerifyReport

ODD: tuple[Any, ...] = (
    "a text", "", b"\xff\x00bytes", b"", 1.5, float("inf"), None, -1, 1 << 62, (1 << 63) - 1, -(1 << 63)
)  # fmt: skip

DAMAGED = {
    "threadmark_store_item": ("key = 'two'",),
    "threadmark_store_vector": ("key = 'two' AND place = 0", "key = 'two' AND place = -1"),
    "threadmark_store_word": ("key = 'two' AND word = 'tree'", "key = 'two' AND word < 'a'"),
    "threadmark_store_cached": ("expires_at IS NOT NULL", "expires_at IS NULL"),
}
"""The rows whose columns are damaged one by one."""

MAY_BE_SO = {
    "threadmark_store_item": {"created_at", "updated_at", "expires_at", "ttl"},
    "threadmark_store_cached": {"used_at"},
}
"""The columns with numbers that nothing is compared with."""

KEYS = {
    "threadmark_store_item": {"namespace", "key", "owner"},
    "threadmark_store_vector": {"namespace", "key", "field", "place", "owner"},
    "threadmark_store_word": {"word", "namespace", "key", "owner"},
    "threadmark_store_cached": {"key", "namespace", "owner"},
}
"""The columns that say whose a row is. A row of another one is no damage."""

NS = ("docs",)
VALUES: dict[str, dict[str, Any]] = {
    "one": {"text": "a tree"},
    "two": {"text": "a tree", "n": 1},
    "three": {"text": "a river", "pair": (1, 2)},
}
CACHED: dict[tuple[tuple[str, ...], str], tuple[Any, int | None]] = {
    (("n",), "ends"): (["result"], 100),
    (("n",), "stays"): (["result"], None),
}


def lengths(texts: Sequence[str]) -> list[list[float]]:
    """Stand for a model."""
    return [[float(len(text)), 1.0] for text in texts]


INDEX: Any = {"dims": 2, "embed": lengths, "fields": ["text"]}


class Stores:
    """Stores of each kind and a cache, on one saver."""

    def __init__(self, saver: SqliteSaver) -> None:
        self.plain, self.vectors = Store(saver), Store(saver, index=INDEX)
        self.words, self.cache = Store(saver, text_search=True), Cache(saver)
        self.small_cache = Cache(saver, max_bytes=200)

    def fill(self) -> None:
        """Store something in each table."""
        for key, value in VALUES.items():
            self.vectors.put(NS, key, value, index=["text"], ttl=60)
        self.words.reindex()
        self.cache.set(CACHED)

    def reads(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """Everything that changes nothing."""
        yield "get", lambda: self.plain.get(NS, "two", refresh_ttl=False)
        yield "search", lambda: self.plain.search((), refresh_ttl=False)
        yield "filter", lambda: self.plain.search(NS, filter={"n": {"$gt": 0}}, refresh_ttl=False)
        yield "vectors", lambda: self.vectors.search(NS, query="tree", refresh_ttl=False)
        yield "vectors and a filter", lambda: self.vectors.search(NS, query="tree", filter={"n": 1}, refresh_ttl=False)
        yield "words", lambda: self.words.search((), query="tree", refresh_ttl=False)
        yield "list_namespaces", self.plain.list_namespaces
        yield "verify", lambda: self.plain.verify(decode=True)
        yield "stats", self.plain.stats
        yield "report", self.vectors.report
        yield "export", lambda: self.plain.export(InMemoryStore())
        yield "get of cached values", lambda: self.cache.get(list(CACHED))
        yield "size", self.cache.size

    def changes(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """Everything that changes something."""
        yield "refresh", lambda: self.plain.get(NS, "two")
        yield "reindex of vectors", self.vectors.reindex
        yield "reindex of words", self.words.reindex
        yield "sweep_ttl", self.plain.sweep_ttl
        for name, store in (("plain", self.plain), ("vectors", self.vectors), ("words", self.words)):
            yield f"put of another with {name}", partial(store.put, NS, "four", {"text": "a tree"})
            yield f"put with {name}", partial(store.put, NS, "two", {"text": "a tree"})
            yield f"delete with {name}", partial(store.delete, NS, "two")
        yield "sweep of the cache", self.cache.sweep
        yield "set", lambda: self.small_cache.set(CACHED)
        yield "clear", self.cache.clear


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    """A database in memory, of all tests of this file."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        yield connection


@pytest.fixture(scope="module")
def stores(database: sqlite3.Connection) -> Stores:
    return Stores(SqliteSaver(database, cache_bytes=0))


@pytest.fixture(scope="module")
def whole(database: sqlite3.Connection, stores: Stores) -> bytes:
    stores.fill()
    return database.serialize()


def changed(database: sqlite3.Connection, whole: bytes, table: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield each column of the damaged rows once its cell has this value, and its value as it is stored then."""
    columns = [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
    for row in DAMAGED[table]:
        for column in columns:
            database.deserialize(whole)
            (before,) = database.execute(f"SELECT {column} FROM {table} WHERE {row}").fetchall()
            try:
                statement = f"UPDATE {table} SET {column} = ? WHERE {row} RETURNING {column}"
                stored = database.execute(statement, (value,)).fetchall()
            except sqlite3.IntegrityError:
                continue
            if (type(stored[0][0]), stored[0]) != (type(before[0]), before):
                yield column, stored[0][0]


def refused(operation: Callable[[], object]) -> object:
    """Return the result of an operation, or its CorruptDataError."""
    try:
        return operation()
    except CorruptDataError as error:
        return error


@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize("table", DAMAGED)
def test_an_operation_is_done_or_refused_and_verify_tells(
    database: sqlite3.Connection, stores: Stores, whole: bytes, table: str, value: object
) -> None:
    for column, stored in changed(database, whole, table, value):
        damage = f"{value!r} in {table}.{column}"
        results = {}
        for name, operation in stores.reads():
            try:
                results[name] = refused(operation)
            except Exception as error:
                raise AssertionError(f"{name} with {damage}") from error
        for key in ("one", "three"):
            item = stores.plain.get(NS, key, refresh_ttl=False)
            assert item is not None, damage
            assert item.value == VALUES[key], damage
        found = results["verify"]
        may_be_so = type(stored) is int and column in MAY_BE_SO.get(table, ())
        if not may_be_so and column not in KEYS[table] and (column, stored) != ("ttl", None):
            assert isinstance(found, StoreVerifyReport), damage
            assert found.problems, damage


@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize("table", DAMAGED)
def test_a_change_is_done_or_refused(
    database: sqlite3.Connection, stores: Stores, whole: bytes, table: str, value: object
) -> None:
    for column, _ in changed(database, whole, table, value):
        for name, operation in stores.changes():
            try:
                refused(operation)
            except Exception as error:
                raise AssertionError(f"{name} with {value!r} in {table}.{column}") from error
        if column not in KEYS[table]:
            stores.plain.put(NS, "two", {"text": "new"})
            item = stores.plain.get(NS, "two")
            assert item is not None
            assert item.value == {"text": "new"}


@pytest.mark.parametrize("table", DAMAGED)
def test_the_command_tells_of_damage_as_verify_does(
    database: sqlite3.Connection, stores: Stores, whole: bytes, table: str, tmp_path: Path
) -> None:
    path = tmp_path / "items.db"
    for value in (b"\xff\x00bytes", (1 << 63) - 1):
        for column, _ in changed(database, whole, table, value):
            path.write_bytes(database.serialize())
            found = refused(stores.plain.verify)
            ran = in_pipe("verify", str(path))
            if isinstance(found, CorruptDataError):
                assert (ran.code, found.problem in ran.err) == (WRONG, True), column
            else:
                assert isinstance(found, StoreVerifyReport)
                damaged = any(problem.kind != "orphan" for problem in found.problems)
                assert ran.code == (WRONG if damaged else DONE), column
                assert all(problem.problem in ran.out for problem in found.problems), column


def test_a_deep_choice_is_damage(database: sqlite3.Connection, stores: Stores, whole: bytes) -> None:
    database.deserialize(whole)
    database.execute("UPDATE threadmark_store_vector SET field = ? WHERE key = 'two' AND place = -1", ("[" * 100_000,))
    assert len(stores.plain.verify().problems) == 1
    assert stores.plain.export(InMemoryStore()).items == 3
    assert stores.vectors.reindex() == 0


def test_a_vector_that_is_a_number_takes_no_memory(database: sqlite3.Connection, stores: Stores, whole: bytes) -> None:
    database.deserialize(whole)
    database.execute("UPDATE threadmark_store_vector SET vector = 100000000 WHERE place = 0")
    tracemalloc.start()
    try:
        found = stores.plain.verify()
        moved = stores.plain.export(InMemoryStore())
        with pytest.raises(CorruptDataError, match="has 0 bytes instead of 8"):
            stores.vectors.search(NS, query="tree")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [problem.kind for problem in found.problems] == ["damaged"] * 3
    assert moved.items == 3
    assert most < 10_000_000


def test_a_vector_of_another_length_is_damage_also_if_it_is_zero(
    database: sqlite3.Connection, stores: Stores, whole: bytes
) -> None:
    for dims, problems in ((2, 0), (1, 1), (3, 1)):
        database.deserialize(whole)
        zero = struct.pack(f"<{dims}f", *[0.0] * dims)
        database.execute("UPDATE threadmark_store_vector SET vector = ? WHERE key = 'two' AND place = 0", (zero,))
        found = stores.plain.verify().problems
        assert len(found) == problems
        assert all(f"it has {dims} dimensions, unlike its model" in each.problem for each in found)
