"""The cache of nodes' results on every backend: LangGraph's interface, the bound, expiry, sealing, damage, owners."""

import asyncio
import itertools
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import psycopg
import pytest
import redis
from langgraph.cache.base import BaseCache
from langgraph.cache.redis import RedisCache as LanggraphRedisCache
from langgraph.cache.sqlite import SqliteCache as LanggraphSqliteCache
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy

import threadmark_store.cache
import threadmark_store.entries
from log_lines import lines_of
from ports import free_port
from postgres.cluster import shared as postgres_server
from redis_backend import cluster as redis_cluster
from redis_backend import processes as redis_processes
from threadmark import ClosedError, ConfigError, Keyring, MemorySaver, Saver, SerializationError, StoreError, replicated
from threadmark.format.stored import shrink
from threadmark.program import Transaction
from threadmark_conformance.driver_wrapper import DriverWrapper
from threadmark_conformance.node_caches import (
    NODE_CACHE_APIS,
    NODE_CACHE_CASES,
    NodeCacheWorld,
    run_node_cache_case,
)
from threadmark_langgraph import SqliteSaver as NamedSaver
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisSaver
from threadmark_sqlite import SqliteSaver
from threadmark_store.cache import Cache
from threadmark_store.cached.memory import MemoryEntries
from threadmark_store.caches import InMemoryCache, PostgresCache, RedisCache, SqliteCache
from threadmark_store.entries import ENTRY_BYTES, Entry, EntryKey
from threadmark_store.store import Store

_numbers = itertools.count()
_MINUTE = 60_000_000
_KEYRING = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32), source="the tests")
_KEY = (("graph", "node"), "key")
_BYTES = os.urandom(1000)  # which compression leaves as they are


class Place(NamedTuple):
    """An empty database, and access to the values in it below any saver."""

    open: Callable[..., Saver]
    """Opens a saver that shares nothing with others but the database, if it has one."""
    change: Callable[[Callable[[bytes], bytes]], list[bytes]]
    """Replaces every stored value by what a function makes of it. Returns what was stored."""


@contextmanager
def _memory(_: Path) -> Iterator[Place]:
    with MemorySaver() as base:

        def change(make: Callable[[bytes], bytes]) -> list[bytes]:
            driver: Any = base._driver
            rows = driver._tables.others["cached"]
            stored = {key: entry.value for key, entry in rows.items()}
            for key, value in stored.items():
                rows[key] = rows[key]._replace(value=make(value))
            return list(stored.values())

        yield Place(lambda **options: Saver(base._store, base._driver, **options), change)


@contextmanager
def _sqlite(folder: Path) -> Iterator[Place]:
    path = folder / "cache.db"

    def change(make: Callable[[bytes], bytes]) -> list[bytes]:
        with sqlite3.connect(path) as connection:
            rows = connection.execute("SELECT rowid, value FROM threadmark_store_cached").fetchall()
            for rowid, value in rows:
                connection.execute("UPDATE threadmark_store_cached SET value = ? WHERE rowid = ?", (make(value), rowid))
        connection.close()
        return [value for _, value in rows]

    yield Place(partial(SqliteSaver, path, durability="normal"), change)


@cache
def _schema() -> str:
    """Return a schema with tables in it, because making them takes longer than a test."""
    with PostgresSaver(postgres_server().url, schema="caches") as saver:
        Cache(saver).setup()
    return "caches"


@contextmanager
def _postgres(_: Path) -> Iterator[Place]:
    with psycopg.connect(postgres_server().url, autocommit=True) as connection:
        connection.execute(f"DELETE FROM {_schema()}.threadmark_store_cached")

        def change(make: Callable[[bytes], bytes]) -> list[bytes]:
            rows = connection.execute("SELECT key, value FROM caches.threadmark_store_cached").fetchall()
            for key, value in rows:
                statement = "UPDATE caches.threadmark_store_cached SET value = %s WHERE key = %s"
                connection.execute(statement, (make(value), key))
            return [value for _, value in rows]

        yield Place(partial(PostgresSaver, postgres_server().url, schema=_schema(), pool_size=4), change)


