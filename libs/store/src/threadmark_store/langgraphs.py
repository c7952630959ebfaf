"""LangGraph's stores as a move sees them: their tables if they are known, or else their interface.

The tables of the stores for SQLite and Postgres have the times of an item, its time to live and its vectors, which the
interface does not return or set. Everything is a request that a move yields, so it is answered in either API.
"""

import asyncio
import inspect
import json
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import orjson
from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchOp

from threadmark.backends import ConfigError, CorruptDataError, Flow
from threadmark_store import sql
from threadmark_store.calls import Call
from threadmark_store.namespaces import joined, labels_of
from threadmark_store.shapes import EPOCH, MINUTE, ItemKey, ItemRow, time_of

_MICROSECOND = timedelta(microseconds=1)
_AT_ONCE = 256


class Theirs(NamedTuple):
    """An item of LangGraph's store. Times are microseconds since 1970."""

    key: ItemKey
    value: Any
    created_at: int
    updated_at: int
    expires_at: int | None = None
    ttl: int | None = None
    vectors: Mapping[str, Sequence[float]] = {}
    """By the name of the text: the path of the field, with a number if there are several."""


class Passed(NamedTuple):
    """How far the items of a store have been read."""

    items: int = 0
    last: ItemKey = ItemKey("", "")


def langgraphs(store: object) -> "_Listed":
    """Return a store of LangGraph's interface as a move sees it. Raises ConfigError for anything else."""
    if not isinstance(store, BaseStore):
        raise ConfigError(f"expected a store, got {type(store).__name__}: give one of LangGraph's or Threadmark's")
    names = {f"{kind.__module__}.{kind.__name__}" for kind in type(store).__mro__}
    for module, statements in (("sqlite", sql.SQLITE), ("postgres", sql.POSTGRES)):
        if names & {f"langgraph.store.{module}.{end}" for end in _CLASSES[module]}:
            return _Tables(store, statements)
    return _Listed(store)


_CLASSES = {
    "sqlite": ("base.SqliteStore", "aio.AsyncSqliteStore"),
    "postgres": ("base.PostgresStore", "aio.AsyncPostgresStore"),
}


class _Listed:
    """Any store, by its interface, which has no times to live, and sets no time."""

    has_times = False
    """Whether an item has the times that it had here."""

    def __init__(self, store: BaseStore) -> None:
        self.store = store

    def batch(self, ops: Sequence[Any]) -> Flow[Call, list[Any]]:
        """Answer operations."""
        answers: list[Any] = yield Call(partial(self.store.batch, ops), partial(self.store.abatch, ops))
        return answers

    def after(self, passed: Passed) -> Flow[Call, list[Theirs]]:
        """Return the next items, none at the end."""
        (found,) = yield from self.batch([SearchOp((), limit=_AT_ONCE, offset=passed.items, refresh_ttl=False)])
        return [_listed(item) for item in found]

    def there(self, keys: Iterable[ItemKey]) -> Flow[Call, dict[ItemKey, Theirs]]:
        """Return those of some items that exist."""
        gets = [GetOp(labels_of(key.namespace), key.key, refresh_ttl=False) for key in keys]
        return {each.key: each for each in map(_listed, filter(None, (yield from self.batch(gets))))}

    def make(self) -> Flow[Call, None]:
        """Create the tables that are missing, if the way to do so is known."""
        yield from ()

    def put(self, items: Sequence[tuple[ItemRow, PutOp]]) -> Flow[Call, None]:
        """Store items."""
        yield from self.batch([op for _, op in items])


