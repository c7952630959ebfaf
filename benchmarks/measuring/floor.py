"""The floor: the rows that our saver stores, stored by the bare driver (sqlite3, psycopg, redis-py) and nothing else.

Which rows those are is seen by storing the run once and looking at every table after each call that is timed. Then the
same rows go into an empty database with the same tables, those of one call in one transaction. No saver that stores
these rows can be faster; the distance to it is our own work.
"""

import sqlite3
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from typing import Any, Protocol

import psycopg
import redis

import workloads
from measuring.jobs import REDIS, SQLITE
from measuring.places import Place, new_place
from measuring.sides import Ours
from workloads import Step

Rows = dict[str, list[tuple[Any, ...]]]
"""The layout of each table; in Redis of each key, as the fields of a hash or the members of a sorted set."""

_SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'threadmark%'"
_POSTGRES_TABLES = """
SELECT c.relname, array_agg(quote_ident(a.attname)::text ORDER BY a.attnum), (
    SELECT array_agg(quote_ident(k.attname)::text)
    FROM pg_index AS i
    JOIN pg_attribute AS k ON k.attrelid = c.oid AND k.attnum = ANY (i.indkey)
    WHERE i.indrelid = c.oid AND i.indisprimary
)
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
GROUP BY c.oid, c.relname
"""


class BareDriver(Protocol):
    """A connection with no saver around it."""

    def rows(self) -> Rows:
        """Everything that is stored."""

    def store(self, rows: Rows) -> None:
        """Insert rows, or replace those with the same keys, in one transaction."""

    def close(self) -> None:
        """Close the connection."""


class Floor:
    """The side that only inserts rows. It reads nothing."""

    def __init__(self) -> None:
        self._stored: deque[Rows] = deque()

    def next_version(self, current: Any, channel: None) -> Any:
        """The version of a channel after `current`."""
        return Ours().next_version(current, channel)

    def learn(self, place: Place, server: str, before: Sequence[Step], timed: Sequence[Step]) -> None:
        """Store the run in another database, and remember which rows each call came to that is timed."""
        with (
            new_place(place.backend, server) as spare,
            Ours().blocking(spare) as saver,
            closing(bare(spare)) as driver,
        ):
            watched: Any = _Watched(saver, driver, self._stored)
            config = workloads.drive(watched, workloads.thread("steps"), before)
            watched.watch()
            workloads.drive(watched, config, timed)

    @contextmanager
    def blocking(self, place: Place) -> Iterator[Any]:
        """An object with the storing methods of a saver."""
        with closing(bare(place)) as driver:
            yield _Replayed(driver, self._stored)

    def asyncio(self, place: Place) -> AbstractAsyncContextManager[Any]:
        """Never used: an event loop is no part of a bare driver."""
        raise NotImplementedError(f"the floor at {place} is measured for blocking callers")


class _Watched:
    """A saver, with a look at the tables after each call from `watch` on. All rows before are those of one call."""

    def __init__(self, saver: Any, driver: BareDriver, stored: deque[Rows]) -> None:
        self._saver = saver
        self._driver = driver
        self._stored = stored
        self._seen: dict[str, set[tuple[Any, ...]]] = {}
        self._watching = False

    def watch(self) -> None:
        self._watching = True
        self._stored[-1] = self._new_rows()

    def put(self, *arguments: Any) -> Any:
        stored = self._saver.put(*arguments)
        self._remember()
        return stored

    def put_writes(self, *arguments: Any) -> None:
        self._saver.put_writes(*arguments)
        self._remember()

    def _remember(self) -> None:
        self._stored.append(self._new_rows() if self._watching else {})

    def _new_rows(self) -> Rows:
        new: Rows = {}
        for table, rows in self._driver.rows().items():
            seen = self._seen.setdefault(table, set())  # with rows that were replaced: none of them comes again
            for row in rows:
                if (known := _hashable(row)) not in seen:
                    seen.add(known)
                    new.setdefault(table, []).append(row)
        if not new:
            raise AssertionError("a call of our saver has stored no row")
        return new


def _hashable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row that a set can hold: psycopg reads arrays as lists."""
    return tuple(tuple(column) if isinstance(column, list) else column for column in row)


class _Replayed:
    """The calls of a run that was seen, as the inserts that they came to."""

    def __init__(self, driver: BareDriver, stored: deque[Rows]) -> None:
        self._driver = driver
        self._stored = stored

    def put(self, config: Mapping[str, Any], *_: Any) -> Mapping[str, Any]:
        self.put_writes()
        return config

    def put_writes(self, *_: Any) -> None:
        if rows := self._stored.popleft():
            self._driver.store(rows)


def bare(place: Place) -> BareDriver:
    """A connection to a database that has our tables, which are created if there are none."""
    if place.backend == REDIS:
        return _BareRedis(place)
    with Ours().blocking(place) as saver:
        saver.setup()
    return _BareSqlite(place.at) if place.backend == SQLITE else _BarePostgres(place.at)


class _BareSqlite:
    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous=FULL")
        self._tables = [name for (name,) in self._connection.execute(_SQLITE_TABLES)]

    def rows(self) -> Rows:
        return {table: self._connection.execute(f"SELECT * FROM {table}").fetchall() for table in self._tables}

    def store(self, rows: Rows) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for table, new in rows.items():
            values = ", ".join("?" * len(new[0]))
            self._connection.executemany(f"REPLACE INTO {table} VALUES ({values})", new)
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class _BarePostgres:
    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self._columns: dict[str, list[str]] = {}
        self._inserts: dict[str, str] = {}
        for table, columns, keys in self._connection.execute(_POSTGRES_TABLES):
            self._columns[table] = columns
            self._inserts[table] = _upsert(table, columns, keys)

    def rows(self) -> Rows:
        return {
            table: self._connection.execute(
                f"SELECT {', '.join(columns)} FROM {table}".encode(), binary=True
            ).fetchall()
            for table, columns in self._columns.items()
        }

    def store(self, rows: Rows) -> None:
        with self._connection.pipeline(), self._connection.transaction():
            cursor = self._connection.cursor()
            for table, new in rows.items():
                cursor.executemany(self._inserts[table].encode(), new)

    def close(self) -> None:
        self._connection.close()


class _BareRedis:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._client = redis.Redis.from_url(place.at)

    def rows(self) -> Rows:
        return {key.decode()[len(self._place.prefix) :]: self._items(key) for key in self._place.keys(self._client)}

    def store(self, rows: Rows) -> None:
        with self._client.pipeline(transaction=True) as pipeline:
            for name, items in rows.items():
                key = self._place.prefix + name
                if len(items[0]) == _FIELD:
                    pipeline.hset(key, mapping=dict(items))
                else:
                    pipeline.zadd(key, {member: score for member, score, _ in items})
            pipeline.execute()

    def close(self) -> None:
        self._client.close()

    def _items(self, key: bytes) -> list[tuple[Any, ...]]:
        if self._client.type(key) == b"hash":
            return list(self._client.hgetall(key).items())
        ranked: Any = self._client.zrange(key, 0, -1, withscores=True)
        return [(member, score, "a member") for member, score in ranked]


_FIELD = 2
"""The length of a row that is a field of a hash and its value."""


def _upsert(table: str, columns: Sequence[str], keys: Sequence[str]) -> str:
    values = ", ".join(["%b"] * len(columns))
    changed = ", ".join(f"{column} = EXCLUDED.{column}" for column in columns)
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values}) "
        f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changed}"
    )