def _on_redis(url: str, clients: Callable[[], list[redis.Redis]]) -> AbstractContextManager[Place]:
    prefix = f"cache{next(_numbers)}:"
    head = 16

    def change(make: Callable[[bytes], bytes]) -> list[bytes]:
        stored = []
        for client in clients():
            for key in client.scan_iter(f"{prefix}{{cached*e"):
                fields: dict[bytes, bytes] = client.hgetall(key)  # type: ignore[assignment]  # it answers with bytes
                del fields[b"size"]
                stored += [value[head:] for value in fields.values()]
                for field, value in fields.items():
                    client.hset(key, field, value[:head] + make(value[head:]))
        return stored

    @contextmanager
    def place() -> Iterator[Place]:
        yield Place(partial(RedisSaver, url, prefix=prefix, durability="memory", pool_size=4), change)
        for client in clients():
            client.flushall()

    return place()


def _redis(_: Path) -> AbstractContextManager[Place]:
    return _on_redis(redis_processes.shared().url, lambda: [redis_processes.shared().client])


def _redis_cluster(_: Path) -> AbstractContextManager[Place]:
    cluster = redis_cluster.shared()
    return _on_redis(cluster.url, lambda: [master.client for master in cluster.masters])


PLACES: Mapping[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgres": _postgres,
    "redis": _redis,
    "redis cluster": _redis_cluster,
}

