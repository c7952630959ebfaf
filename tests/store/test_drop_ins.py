"""The stores under LangGraph's names: its constructors and context managers, shared savers, options, closing."""

import asyncio
import inspect
import itertools
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import aiosqlite
import psycopg
import pytest
import redis
from langgraph.store import memory
from langgraph.store import postgres as langgraph_postgres
from langgraph.store import sqlite as langgraph_sqlite
from langgraph.store.base import BaseStore
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from redis import asyncio as aioredis

import threadmark_store
from postgres import cluster
from redis_backend import processes
from redis_backend.backends import OPTIONS
from threadmark import (
    ClosedError,
    ConfigError,
    Keyring,
    MemoryCache,
    MemorySaver,
    MissingDependencyError,
    Serde,
    cached,
)
from threadmark_langgraph import SqliteSaver as SqliteCheckpointer
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisSaver
from threadmark_sqlite import SqliteSaver
from threadmark_store import (
    AsyncPostgresStore,
    AsyncRedisStore,
    AsyncSqliteStore,
    InMemoryStore,
    PoolConfig,
    PostgresStore,
    RedisStore,
    SqliteStore,
    Store,
    drop_ins,
    options,
)

_numbers = itertools.count()

ADA = ("users", "ada")
VALUE = {"since": datetime(2026, 11, 20, tzinfo=UTC), "places": ("Vienna", "Rome")}

PAIRS: list[tuple[Any, Any]] = [
    (InMemoryStore, memory.InMemoryStore),
    (SqliteStore, langgraph_sqlite.SqliteStore),
    (AsyncSqliteStore, langgraph_sqlite.AsyncSqliteStore),
    (PostgresStore, langgraph_postgres.PostgresStore),
    (AsyncPostgresStore, langgraph_postgres.AsyncPostgresStore),
]
METHODS = ("__init__", "from_conn_string", "setup", "sweep_ttl", "start_ttl_sweeper", "stop_ttl_sweeper")