class _Tables(_Listed):
    """A store on SQLite or Postgres, by its tables as well."""

    has_times = True

    def __init__(self, store: Any, statements: sql.Statements) -> None:
        super().__init__(store)
        self._sql = statements
        self._waits = inspect.isasyncgenfunction(inspect.unwrap(type(store)._cursor))  # noqa: SLF001 - it has no public one
        self._loads = getattr(store, "_deserializer", None) or orjson.loads
        self._has_vectors = bool(getattr(store, "index_config", None))

    def batch(self, ops: Sequence[Any]) -> Flow[Call, list[Any]]:
        blocking, waiting = partial(self.store.batch, ops), partial(self.store.abatch, ops)
        answers: list[Any] = yield self._call(blocking, waiting)
        return answers

    def make(self) -> Flow[Call, None]:
        store: Any = self.store
        yield self._call(store.setup, store.setup)

    def after(self, passed: Passed) -> Flow[Call, list[Theirs]]:
        rows = yield from self._rows(self._sql.items, [(*passed.last, _AT_ONCE)])
        of_key: dict[ItemKey, dict[str, Sequence[float]]] = {}
        if rows and self._has_vectors:
            bounds = (*passed.last, rows[-1]["prefix"], rows[-1]["key"])
            for row in (yield from self._rows(self._sql.vectors, [bounds])):
                vectors = of_key.setdefault(ItemKey(row["prefix"], row["key"]), {})
                vectors[row["field_name"]] = _numbers(row["embedding"])
        return [self._item(row, of_key) for row in rows]

    def put(self, items: Sequence[tuple[ItemRow, PutOp]]) -> Flow[Call, None]:
        yield from super().put(items)
        times = [(row.created_at, row.updated_at, row.expires_at) for row, _ in items]
        bound = [map(self._sql.time, map(_time_of, each)) for each in times]
        params = [(*columns, *row.key) for columns, (row, _) in zip(bound, items, strict=True)]
        yield from self._rows(self._sql.set_times, params, returns=False)

    def _item(self, row: Mapping[str, Any], vectors: Mapping[ItemKey, Mapping[str, Sequence[float]]]) -> Theirs:
        key = ItemKey(row["prefix"], row["key"])
        try:
            value = self._loads(row["content"])
            times = [_microseconds(row[name]) for name in ("created_at", "updated_at")]
            created_at, updated_at = (0 if each is None else each for each in times)
            expires_at, minutes = _microseconds(row.get("expires_at")), row.get("ttl_minutes")
        except ValueError as error:
            return Theirs(key, CorruptDataError(f"it does not read: {error}"), 0, 0)
        ttl = None if minutes is None or expires_at is None else round(minutes * MINUTE)
        return Theirs(key, value, created_at, updated_at, expires_at, ttl, vectors.get(key, {}))

    def _rows(
        self, statement: str, many: Sequence[Sequence[Any]], *, returns: bool = True
    ) -> Flow[Call, list[dict[str, Any]]]:
        found: list[dict[str, Any]] = yield self._call(
            partial(self._executed, statement, many, returns=returns),
            partial(self._aexecuted, statement, many, returns=returns),
        )
        return found

    def _call(self, blocking: Callable[[], Any], waiting: Callable[[], Awaitable[Any]]) -> Call:
        """Return a call of the API that the store has. A blocking one is called on a thread for asyncio."""
        if self._waits:
            return Call(self._only_waits, waiting)
        return Call(blocking, partial(asyncio.to_thread, blocking))

    def _executed(self, statement: str, many: Sequence[Sequence[Any]], *, returns: bool) -> list[dict[str, Any]]:
        cursors: Any = self.store
        with cursors._cursor() as cursor:  # noqa: SLF001 - it waits for the store's lock, and knows pools
            for params in many:
                cursor.execute(statement, tuple(params))
            return [_named(cursor, row) for row in cursor.fetchall()] if returns else []

    async def _aexecuted(self, statement: str, many: Sequence[Sequence[Any]], *, returns: bool) -> list[dict[str, Any]]:
        cursors: Any = self.store
        async with cursors._cursor() as cursor:  # noqa: SLF001 - see above
            for params in many:
                await cursor.execute(statement, tuple(params))
            return [_named(cursor, row) for row in await cursor.fetchall()] if returns else []

    def _only_waits(self) -> Any:
        name = type(self.store).__name__
        raise ConfigError(f"{name} works with asyncio only: await the method whose name begins with `a`")


def _named(cursor: Any, row: Any) -> dict[str, Any]:
    if isinstance(row, dict):
        return row
    return dict(zip((column[0] for column in cursor.description), row, strict=True))


def _listed(item: Item) -> Theirs:
    key = ItemKey(joined(item.namespace), item.key)
    times = _microseconds(item.created_at), _microseconds(item.updated_at)
    return Theirs(key, item.value, times[0] or 0, times[1] or 0)


def _numbers(stored: str | bytes) -> Sequence[float]:
    """Return the numbers of a vector: text of Postgres, or bytes of SQLite."""
    if isinstance(stored, str):
        numbers: list[float] = json.loads(stored)
        return numbers
    return struct.unpack(f"<{len(stored) // 4}f", stored)


def _microseconds(time: str | datetime | None) -> int | None:
    if time is None:
        return None
    found = datetime.fromisoformat(time) if isinstance(time, str) else time
    return ((found if found.tzinfo else found.replace(tzinfo=UTC)) - EPOCH) // _MICROSECOND


def _time_of(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else time_of(microseconds)