each_place = pytest.mark.parametrize("place", PLACES, indirect=True)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with PLACES[request.param](tmp_path) as opened:
        yield opened


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A clock of caches that stands at the only item of the list."""
    time = [1_800_000_000_000_000]
    monkeypatch.setattr(threadmark_store.cache, "now", lambda: time[0])
    return time


@contextmanager
def _caches(name: str, options: dict[str, Any], folder: Path) -> Iterator[Callable[[], Cache]]:
    opened = []
    with PLACES[name](folder) as place:

        def open_cache() -> Cache:
            opened.append(place.open(**options))
            return Cache(opened[-1])

        yield open_cache
        for saver in opened:
            saver.close()


@pytest.mark.parametrize("api", NODE_CACHE_APIS)
@pytest.mark.parametrize("case", NODE_CACHE_CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("place_name", PLACES)
def test_behaviour(case: Callable[[NodeCacheWorld], Any], place_name: str, api: str, tmp_path: Path) -> None:
    run_node_cache_case(case, partial(_caches, place_name, {}), api, tmp_path)


@pytest.mark.parametrize("case", NODE_CACHE_CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("place_name", ["memory", "sqlite", "postgres", "redis"])
def test_behaviour_with_a_keyring(case: Callable[[NodeCacheWorld], Any], place_name: str, tmp_path: Path) -> None:
    run_node_cache_case(case, partial(_caches, place_name, {"keyring": _KEYRING}), "asyncio", tmp_path)


def _named(index: int, namespace: str = "node") -> tuple[tuple[str, ...], str]:
    return ("graph", namespace), str(index)


@each_place
def test_the_bound_holds_and_the_entries_used_last_stay(place: Place, clock: list[int]) -> None:
    most = 320_000
    with place.open() as saver:
        cache = Cache(saver, max_bytes=most)
        for index in range(600):
            clock[0] += 2 * _MINUTE
            cache.set({_named(index): (os.urandom(1000), None)})
            assert cache.get([_named(0)]) != {}  # so it stays
            if index % 20 == 0:
                assert cache.size()[1] <= most
        count, size = cache.size()
        assert size <= most
        assert count > 120  # the rest of the bound is not empty
        found = cache.get([_named(index) for index in range(600)])
        assert set(map(_named, [0, *range(580, 600)])) <= set(found)
        assert len(found) == count


@each_place
def test_expired_entries_make_room_first(place: Place, clock: list[int]) -> None:
    with place.open() as saver:
        cache = Cache(saver, max_bytes=16 * 80_000)
        cache.set({_named(index): (_BYTES, None) for index in range(100)})
        cache.set({_named(index, "brief"): (_BYTES, 10) for index in range(400)})
        clock[0] += 10_000_000
        for index in range(700):
            cache.set({_named(index, "later"): (_BYTES, None)})
        assert len(cache.get([_named(index) for index in range(100)])) == 100


@each_place
def test_several_processes_keep_the_bound_together(place: Place) -> None:
    most = 400_000
    with place.open() as one, place.open() as two:
        caches = [Cache(one, max_bytes=most), Cache(two, max_bytes=most)]
        for index in range(800):
            caches[index % 2].set({_named(index): (os.urandom(1000), None)})
            assert index % 50 or caches[0].size()[1] <= most * 9 // 8
        assert all(len(cache.get([_named(799)])) == 1 for cache in caches)


@each_place
def test_callers_make_room_at_the_same_time(place: Place) -> None:
    most = 160_000

    def use(number: int, cache: Cache) -> None:
        for turn in range(60):
            keys = [_named((number * 7 + turn * 3 + step) % 100) for step in range(10)]
            cache.set({key: (os.urandom(1000), 60 if turn % 2 else 0) for key in keys})
            assert all(len(value) == 1000 for value in cache.get(keys[::-1]).values())
            if turn % 20 == number:
                cache.clear([("another",)] if number else None)
                cache.sweep()

    with ExitStack() as stack, ThreadPoolExecutor(4) as pool:
        caches = [Cache(stack.enter_context(place.open()), max_bytes=most) for _ in range(4)]
        list(pool.map(use, range(4), caches))
        caches[0].set({_KEY: (1, None)})
        assert 0 < caches[0].size()[1] <= most * 11 // 8


@each_place
def test_the_size_is_that_of_the_entries(place: Place) -> None:
    with place.open() as saver:
        cache = Cache(saver)
        assert cache.size() == (0, 0)
        cache.set({_named(index): (b"x" * 100 * index, 60) for index in range(10)})
        cache.set({_named(index): (b"y" * 200 * index, None) for index in range(5)})
        stored = place.change(lambda value: value)
        assert cache.size() == (10, sum(map(len, stored)) + 10 * ENTRY_BYTES)
        assert asyncio.run(Cache(saver).asize()) == cache.size()
        cache.clear([("graph", "node")])
        assert cache.size() == (0, 0)


@each_place
def test_large_values_are_compressed(place: Place) -> None:
    value = {"text": "the same words again and again, " * 1000}
    with place.open(keyring=_KEYRING) as saver:
        cache = Cache(saver)
        cache.set({_KEY: (value, None)})
        assert cache.size()[1] < 2000
        assert cache.get([_KEY]) == {_KEY: value}


@each_place
def test_a_larger_entry_than_the_bound_is_not_stored_and_replaces_what_was(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    with place.open() as saver, lines_of("threadmark.store", caplog) as logged:
        cache = Cache(saver, max_bytes=160_000)
        cache.set({_KEY: (1, None), _named(1): (1, None)})
        cache.set({_KEY: (os.urandom(160_000), None), _named(2): (2, None)})
        assert cache.get([_KEY, _named(1), _named(2)]) == {_named(1): 1, _named(2): 2}
        cache.set({_named(3): (os.urandom(200_000), None)})
        (line,) = logged(logging.WARNING)
        assert "an entry is not stored" in line
        assert "raise max_bytes" in line
        verified = Store(saver).verify(decode=True)
        assert (verified.problems, verified.unreadable) == ([], [])


@each_place
def test_more_entries_than_the_bound_at_once_leave_the_last_ones(place: Place) -> None:
    most = 160_000
    with place.open() as saver:
        cache = Cache(saver, max_bytes=most)
        keys = [_named(index) for index in range(1000)]
        cache.set(dict.fromkeys(keys, (_BYTES, None)))
        assert 0 < cache.size()[1] <= most
        assert len(cache.get(keys)) == cache.size()[0]


@each_place
def test_a_smaller_bound_is_reached(place: Place) -> None:
    with place.open() as saver:
        Cache(saver).set({_named(index): (_BYTES, None) for index in range(1000)})
        smaller = Cache(saver, max_bytes=160_000)
        for index in range(64):  # each of the parts of a cluster
            smaller.set({_named(index, "later"): (1, None)})
        assert smaller.size()[1] <= 160_000


class _Recording(DriverWrapper):
    """Notes which transactions write."""

    def __init__(self, driver: Any) -> None:
        super().__init__(driver)
        self.wrote: list[bool] = []

    def _wrap(self, transaction: Transaction[Any]) -> Any:
        self.wrote.append(transaction.writes)
        return (yield transaction)


@each_place
def test_a_hit_only_reads_unless_the_last_use_is_a_minute_old(place: Place, clock: list[int]) -> None:
    with place.open() as saver:
        cache = Cache(saver)
        cache.set({_KEY: (1, None)})
        cache._driver = recorded = _Recording(cache._driver)
        for _ in range(3):
            clock[0] += 19_000_000
            assert cache.get([_KEY]) == {_KEY: 1}
        assert recorded.wrote == [False] * 3
        clock[0] += 3_000_000
        assert cache.get([_KEY]) == {_KEY: 1}
        assert recorded.wrote == [False] * 4 + [True]
        assert cache.get([_KEY]) == {_KEY: 1}
        assert recorded.wrote == [False] * 4 + [True, False]


@each_place
def test_an_expired_entry_is_a_miss_and_removed(place: Place, clock: list[int]) -> None:
    with place.open() as saver:
        cache = Cache(saver)
        cache.set({_named(index): (index, 10 + index) for index in range(5)})
        clock[0] += 11_999_999
        assert cache.get([_named(index) for index in range(5)]) == {_named(index): index for index in (2, 3, 4)}
        assert cache.size()[0] == 3
        clock[0] += 1_000_001
        assert cache.sweep() == 2
        assert cache.sweep() == 0
        assert cache.size()[0] == 1
        assert asyncio.run(cache.asweep()) == 0


@each_place
def test_a_sweep_removes_any_number(place: Place, clock: list[int]) -> None:
    with place.open() as saver:
        cache = Cache(saver)
        cache.set({_named(index): (index, 10) for index in range(2500)} | {_KEY: (1, None)})
        clock[0] += 10_000_000
        assert cache.sweep() == 2500
        assert cache.get([_KEY]) == {_KEY: 1}


@pytest.mark.parametrize("ttl", ["1", True, float("nan"), b"1"])
def test_a_ttl_that_is_no_number_is_an_error(ttl: Any) -> None:
    with InMemoryCache() as cache, pytest.raises(TypeError, match="ttl of a cached value"):
        cache.set({_KEY: (1, ttl)})


def test_an_endless_ttl_is_allowed() -> None:
    with InMemoryCache() as cache:
        cache.set({_named(1): (1, 10**30), _named(2): (2, float("inf")), _named(3): (3, -1)})  # type: ignore[dict-item]
        assert cache.get([_named(1), _named(2), _named(3)]) == {_named(1): 1, _named(2): 2}


@pytest.mark.parametrize("key", [("graph", "key"), ((1,), "key"), (("graph",), 1), (("graph",), b"key")])
def test_names_that_are_no_text_are_an_error(key: Any) -> None:
    with InMemoryCache() as cache:
        with pytest.raises(TypeError, match="text"):
            cache.set({key: (1, None)})
        with pytest.raises(TypeError, match="text"):
            cache.get([key])


@pytest.mark.parametrize("bound", [0, -1, 1.5, True, None])
def test_a_bound_that_is_no_number_is_an_error(bound: Any) -> None:
    with pytest.raises(ConfigError, match="max_bytes"):
        InMemoryCache(max_bytes=bound)


@each_place
def test_a_value_that_cannot_be_stored_is_an_error(place: Place) -> None:
    with place.open() as saver:
        cache = Cache(saver)
        with pytest.raises(SerializationError):
            cache.set({_named(1): (1, None), _named(2): (threading.Lock(), None)})
        assert cache.get([_named(1), _named(2)]) == {}


@each_place
def test_a_damaged_entry_is_a_miss_that_is_logged_once(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    with place.open() as saver, lines_of("threadmark.store", caplog) as logged:
        cache = Cache(saver)
        cache.set({_named(index): (f"value {index}", None) for index in range(20)})
        place.change(lambda value: value[:-1] + bytes([value[-1] ^ 1]))
        assert cache.get([_named(index) for index in range(20)]) == {}
        (line,) = logged(logging.WARNING)
        assert "a value and its check do not belong together" in line
        cache.set({_named(1): ("again", None)})
        assert cache.get([_named(1)]) == {_named(1): "again"}
        for broken in (b"", b"\x07", b"\x01", b"\x01\x00json", b"\x01\x07json\x00", b"\x01" + shrink(b"x" * 4000)[:-1]):
            place.change(partial(_replaced_by, broken))
            assert cache.get([_named(index) for index in range(20)]) == {}
        cache.clear()
        assert cache.size() == (0, 0)


@each_place
@pytest.mark.parametrize("keyring", [None, _KEYRING], ids=["plain", "sealed"])
def test_verify_reads_every_value_and_names_a_damaged_one(place: Place, keyring: Keyring | None) -> None:
    with place.open(keyring=keyring) as saver:
        cache, store = Cache(saver), Store(saver)
        assert store.verify()[-1] == 0
        cache.set({_named(index): (index, None) for index in range(130)})
        assert store.verify(decode=True) == (0, 0, 0, [], [], 130)
        owners = Store(saver.for_owner("ada"))
        Cache(owners.saver).set({_named(1): ("hers", None)})
        assert (owners.verify().cached, store.verify().cached) == (1, 131)
        damaged = iter([b"\x01damaged"])
        place.change(lambda value: next(damaged, value))
        (problem,) = store.verify().problems
        assert (problem.kind, problem.problem) == ("damaged", "a value and its check do not belong together")
        assert problem.location.startswith("cached value ")


def _replaced_by(other: bytes, _: bytes) -> bytes:
    return other


@each_place
def test_sealed_values_show_nothing_and_are_bound_to_their_keys(place: Place) -> None:
    with place.open(keyring=_KEYRING) as saver, place.open() as plain:
        cache = Cache(saver)
        cache.set({_named(index): ("a secret", None) for index in range(2)})
        stored = place.change(lambda value: value)
        assert len(stored) == 2
        assert all(b"secret" not in value for value in stored)
        assert Cache(plain).get([_named(0)]) == {}
        assert cache.get([_named(0), _named(1)]) == {_named(0): "a secret", _named(1): "a secret"}
        cache.set({_named(1): ("another secret", None)})
        one, other = place.change(lambda value: value)
        place.change({one: other, other: one}.__getitem__)
        assert cache.get([_named(0), _named(1)]) == {}


@each_place
def test_a_keyring_accepts_nothing_that_is_not_sealed_with_it(
    place: Place, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Keyring({"other": bytes(32)}, "other", digest_secret=bytes(32), source="the tests")
    monkeypatch.setattr(threadmark_store.entries, "check_of", lambda *_: 1)  # as if the check were forged
    with place.open(keyring=_KEYRING) as saver, place.open(keyring=other) as foreign:
        cache = Cache(saver)
        Cache(foreign).set({_KEY: (1, None)})
        with lines_of("threadmark.store", caplog) as logged:
            assert cache.get([_KEY]) == {}
            assert "sealed with key 'other', which is not on the keyring" in logged(logging.WARNING)[0]
        cache.set({_KEY: (1, None)})
        assert cache.get([_KEY]) == {_KEY: 1}
        place.change(lambda _: b"\x01\x00plain\0forged")
        assert Cache(saver).get([_KEY]) == {}


@each_place
def test_an_expiry_is_sealed_with_its_value(place: Place, clock: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry whose expiry was moved does not open, even if its check is forged."""
    with place.open(keyring=_KEYRING) as saver:
        cache = Cache(saver)
        cache.set({_KEY: (1, 10)})
        monkeypatch.setattr(threadmark_store.entries, "check_of", lambda *_: 1)
        entries = cache._entries
        key = entries.key(_KEY)
        sealed = entries.encoded(key, 1, clock[0], clock[0] + 10)
        assert entries.decoded(sealed) == 1
        with pytest.raises(Exception, match="does not open"):
            entries.decoded(sealed._replace(expires_at=None))