class Place(NamedTuple):
    """A database, and the classes for it."""

    address: str
    blocking: Any
    asynchronous: Any
    saver: Callable[..., Any]
    options: dict[str, Any]


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A new database of each kind."""
    name = f"drop_ins_{next(_numbers)}"
    if request.param == "sqlite":
        yield Place(str(tmp_path / "items.db"), SqliteStore, AsyncSqliteStore, SqliteSaver, {})
    elif request.param == "postgres":
        yield Place(cluster.shared().database(name), PostgresStore, AsyncPostgresStore, PostgresSaver, {})
        cluster.shared().execute(f"DROP DATABASE {name} WITH (FORCE)")
    else:
        processes.shared().command("FLUSHALL")  # tests of other files leave keys under prefixes of their own
        own = {"prefix": f"{name}:", **OPTIONS}
        yield Place(processes.shared().url, RedisStore, AsyncRedisStore, RedisSaver, own)
        processes.shared().command("FLUSHALL")


def use(store: Store) -> None:
    """A put and a get."""
    store.put(ADA, "travels", VALUE)
    found = store.get(ADA, "travels")
    assert found is not None
    assert found.value == VALUE


async def ause(store: Store) -> None:
    """Like `use`, for asyncio."""
    await store.aput(ADA, "travels", VALUE)
    found = await store.aget(ADA, "travels")
    assert found is not None
    assert found.value == VALUE


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda each: each.__name__)
def test_every_argument_of_langgraphs_is_taken_in_its_place(ours: Any, theirs: Any, method: str) -> None:
    expected = getattr(theirs, method, None)
    if expected is None:  # LangGraph's memory needs neither a connection nor a sweeper
        assert theirs is memory.InMemoryStore
        return
    mine, others = (inspect.signature(getattr(each, method)).parameters for each in (ours, theirs))
    taken = [each for each in mine.values() if each.kind is not each.VAR_KEYWORD]
    assert [(each.name, each.kind, each.default) for each in taken] == [
        (each.name, each.kind, each.default) for each in others.values()
    ]
    assert inspect.iscoroutinefunction(getattr(ours, method)) is inspect.iscoroutinefunction(expected)


def test_every_argument_of_the_other_redis_store_is_taken() -> None:
    tuning = ["cluster_mode", "store_prefix", "vector_prefix"]
    expected: dict[Any, list[str]] = {
        RedisStore: ["conn", "index", "ttl", *tuning, "options"],
        AsyncRedisStore: ["redis_url", "redis_client", "index", "connection_args", "ttl", *tuning, "options"],
        RedisStore.from_conn_string: ["conn_string", "index", "ttl", *tuning[1:], "options"],
        AsyncRedisStore.from_conn_string: ["conn_string", "index", "ttl", *tuning[1:], "options"],
    }
    assert {each: list(inspect.signature(each).parameters) for each in expected} == expected


def test_the_settings_of_a_pool_are_langgraphs() -> None:
    assert PoolConfig.__annotations__.keys() == langgraph_postgres.PoolConfig.__annotations__.keys()


def test_every_store_has_the_interface_of_langgraph() -> None:
    classes = [getattr(threadmark_store, name) for name in threadmark_store.__all__ if name.endswith("Store")]
    assert len(classes) == 8
    for each in classes:
        assert issubclass(each, BaseStore)
        assert each.supports_ttl


@pytest.mark.parametrize(
    ("store", "typed"),
    [
        (SqliteStore, options.SqliteOptions),
        (AsyncSqliteStore, options.SqliteOptions),
        (PostgresStore, options.PostgresOptions),
        (AsyncPostgresStore, options.PostgresOptions),
        (RedisStore, options.RedisOptions),
        (AsyncRedisStore, options.RedisOptions),
    ],
)
def test_options_are_typed(store: Any, typed: type) -> None:
    for taker in (store, store.from_conn_string):
        (rest,) = (each for each in inspect.signature(taker).parameters.values() if each.kind is each.VAR_KEYWORD)
        assert rest.annotation == f"Unpack[{typed.__name__}]"


def test_a_database_is_opened_and_closed_by_a_block(place: Place) -> None:
    with place.blocking.from_conn_string(place.address, **place.options) as store:
        store.setup()
        use(store)
    with pytest.raises(ClosedError):
        store.get(ADA, "travels")

    async def run() -> None:
        async with place.asynchronous.from_conn_string(place.address, **place.options) as store:
            await store.setup()
            found = await store.aget(ADA, "travels")
            assert found is not None
            assert found.value == VALUE
            await ause(store)
            use(store)  # in the running event loop
            await asyncio.to_thread(use, store)
        with pytest.raises(ClosedError):
            await store.aget(ADA, "travels")

    asyncio.run(run())


def test_a_block_in_memory_ends_with_its_items() -> None:
    for _ in range(2):
        with SqliteStore.from_conn_string(":memory:") as store:
            assert store.list_namespaces() == []
            use(store)
    one, other = InMemoryStore(), InMemoryStore()
    use(one)
    assert other.list_namespaces() == []
    one.close()
    with pytest.raises(ClosedError):
        one.get(ADA, "travels")


def test_a_saver_in_place_of_a_connection_is_shared_and_stays_open(place: Place) -> None:
    with place.saver(place.address, **place.options) as saver:
        for store in (place.blocking(saver), place.asynchronous(saver), Store(saver)):
            assert store.saver is saver
            with store:
                use(store)
        saver.create_thread("one")
        assert [each.id for each in saver.list_threads().threads] == ["one"]
        with place.blocking(place.address, **place.options) as another:
            assert another.list_namespaces() == [ADA]


def test_a_saver_under_langgraphs_name_is_shared(tmp_path: Path) -> None:
    with SqliteCheckpointer.from_conn_string(str(tmp_path / "chats.db")) as checkpointer:
        store = SqliteStore(checkpointer)
        use(store)
        store.close()
        use(Store(checkpointer))
        checkpointer.create_thread("one")
    with SqliteSaver(tmp_path / "chats.db") as saver:
        assert saver.get_thread("one") is not None
        assert Store(saver).list_namespaces() == [ADA]


def test_a_store_of_one_owner_shares_the_savers_database() -> None:
    with MemorySaver() as saver:
        ada, bob = Store(saver.for_owner("ada")), Store(saver.for_owner("bob"))
        use(ada)
        assert bob.get(ADA, "travels") is None
        assert bob.search(()) == []
        with pytest.raises(PermissionError, match="'travels'"):
            bob.put(ADA, "travels", {})
        use(Store(saver))


def test_a_search_by_text_is_an_option_of_every_store_on_a_database() -> None:
    with SqliteSaver(":memory:") as saver, SqliteStore(saver, text_search=True) as store:
        store.put(ADA, "1", {"text": "a green tree"})
        store.put(ADA, "2", {"text": "a red rose"})
        assert [each.key for each in store.search(ADA, query="roses or a rose", limit=1)] == ["2"]
    with SqliteStore.from_conn_string(":memory:", text_search=["title"]) as store:
        store.put(ADA, "1", {"title": "Roses", "text": "green"})
        assert store.search(ADA, query="green") == []


def test_options_of_a_saver_are_refused_with_a_saver() -> None:
    with SqliteSaver(":memory:") as saver, pytest.raises(ConfigError, match="'durability' is an option of the saver"):
        SqliteStore(saver, durability="normal")


def test_of_a_cached_saver_the_one_below_it_is_asked_for() -> None:
    with MemorySaver() as saver:
        cache = cached(saver, MemoryCache())
        with pytest.raises(ConfigError, match="has no store of items: give its `uncached` saver"):
            Store(cache)
        Store(cache.uncached).put(("a",), "k", {})


def test_anything_else_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="expected a Threadmark saver, got InMemoryStore"):
        Store(memory.InMemoryStore())
    with pytest.raises(ConfigError, match="expected a path, a URL or a connection, got int"):
        SqliteStore(3)  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(ConfigError, match="did you mean 'durability'"):
        SqliteStore(":memory:", durabilty="full")  # type: ignore[call-arg]  # the point of the test


@pytest.mark.parametrize("location", [":memory:", "file"])
def test_a_connection_of_sqlite_stays_open(tmp_path: Path, location: str) -> None:
    path = str(tmp_path / "items.db") if location == "file" else location
    connection = sqlite3.connect(path, check_same_thread=False)
    with SqliteStore(connection, ttl={"default_ttl": 60}) as store:
        assert store.conn is connection
        use(store)
    with AsyncSqliteStore(connection) as store:
        assert store.list_namespaces() == [ADA]
    assert connection.execute("SELECT count(*) FROM threadmark_store_item").fetchall() == [(1,)]
    connection.close()


def test_a_connection_of_aiosqlite_stays_open(tmp_path: Path) -> None:
    async def run() -> None:
        async with aiosqlite.connect(tmp_path / "items.db") as connection:
            async with AsyncSqliteStore(connection) as store:
                await store.setup()
                await ause(store)
            rows = await connection.execute_fetchall("SELECT count(*) FROM threadmark_store_item")
            assert list(rows) == [(1,)]

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["postgres connection", "postgres pool"])
def test_a_connection_or_pool_of_psycopg_stays_open(kind: str) -> None:
    name = f"drop_ins_{next(_numbers)}"
    url = cluster.shared().database(name)
    given: Any = psycopg.connect(url) if kind.endswith("connection") else ConnectionPool(url, min_size=1, open=True)
    with given:
        with PostgresStore(given, pipe=object()) as store:
            assert store.conn is given
            use(store)
        with PostgresStore(given) as store:
            assert store.list_namespaces() == [ADA]
    cluster.shared().execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("kind", ["postgres connection", "postgres pool"])
def test_an_asyncio_connection_or_pool_of_psycopg_stays_open(kind: str) -> None:
    name = f"drop_ins_{next(_numbers)}"
    url = cluster.shared().database(name)

    async def run() -> None:
        given: Any = (
            await psycopg.AsyncConnection.connect(url)
            if kind.endswith("connection")
            else AsyncConnectionPool(url, min_size=1, open=False)
        )
        async with given:
            async with AsyncPostgresStore(given) as store:
                await store.setup()
                await ause(store)
                assert await store.sweep_ttl() == 0
            async with AsyncPostgresStore(given) as store:
                assert await store.alist_namespaces() == [ADA]

    asyncio.run(run())
    cluster.shared().execute(f"DROP DATABASE {name} WITH (FORCE)")


def _settings(store: Store) -> Any:
    assert isinstance(store.saver, PostgresSaver)
    return store.saver._postgres._settings


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_the_settings_of_a_pool_are_those_of_the_saver(place: Place) -> None:
    pool: PoolConfig = {
        "min_size": 1,
        "max_size": 3,
        "kwargs": {"autocommit": True, "prepare_threshold": None, "application_name": "theirs", "connect_timeout": 7},
    }
    with PostgresStore.from_conn_string(place.address, pool_config=pool, pipeline=True) as store:
        use(store)
        settings = _settings(store)
        assert (settings.pool_size, settings.prepare) == (3, False)
        assert "connect_timeout=7" in settings.conninfo

    async def run() -> None:
        async with AsyncPostgresStore.from_conn_string(place.address, pool_config={"max_size": None}) as store:
            await ause(store)
            assert _settings(store).pool_size == 16

    asyncio.run(run())


def test_settings_of_a_pool_that_cannot_be_met_are_refused_without_the_password() -> None:
    secret = "hunter2"  # noqa: S105 - made up
    url = f"postgresql://me:{secret}@localhost/items"
    unknown: Any = {"max_idle": 3}
    with (
        pytest.raises(ConfigError, match="unknown setting 'max_idle'"),
        PostgresStore.from_conn_string(url, pool_config=unknown),
    ):
        pass
    with (
        pytest.raises(ConfigError, match="cursor_factory, password of pool_config") as caught,
        PostgresStore.from_conn_string(
            url, pool_config={"kwargs": {"cursor_factory": psycopg.Cursor, "password": secret}}
        ),
    ):
        pass
    assert secret not in str(caught.value)


@pytest.mark.parametrize("place", ["redis"], indirect=True)
def test_a_client_of_redis_stays_open_and_a_prefix_keeps_items_apart(place: Place) -> None:
    with redis.Redis.from_url(place.address) as client:
        with RedisStore(client, store_prefix="one", vector_prefix="two", **OPTIONS) as store:
            use(store)
        with RedisStore(client, store_prefix="other", cluster_mode=False, **OPTIONS) as store:
            assert store.list_namespaces() == []
        with AsyncRedisStore(place.address, connection_args={"db": 0}, prefix="one:", **OPTIONS) as same:
            assert same.list_namespaces() == [ADA]
        assert all(key.startswith(b"one:") for key in client.scan_iter())

    async def run() -> None:
        async with aioredis.Redis.from_url(place.address) as client:
            async with AsyncRedisStore(redis_client=client, store_prefix="one", **OPTIONS) as store:
                await ause(store)
            assert await client.ping()

    asyncio.run(run())


def test_an_async_store_on_redis_wants_one_server() -> None:
    with pytest.raises(ConfigError, match="either redis_url or redis_client"):
        AsyncRedisStore()
    with pytest.raises(ConfigError, match="either redis_url or redis_client"):
        AsyncRedisStore("redis://localhost", redis_client=redis.Redis())
    with pytest.raises(ConfigError, match="connection_args are for a URL"):
        AsyncRedisStore(redis_client=redis.Redis(), connection_args={"db": 1})


@pytest.mark.parametrize("store", [SqliteStore, AsyncSqliteStore, PostgresStore, AsyncPostgresStore])
def test_a_deserializer_is_refused_since_it_would_not_be_called(store: Any) -> None:
    with pytest.raises(ConfigError, match=r"deserializer has no use here.*serde"):
        store("file", deserializer=dict)


def test_a_keyring_and_a_serializer_are_options(tmp_path: Path) -> None:
    keyring = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32))
    path = str(tmp_path / "items.db")
    with SqliteStore.from_conn_string(path, keyring=keyring, serde=Serde()) as store:
        store.put(ADA, "name", {"name": "Lovelace"})
        assert store.search(ADA, filter={"name": "Lovelace"}) != []
    for file in tmp_path.iterdir():
        assert b"Lovelace" not in file.read_bytes()
    with pytest.raises(ConfigError), SqliteStore.from_conn_string(path) as store:
        store.get(ADA, "name")


@pytest.mark.parametrize("backend", ["sqlite", "postgres", "redis"])
def test_a_backend_that_is_not_installed_is_named_with_its_extra(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, f"threadmark_{backend}", None)
    store: Any = getattr(drop_ins, f"{backend.title()}Store")
    with pytest.raises(MissingDependencyError, match=rf"pip install 'threadmark-store\[{backend}\]'"):
        store("anything")


def test_items_can_be_read_without_langgraph() -> None:
    """A command needs the rows and their meaning, and starts in less time without LangGraph."""
    code = """
import sys
import threadmark_store.batches, threadmark_store.items.memory, threadmark_store.items.sqlite, threadmark_store.looking
print({'langgraph', 'langchain_core'} & {name.partition('.')[0] for name in sys.modules})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