@each_place
def test_owners_have_caches_of_their_own(place: Place) -> None:
    with place.open() as saver:
        everyone, ada, eve = Cache(saver), Cache(saver.for_owner("ada")), Cache(saver.for_owner("eve"))
        for cache, value in ((everyone, "all"), (ada, "ada"), (eve, "eve")):
            cache.set({_KEY: (value, None), (("other",), "key"): (value, None)})
        assert [cache.get([_KEY])[_KEY] for cache in (everyone, ada, eve)] == ["all", "ada", "eve"]
        assert everyone.size()[0] == 6
        assert ada.size()[0] == 2
        ada.clear([_KEY[0]])
        assert [len(cache.get([_KEY])) for cache in (everyone, ada, eve)] == [1, 0, 1]
        eve.clear()
        assert [cache.size()[0] for cache in (everyone, ada, eve)] == [3, 1, 0]
        eve.set({_KEY: ("eve", None)})
        everyone.clear([_KEY[0]])
        assert [len(cache.get([_KEY])) for cache in (everyone, ada, eve)] == [0, 0, 0]
        assert ada.get([(("other",), "key")]) != {}
        everyone.clear()
        assert ada.get([(("other",), "key")]) == {}


@each_place
def test_an_owner_has_a_bound_and_a_sweep_of_its_own(place: Place, clock: list[int]) -> None:
    with place.open() as saver:
        everyone, ada, eve = (
            Cache(saver),
            Cache(saver.for_owner("ada")),
            Cache(saver.for_owner("eve"), max_bytes=160_000),
        )
        ada.set({_named(index): (_BYTES, 10) for index in range(200)})
        for index in range(200):
            eve.set({_named(index): (_BYTES, 10)})
        assert eve.size()[1] <= 160_000
        assert ada.size()[0] == 200
        clock[0] += 10_000_000
        remaining = eve.size()[0]
        assert eve.sweep() == remaining
        assert ada.size()[0] == 200
        assert everyone.sweep() == 200


class _State(TypedDict):
    number: int
    doubled: int


def _graph(runs: list[int], cache: BaseCache[Any], ttl: int | None = None) -> Any:
    def double(state: _State) -> dict[str, int]:
        runs.append(state["number"])
        return {"doubled": 2 * state["number"]}

    builder = StateGraph(_State)
    builder.add_node("double", double, cache_policy=CachePolicy(ttl=ttl))
    builder.add_edge(START, "double")
    builder.add_edge("double", END)
    return builder.compile(cache=cache)


@each_place
def test_a_graph_runs_its_node_once_for_each_input(place: Place) -> None:
    runs: list[int] = []
    with place.open() as saver, place.open() as another:
        graph = _graph(runs, Cache(saver), ttl=3600)
        for number in (1, 2, 1, 2, 1):
            assert graph.invoke({"number": number})["doubled"] == 2 * number
        assert runs == [1, 2]
        assert asyncio.run(graph.ainvoke({"number": 2}))["doubled"] == 4
        assert _graph(runs, Cache(another)).invoke({"number": 1})["doubled"] == 2
        assert runs == [1, 2]
        graph.clear_cache()
        assert graph.invoke({"number": 1})["doubled"] == 2
        assert runs == [1, 2, 1]


@each_place
def test_a_graph_of_asyncio_runs_its_node_once_for_each_input(place: Place) -> None:
    runs: list[int] = []

    async def scenario() -> None:
        async with place.open() as saver:
            graph = _graph(runs, Cache(saver), ttl=3600)
            for number in (1, 1, 2):
                assert (await graph.ainvoke({"number": number}))["doubled"] == 2 * number
            await graph.aclear_cache()
            await graph.ainvoke({"number": 1})

    asyncio.run(scenario())
    assert runs == [1, 2, 1]


@each_place
def test_a_task_runs_once_for_each_input(place: Place) -> None:
    runs: list[int] = []

    def doubling(number: int) -> int:
        runs.append(number)
        return 2 * number

    any_task: Any = task  # its types ask for a function of any arguments
    double = any_task(cache_policy=CachePolicy(ttl=3600))(doubling)

    with place.open() as saver:
        cache = Cache(saver)

        @entrypoint(cache=cache)
        def doubled(numbers: list[int]) -> list[int]:
            return [int(double(number).result()) for number in numbers]

        assert doubled.invoke([1, 2, 3]) == [2, 4, 6]
        assert doubled.invoke([3, 2, 4]) == [6, 4, 8]
        assert sorted(runs) == [1, 2, 3, 4]
        double.clear_cache(cache)
        assert doubled.invoke([1]) == [2]
        assert sorted(runs) == [1, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_many_create_the_tables_at_once(kind: str, tmp_path: Path) -> None:
    schema = f"cache{next(_numbers)}"

    def open_saver() -> Saver:
        if kind == "sqlite":
            return SqliteSaver(tmp_path / "new.db")
        return PostgresSaver(postgres_server().url, schema=schema, pool_size=1)

    gate = threading.Barrier(8)

    def first_use(number: int) -> None:
        with open_saver() as saver:
            gate.wait()
            Cache(saver).set({_named(number): (number, None)})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(first_use, range(8)))
    with open_saver() as saver:
        assert len(Cache(saver).get([_named(index) for index in range(8)])) == 8


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_read_creates_no_tables(kind: str, tmp_path: Path) -> None:
    schema = f"cache{next(_numbers)}"
    saver: Saver = SqliteSaver(tmp_path / "new.db")
    if kind == "postgres":
        saver = PostgresSaver(postgres_server().url, schema=schema)
    with saver:
        saver.setup()
        cache = Cache(saver)
        cache._driver = recorded = _Recording(cache._driver)
        assert cache.get([_KEY]) == {}
        assert cache.size() == (0, 0)
        assert cache.sweep() == 0
        cache.clear()
        assert recorded.wrote == [False] * 4
        cache.set({_KEY: (1, None)})
        assert Cache(saver).get([_KEY]) == {_KEY: 1}


def test_a_reader_finds_values_and_notes_no_use(
    tmp_path: Path, clock: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cache.db"
    with SqliteSaver(path) as saver:
        Cache(saver).set({_named(1): (1, None), _named(2): (2, 10)})
    clock[0] += 2 * _MINUTE
    with SqliteSaver(f"sqlite:///{path}?mode=ro") as saver, lines_of("threadmark.store", caplog) as logged:
        cache = Cache(saver)
        for _ in range(2):
            assert cache.get([_named(1), _named(2)]) == {_named(1): 1}
        (line,) = logged(logging.WARNING)
        assert "uses of entries are not noted" in line
        with pytest.raises(StoreError):
            cache.set({_named(1): (1, None)})


def test_columns_of_another_kind_are_a_miss(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    with SqliteSaver(path) as saver:
        cache = Cache(saver)
        for column in ("value", "checksum", "used_at", "expires_at", "owner", "namespace"):
            cache.set({_KEY: (column, 60)})
            connection = sqlite3.connect(path)
            with connection:
                connection.execute(f"UPDATE threadmark_store_cached SET {column} = 'text'")
            connection.close()
            assert cache.get([_KEY]) in ({}, {_KEY: column})  # the value is sound if only its use was damaged
        cache.set({_KEY: ("sound", None)})
        assert cache.get([_KEY]) == {_KEY: "sound"}


def test_the_saver_goes_on_beside_the_cache_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "both.db"
    for turn in range(2):
        with NamedSaver(str(path)) as saver:
            cache = Cache(saver)
            runs: list[int] = []
            graph = _graph(runs, cache)
            graph.checkpointer = saver
            config = {"configurable": {"thread_id": str(turn)}}
            assert graph.invoke({"number": 1}, config)["doubled"] == 2
            assert runs == [] if turn else [1]
            assert saver.saver.verify().problems == []


@pytest.mark.parametrize("lost", ["e", "u", "x", "eux"])
def test_redis_may_evict_any_key(lost: str) -> None:
    client = redis_processes.shared().client
    with _redis(Path()) as place, place.open() as saver:
        cache = Cache(saver, max_bytes=50_000)
        for turn in range(4):
            for index in range(100):
                cache.set({_named(index, str(turn)): (_BYTES, 60)})
            for key in list(client.scan_iter("*{cached*")):
                if key[-1:].decode() in lost:
                    client.delete(key)
            cache.set({_KEY: (turn, None)})
            assert cache.get([_KEY]) == {_KEY: turn}
        for index in range(100):
            cache.set({_named(index): (_BYTES, 60)})
        assert 0 < cache.size()[1] <= 50_000
        assert cache.size()[1] == sum(map(len, place.change(lambda value: value))) + cache.size()[0] * ENTRY_BYTES
        cache.clear()
        assert list(client.scan_iter("*{cached*")) == []


def test_caches_have_the_names_of_langgraph(tmp_path: Path) -> None:
    url = redis_processes.shared().url
    client = redis.Redis(port=redis_processes.shared().port)
    kinds: list[Callable[[], Cache]] = [
        InMemoryCache,
        lambda: SqliteCache(path=str(tmp_path / "a.db")),
        lambda: SqliteCache(path=tmp_path / "b.db", serde=JsonPlusSerializer()),
        lambda: RedisCache(client, prefix=f"names{next(_numbers)}:"),
        lambda: RedisCache(url, serde=JsonPlusSerializer()),
        lambda: PostgresCache(postgres_server().url, schema=_schema()),
    ]
    for make in kinds:
        with make() as cache:
            assert isinstance(cache, BaseCache)
            assert type(cache).__name__ in repr(cache)
            cache.set(pairs={_KEY: ({"result": 42}, 60)})
            assert cache.get(keys=[_KEY]) == {_KEY: {"result": 42}}
            cache.clear(namespaces=[("another",)])
        with pytest.raises(ClosedError):
            cache.get([_KEY])

        async def again(make: Callable[[], Cache]) -> None:
            async with make() as cache:
                await cache.asetup()
                await cache.aset({_KEY: (1, None)})
                assert await cache.aget([_KEY]) == {_KEY: 1}
                await cache.aclear()

        asyncio.run(again(make))
    client.flushall()
    client.close()


def test_results_of_langgraphs_caches_are_neither_found_nor_harmed(tmp_path: Path) -> None:
    client, prefix = redis.Redis(port=redis_processes.shared().port), f"names{next(_numbers)}:"
    pairs: list[tuple[BaseCache[Any], Callable[[], Cache]]] = [
        (LanggraphSqliteCache(path=str(tmp_path / "a.db")), lambda: SqliteCache(path=tmp_path / "a.db")),
        (LanggraphRedisCache(client, prefix=prefix), lambda: RedisCache(client, prefix=prefix)),
    ]
    for theirs, make in pairs:
        theirs.set({_KEY: ("theirs", None)})
        with make() as ours:
            assert ours.get([_KEY]) == {}
            ours.set({_KEY: ("ours", None)})
            assert ours.get([_KEY]) == {_KEY: "ours"}
            ours.clear()
            assert ours.get([_KEY]) == {}
        assert theirs.get([_KEY]) == {_KEY: "theirs"}
    client.flushall()
    client.close()


def test_a_cache_leaves_a_saver_open_that_it_did_not_make() -> None:
    with MemorySaver() as saver:
        with Cache(saver) as cache:
            cache.set({_KEY: (1, None)})
        assert Cache(saver).get([_KEY]) == {_KEY: 1}


def test_redis_that_is_away_is_a_miss(caplog: pytest.LogCaptureFixture) -> None:
    client = redis.Redis(port=free_port(), socket_connect_timeout=0.1)
    with lines_of("threadmark.store", caplog) as logged, RedisCache(client) as cache:
        assert cache.get([_KEY]) == {}
        cache.set({_KEY: (1, None)})
        cache.clear()
        assert asyncio.run(cache.aget([_KEY])) == {}
        asyncio.run(cache.aset({_KEY: (1, None)}))
        (line,) = logged(logging.WARNING)
        assert "the database fails, which is a miss" in line


def test_redis_that_goes_away_and_comes_back_is_a_miss_for_a_while() -> None:
    with redis_processes.RedisProcess({}) as server:
        server.start()
        with RedisCache(server.url, timeout=0.2) as cache:
            cache.set({_KEY: (1, None)})
            assert cache.get([_KEY]) == {_KEY: 1}
            server.kill()
            assert cache.get([_KEY]) == {}
            server.start()
            cache.set({_KEY: (2, None)})
            assert cache.get([_KEY]) == {_KEY: 2}


def test_other_savers_are_refused() -> None:
    with MemorySaver() as one, MemorySaver() as two:
        with pytest.raises(ConfigError, match="no cache of nodes"):
            Cache(replicated(one, two))
        with pytest.raises(ConfigError, match="expected a Threadmark saver, got object"):
            Cache(object())


def test_values_of_another_serializer_are_a_miss(caplog: pytest.LogCaptureFixture) -> None:
    with MemorySaver() as saver, lines_of("threadmark.store", caplog) as logged:
        Cache(saver, serde=JsonPlusSerializer()).set({_KEY: ({"a": 1}, None)})
        assert Cache(saver).get([_KEY]) == {}
        assert len(logged(logging.WARNING)) == 1


def test_an_entry_that_was_replaced_since_it_expired_stays() -> None:
    saver, key = MemorySaver(), EntryKey(b"key", b"namespace")
    entries = MemoryEntries(None)

    def ask(program: Callable[..., Any], *arguments: object) -> Any:
        return saver._driver.run(Transaction(program, arguments, writes=True))

    for expires_at, left in ((200, 1), (99, 0)):
        ask(entries.add, [Entry(key, None, b"value", 1, 50, expires_at)], None, None, 50)
        ask(entries.note, [], [key], None, 100)  # it had expired when it was found
        assert len(ask(entries.find, [key], None)) == left
