"""Items on Postgres: owners, locks, tables that many create, plans, conditions, round trips, poolers."""

import asyncio
import itertools
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import psycopg
import pytest
from langgraph.store.base import GetOp, Op, PutOp, SearchOp

from patience import wait_until
from postgres.bouncer import shared_bouncer
from postgres.cluster import PostgresServer, shared, with_pgvector
from postgres.proxy import Proxy
from threadmark import Saver, StoreError
from threadmark.backends import ConfigError, CorruptDataError, Program
from threadmark.program import Transaction
from threadmark.sealing import Keyring
from threadmark_postgres import PostgresSaver
from threadmark_postgres.arrays import register_dumpers
from threadmark_postgres.steps import Query
from threadmark_store import InMemoryStore, Store
from threadmark_store.filters import conditions_of, meets
from threadmark_store.items.postgres import PostgresItems
from threadmark_store.shapes import ItemKey, ItemRow, Place, Scope
from threadmark_store.tables.postgres import Database, ddl
from threadmark_store.values import check_of

_numbers = itertools.count()

NS = ("users", "ada")
KEYS = [f"key {number:03}" for number in range(60)]


@pytest.fixture(scope="module")
def server() -> PostgresServer:
    return shared()


@pytest.fixture
def url(server: PostgresServer) -> Iterator[str]:
    """A new, empty database."""
    name = f"test_store_{next(_numbers)}"
    yield server.database(name)
    server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def tables(url: str) -> Iterator[psycopg.Connection]:
    """A connection to the database of `url`."""
    with psycopg.connect(url, autocommit=True) as connection:
        register_dumpers(connection)
        yield connection


@pytest.fixture
def saver(url: str) -> Iterator[PostgresSaver]:
    with PostgresSaver(url) as saver:
        yield saver


@pytest.fixture
def store(saver: PostgresSaver) -> Iterator[Store]:
    with Store(saver) as store:
        store.setup()
        yield store


def keys(store: Store, prefix: tuple[str, ...] = ()) -> list[str]:
    return sorted(item.key for item in store.search(prefix, limit=1000))


def at_once(*calls: Callable[[], object]) -> None:
    """Make all calls at one moment, each on its own thread. Raises the first error."""
    ready = threading.Barrier(len(calls))

    def made(call: Callable[[], object]) -> None:
        ready.wait(30)
        call()

    with ThreadPoolExecutor(len(calls)) as workers:
        for each in [workers.submit(made, call) for call in calls]:
            each.result(60)


def run(saver: Saver, program: Callable[..., Any], *args: Any, writes: bool = False) -> Any:
    """Run a program of items as the store does."""
    return saver._driver.run(Transaction(program, args, writes=writes))


# Owners


def test_a_batch_with_another_owners_item_stores_nothing(saver: PostgresSaver) -> None:
    ada, bob = Store(saver.for_owner("ada")), Store(saver.for_owner("bob"))
    ada.put(NS, "b", {"of": "ada"})
    puts = [PutOp(NS, key, {"of": "bob"}) for key in "abc"]
    with pytest.raises(PermissionError, match=r"item 'b' of namespace 'users\.ada' belongs to another owner"):
        bob.batch(puts)
    with pytest.raises(PermissionError):
        bob.put(NS, "b", {"of": "bob"})
    assert keys(bob) == []
    found = Store(saver).get(NS, "b")
    assert found
    assert found.value == {"of": "ada"}


def test_another_owners_item_that_commits_while_a_batch_waits_refuses_it_whole(saver: PostgresSaver, url: str) -> None:
    ada, bob = Store(saver.for_owner("ada")), Store(saver.for_owner("bob"))
    ada.put(NS, "b", {"of": "ada"})
    with psycopg.connect(url) as between, ThreadPoolExecutor(1) as worker:
        between.execute("DELETE FROM threadmark_store_item")
        between.execute(
            "INSERT INTO threadmark_store_item (namespace, key, json, checksum, created_at, updated_at, owner)"
            " VALUES ('users.ada', 'b', '{}', 0, 0, 0, 'ada')"
        )
        waiting = worker.submit(bob.batch, [PutOp(NS, key, {"of": "bob"}) for key in "abc"])
        _until_one_waits(url)
        between.commit()
        with pytest.raises(PermissionError):
            waiting.result(30)
    assert keys(bob) == []


def test_a_store_without_an_owner_replaces_any_item_and_leaves_it_to_its_owner(saver: PostgresSaver) -> None:
    ada, everybody = Store(saver.for_owner("ada")), Store(saver)
    ada.put(NS, "a", {"n": 1})
    everybody.batch([PutOp(NS, "a", {"n": 2}), PutOp(NS, "b", {"n": 2})])
    assert keys(ada) == ["a"]
    found = ada.get(NS, "a")
    assert found
    assert found.value == {"n": 2}


def test_an_owner_deletes_only_its_own_items(saver: PostgresSaver) -> None:
    ada, bob, everybody = Store(saver.for_owner("ada")), Store(saver.for_owner("bob")), Store(saver)
    ada.put(NS, "a", {})
    everybody.put(NS, "b", {})
    bob.batch([PutOp(NS, "a", None), PutOp(NS, "b", None)])
    assert keys(everybody) == ["a", "b"]
    ada.batch([PutOp(NS, "a", None), PutOp(NS, "b", None)])
    assert keys(everybody) == ["b"]


# Locks


def test_batches_that_put_and_delete_the_same_items_in_other_orders_do_not_deadlock(
    saver: PostgresSaver, url: str, tables: psycopg.Connection
) -> None:
    with Store(saver, ttl={"refresh_on_read": True, "default_ttl": 60}) as store, PostgresSaver(url) as another:
        store.setup()
        other = Store(another)

        def put(store: Store, order: list[str]) -> None:
            for number in range(30):
                store.batch([PutOp(NS, key, {"n": number}, ttl=60) for key in order])

        def delete() -> None:
            for _ in range(30):
                store.batch([PutOp(NS, key, None) for key in KEYS[::-7]])

        def refresh() -> None:
            for _ in range(30):
                store.batch([GetOp(NS, key, refresh_ttl=True) for key in KEYS[::-1]])

        at_once(lambda: put(store, KEYS), lambda: put(other, KEYS[::-1]), delete, refresh)
        put(store, KEYS)
        assert keys(store) == KEYS
    ((deadlocks,),) = tables.execute(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    ).fetchall()
    assert deadlocks == 0


def test_puts_of_many_threads_travel_together_and_a_refused_one_fails_alone(saver: PostgresSaver) -> None:
    ada, bob = Store(saver.for_owner("ada")), Store(saver.for_owner("bob"))
    ada.put(NS, "of ada", {})

    def puts(number: int) -> None:
        for key in KEYS:
            bob.put(("users", str(number)), key, {"n": number})

    def refused() -> None:
        for _ in range(30):
            with pytest.raises(PermissionError):
                bob.put(NS, "of ada", {})

    at_once(refused, *(lambda number=number: puts(number) for number in range(8)))
    assert {tuple(keys(bob, ("users", str(number)))) for number in range(8)} == {tuple(KEYS)}


def test_two_sweepers_share_the_work(saver: PostgresSaver, store: Store) -> None:
    store.batch([PutOp(NS, key, {}, ttl=60) for key in KEYS])
    store.put(NS, "stays", {})
    removed: list[int] = []
    items = store._items
    at_once(*[lambda: removed.append(len(run(saver, items.sweep, 10**18, 40, writes=True))) for _ in range(4)])
    removed.append(len(run(saver, items.sweep, 10**18, 1000, writes=True)))
    assert sum(removed) == len(KEYS)
    assert keys(store) == ["stays"]


# Tables


def test_many_create_the_tables_at_once(url: str, tables: psycopg.Connection) -> None:
    savers = [PostgresSaver(url) for _ in range(8)]
    stores = [Store(saver) for saver in savers]
    at_once(*(lambda key=key, store=store: store.put(NS, str(key), {}) for key, store in enumerate(stores)))
    assert keys(stores[0]) == [str(number) for number in range(8)]
    for saver in savers:
        saver.close()
    found = tables.execute("SELECT count(*) FROM pg_class WHERE relname LIKE 'threadmark_store%' AND relkind = 'r'")
    assert found.fetchall() == [(1,)]


def test_a_put_during_a_move_stays(store: Store, tables: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    source, later = InMemoryStore(), threading.Thread(target=store.put, args=(NS, "diet", {"n": 2}))
    source.put(NS, "diet", {"n": 1})
    reads = PostgresItems.items

    def then_put(items: PostgresItems, keys: Sequence[ItemKey]) -> Program[dict[ItemKey, ItemRow]]:
        rows = yield from reads(items, keys)
        later.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'threadmark_store_item'::regclass"
        wait_until(
            lambda: not later.is_alive() or tables.execute(waiting).fetchone() != (0,), "the put neither ends nor waits"
        )
        return rows

    with monkeypatch.context() as patched:
        patched.setattr(PostgresItems, "items", then_put)
        assert source.export(store).items == 1
    later.join()
    found = store.get(NS, "diet")
    assert found is not None
    assert found.value == {"n": 2}


def test_each_schema_has_its_own_items(url: str) -> None:
    with PostgresSaver(url, schema="one") as first, PostgresSaver(url, schema="an other") as second:
        one, other = Store(first), Store(second)
        one.put(NS, "a", {"n": 1})
        assert other.get(NS, "a") is None
        other.put(NS, "b", {"n": 2})
        assert (keys(one), keys(other)) == (["a"], ["b"])


def test_a_role_that_may_create_no_tables_learns_which_script_to_run(url: str, tables: psycopg.Connection) -> None:
    role = f"writer_{next(_numbers)}"
    with PostgresSaver(url, schema="agents") as saver:
        saver.setup()
    tables.execute(f"CREATE ROLE {role} LOGIN")
    try:
        tables.execute(f"GRANT USAGE ON SCHEMA agents TO {role}")
        tables.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA agents TO {role}")
        with PostgresSaver(url.replace("postgres@", f"{role}@"), schema="agents") as limited:
            store = Store(limited)
            with pytest.raises(StoreError, match=r"tables\.postgres\.ddl\('item', 'agents'\)"):
                store.put(NS, "a", {})
            tables.execute(ddl("item", "agents"))
            tables.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON agents.threadmark_store_item TO {role}")
            store.put(NS, "a", {"n": 1})
            store.setup()
            assert keys(store) == ["a"]
    finally:
        tables.execute(f"DROP OWNED BY {role}")
        tables.execute(f"DROP ROLE {role}")


# Values


def test_text_that_postgres_has_not_comes_back(store: Store) -> None:
    names = ["a\0b", "a\x01b", "\ud800", "ü 🌍", "'\"\\", ""]
    labels = [name.replace("\0", "") or "empty" for name in names]
    for label, name in zip(labels, names, strict=True):
        store.put(("labels", label), name, {"key": name, name: [name]})
    for label, name in zip(labels, names, strict=True):
        found = store.get(("labels", label), name)
        assert found
        assert (found.namespace, found.key, found.value) == (("labels", label), name, {"key": name, name: [name]})
        assert keys(store, ("labels", label)) == [name]
    assert sorted(keys(store, ("labels",))) == sorted(names)


def test_the_text_of_json_is_kept_as_it_came(store: Store, tables: psycopg.Connection) -> None:
    value = {"z": 1.0, "a": [1e22, -0.0, 5e-324, 2**63 - 1], "ü": "é\n", "nested": {"b": None, "a": True}}
    store.put(NS, "a", value)
    ((text,),) = tables.execute("SELECT json::text FROM threadmark_store_item").fetchall()
    assert text == orjson.dumps(value).decode()
    found = store.get(NS, "a")
    assert found
    assert repr(found.value) == repr(value)


def test_one_item_is_stored_as_several_are(store: Store, tables: psycopg.Connection) -> None:
    for _ in range(2):  # new items, and items that are there
        store.batch([PutOp(("several",), f"{number:03}", {"k": value}, None, 7) for number, value in enumerate(VALUES)])
        for number, value in enumerate(VALUES):
            store.put(("one",), f"{number:03}", {"k": value}, ttl=7)
    columns = "key, json::text, data, owner, ttl, expires_at - updated_at <= ttl, created_at < updated_at"
    found = f"SELECT {columns} FROM threadmark_store_item WHERE namespace = %s ORDER BY key"
    one, several = (tables.execute(found, [name]).fetchall() for name in ("one", "several"))
    assert one == several
    assert len(one) == len(VALUES)
    assert len(store.search(("one",), limit=100)) == len(VALUES)  # the checks are right


def test_a_lost_value_is_reported(store: Store, tables: psycopg.Connection) -> None:
    store.put(NS, "a", {"n": 1})
    tables.execute("UPDATE threadmark_store_item SET json = NULL")
    with pytest.raises(CorruptDataError, match=r"item 'a' of namespace 'users\.ada'"):
        store.get(NS, "a")


def test_a_key_that_no_index_holds_is_refused_before_anything_is_stored(store: Store) -> None:
    with pytest.raises(ConfigError, match="has a key of 2609 bytes with its namespace"):
        store.batch([PutOp(NS, "a", {}), PutOp(NS, "é" * 1300, {})])
    assert keys(store) == []
    longest = "".join(chr(0x4E00 + number % 20_000) for number in range(860))
    store.put(NS, longest, {})
    assert keys(store) == [longest]


# Conditions

VALUES: list[Any] = [
    *("red", "reddish", "", "5", "-", "é", 'say "red"', "a\\b", "null", "true", "a\nb"),
    *(0, 1, 5, 50, -5, 10**15, 2**53 - 1, 2**62, 2**63 - 1, -(2**63)),
    *(0.0, -0.0, 5.0, 5.5, 0.1 + 0.2, 1e15, 1e16, 1e22, -1.5e300, 5e-324, float("inf")),
    *(True, False, None, [], ["red"], {}, {"k": "red"}, {"k": {"k": 5}}, {"other": 1}, "a\0b", "\ud800", {1: 2}),
]
FILTERS: list[dict[str, Any]] = [
    *({"k": value} for value in VALUES),
    *({"k": {sign: value}} for sign in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte") for value in VALUES[:32]),
    {"k": {"$gte": -10, "$lt": 60}},
    {"k": {"k": {"k": {"$gt": 1}}}},
    {"k": {"0": "red"}},
    {"k\0": 1},
    {"\ud800": {"$gt": 1}},
    {'"k"': "red", "k": "red"},
]


@pytest.fixture(scope="module")
def odd(server: PostgresServer) -> Iterator[tuple[Store, psycopg.Connection]]:
    """A store with an item for each value, and a connection that sees its tables."""
    url = server.database("test_store_odd")
    with PostgresSaver(url) as saver, psycopg.connect(url, autocommit=True) as connection:
        store = Store(saver)
        store.batch([PutOp(NS, f"{number:03}", {"k": value}) for number, value in enumerate(VALUES)])
        store.put(NS, "999", {"other": 1, "deep": {"k": "red"}})
        yield store, connection
    server.execute("DROP DATABASE test_store_odd WITH (FORCE)")


@pytest.mark.parametrize("condition", FILTERS, ids=ascii)
def test_conditions_leave_out_no_row_that_meets_the_filter(
    odd: tuple[Store, psycopg.Connection], condition: dict[str, Any]
) -> None:
    store, _ = odd
    scope = Scope("users", conditions=tuple(conditions_of(condition)))
    rows = run(store.saver, store._items.search, scope, None, 1000, 0)
    expected = {item.key for item in store.search(("users",), limit=1000) if meets(item.value, condition)}
    assert expected <= {row.key.key for row in rows}
    assert {item.key for item in store.search((), filter=condition, limit=1000)} == expected
    if scope.conditions:
        count, _ = run(store.saver, store._items.count, scope)
        assert count == len(rows)
        found = run(store.saver, store._items.in_key_order, scope, ItemKey("users.ada", "010"), 1000)
        assert [row.key.key for row in found] == sorted(row.key.key for row in rows if row.key.key > "010")


@pytest.mark.parametrize(
    ("condition", "most"),
    [
        ({"k": "red"}, 3),  # also in a dictionary below
        ({"k": 5}, 3),  # numbers with an exponent come along
        ({"k": 1e15}, 6),
        ({"k": True}, 1),
        ({"k": 0}, 7),
        ({"k": {"$gt": 10**15}}, 10),
        ({"k": {"$gte": 5, "$lte": 5.5}}, 7),
        ({"k": {"$gte": "red", "$lte": "reddish"}}, 2),
        ({"k": {"k": {"k": 5}}}, 4),  # numbers come along whose key is there once, in another place
        ({"k": {"k": 5}}, 3),
    ],
    ids=ascii,
)
def test_conditions_leave_out_nearly_all_other_rows(
    odd: tuple[Store, psycopg.Connection], condition: dict[str, Any], most: int
) -> None:
    store, connection = odd
    ((others,),) = connection.execute("SELECT count(*) FROM threadmark_store_item WHERE json IS NULL").fetchall()
    rows = run(store.saver, store._items.search, Scope(conditions=tuple(conditions_of(condition))), None, 1000, 0)
    assert len(rows) <= most + others


ODD_JSON = [
    *("null", "5", '"red"', "[]", '["k"]', "[[5]]", '{"k": 1e999999999}', '{"k": -1E+99999}', '{"k": "1e999999999"}'),
    *('{"k": "5 apples"}', '{"k": "NaN"}', '{"k": "-"}', '{"k": "\\u0041\\n"}', '{"k":1,"k":[2]}', '{"": {"k": 0}}'),
    *('{"k":' + "9" * 200_000 + "}", '{"k":0.' + "9" * 20_000 + "}", '{"k": {"k": "x"}}', "[" * 200 + "]" * 200),
    '{"k": 5e-999999}',
]


@pytest.mark.parametrize("condition", FILTERS[:: len(FILTERS) // 40] + FILTERS[-6:], ids=ascii)
def test_no_stored_json_makes_a_condition_fail(
    store: Store, tables: psycopg.Connection, condition: dict[str, Any]
) -> None:
    for number, text in enumerate(ODD_JSON):
        key = ItemKey("users.ada", str(number))
        tables.execute(
            "INSERT INTO threadmark_store_item (namespace, key, json, checksum, created_at, updated_at)"
            " VALUES (%s, %s, %s, %s, 1, 1)",
            (*key, text, check_of(key, text)),
        )
    scope = Scope("", conditions=tuple(conditions_of(condition)))
    assert len(run(store.saver, store._items.search, scope, None, 1000, 0)) <= len(ODD_JSON)


def test_sealed_values_are_compared_by_nothing(url: str) -> None:
    keyring = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32))
    with PostgresSaver(url, keyring=keyring) as saver:
        store = Store(saver)
        store.batch([PutOp(NS, "a", {"k": "red"}), PutOp(NS, "b", {"k": "blue"})])
        assert [item.key for item in store.search(NS, filter={"k": "red"})] == ["a"]


# Pages and plans


def test_pages_go_on_behind_a_place_among_items_of_one_moment(store: Store, tables: psycopg.Connection) -> None:
    store.batch([PutOp((*NS, str(number % 3)), key, {}) for number, key in enumerate(KEYS)])
    tables.execute("UPDATE threadmark_store_item SET updated_at = updated_at / 10")
    whole = run(store.saver, store._items.search, Scope("users"), None, 1000, 0)
    found, after = [], None
    while page := run(store.saver, store._items.search, Scope("users"), after, 7, 0):
        found += page
        after = Place(page[-1].updated_at, page[-1].key)
    assert found == whole
    assert sorted(row.key.key for row in whole) == KEYS


def test_a_namespace_has_those_below_it_and_no_others(store: Store) -> None:
    for namespace in (("a",), ("a", "b"), ("a", "b", "c"), ("a-b",), ("ab",), ("a!",), ("b", "a"), ("a/",)):
        store.put(namespace, "/".join(namespace), {})
    assert keys(store, ("a",)) == ["a", "a/b", "a/b/c"]
    assert keys(store, ("a", "b")) == ["a/b", "a/b/c"]
    assert keys(store, ("a-b",)) == ["a-b"]


@pytest.fixture(scope="module")
def many(server: PostgresServer) -> Iterator[psycopg.Connection]:
    """A connection to tables with 20,000 items in 200 namespaces."""
    url = server.database("test_store_many")
    with PostgresSaver(url) as saver, psycopg.connect(url, autocommit=True) as connection:
        Store(saver).batch(
            [PutOp(("users", f"{number % 200}"), str(number), {"n": number}) for number in range(20_000)]
        )
        connection.execute("ANALYZE")
        register_dumpers(connection)
        yield connection
    server.execute("DROP DATABASE test_store_many WITH (FORCE)")


def plan(connection: psycopg.Connection, program: Any, *, generic: bool = False) -> str:
    """The plan of a program's first statement, with its values or for any values."""
    query = next(program)
    assert isinstance(query, Query)
    mode = "force_generic_plan" if generic else "force_custom_plan"
    with connection.transaction(force_rollback=True):
        connection.execute(f"SET LOCAL plan_cache_mode = {mode}")
        cursor = psycopg.RawCursor(connection)
        cursor.execute(f"EXPLAIN {query.sql}", query.params)
        return "\n".join(line for (line,) in cursor.fetchall())


@pytest.mark.parametrize("generic", [True, False])
def test_a_get_a_search_and_a_deletion_use_the_index(many: psycopg.Connection, *, generic: bool) -> None:
    items = PostgresItems(Database(None))
    some = [ItemKey("users.7", str(number)) for number in range(3)]
    condition = tuple(conditions_of({"n": {"$gt": 5}}))
    for program in (
        items.items(some[:1]),
        items.items(some),
        items.delete(some, None),
        items.refresh(some, 1),
        items.search(Scope("users.7"), None, 10, 0),
        items.search(Scope("users.7", conditions=condition), None, 10, 0),
        items.in_key_order(Scope(), some[0], 10),
        items.in_key_order(Scope("users"), some[0], 10),
        items.count(Scope("users.7")),
    ):
        found = plan(many, program, generic=generic)
        assert "threadmark_store_item_pkey" in found
        assert "Seq Scan on threadmark_store_item" not in found, found
    newest = "threadmark_store_item_newest"
    assert newest in plan(many, items.search(Scope(), None, 10, 0), generic=generic)
    assert newest not in plan(many, items.search(Scope("users"), None, 10, 0), generic=generic)
    assert "threadmark_store_item_expiry" in plan(many, items.sweep(1, 10), generic=generic)


# Round trips


def through(proxy: Proxy, url: str, **options: Any) -> PostgresSaver:
    host, slash, database = url.rpartition("/")
    return PostgresSaver(f"{host.rpartition(':')[0]}:{proxy.port}{slash}{database}?sslmode=disable", **options)


@pytest.mark.parametrize("owner", [None, "ada"])
@pytest.mark.parametrize("prepare", [True, False])
def test_the_usual_calls_take_one_round_trip(
    server: PostgresServer, url: str, owner: str | None, *, prepare: bool
) -> None:
    async def body(store: Store, proxy: Proxy) -> None:
        async def trips(*ops: Op) -> int:
            before = proxy.round_trips
            await asyncio.to_thread(store.batch, ops)
            blocking = proxy.round_trips - before
            await store.abatch(ops)
            assert proxy.round_trips - before == 2 * blocking
            return blocking

        await store.asetup()
        await asyncio.to_thread(store.put, NS, "a", {})  # the first one looks at the keys of sealed items before
        await store.aget(NS, "a")
        assert await trips(PutOp(NS, "a", {"n": 1})) == 1
        assert await trips(GetOp(NS, "a")) == 1
        assert await trips(GetOp(NS, "a"), GetOp(NS, "b")) == 1
        assert await trips(SearchOp(NS)) == 1
        assert await trips(SearchOp(NS, filter={"n": {"$gt": 0}})) == 1
        assert await trips(PutOp(NS, "a", None)) == 4  # it looks for tables of vectors and words
        assert await trips(*(PutOp(NS, key, {"n": 1}) for key in KEYS)) == (1 if owner is None else 2)
        assert await trips(PutOp(NS, "a", None), PutOp(NS, "b", {})) == 5

    with Proxy(server.port) as proxy, through(proxy, url, prepare=prepare) as saver:
        asyncio.run(body(Store(saver.for_owner(owner) if owner else saver), proxy))


def test_behind_pgbouncer_threads_and_tasks_share_few_sessions() -> None:
    shared().execute("DROP SCHEMA IF EXISTS items_behind CASCADE")
    with PostgresSaver(shared_bouncer().url, schema="items_behind", prepare=False) as saver:
        store = Store(saver)

        def puts(number: int) -> None:
            for key in KEYS[:10]:
                store.put(("threads", str(number)), key, {"n": number})

        async def tasks() -> None:
            await asyncio.gather(
                *(store.aput(("tasks", str(number)), key, {"n": number}) for number in range(12) for key in KEYS[:10])
            )

        at_once(*(lambda number=number: puts(number) for number in range(12)), lambda: asyncio.run(tasks()))
        assert len(store.search(("threads",), limit=1000)) == len(store.search(("tasks",), limit=1000)) == 120
        assert len(store.list_namespaces(limit=100)) == 24


def _until_one_waits(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(500):
            found = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ).fetchall()
            if found != [(0,)]:
                return
            threading.Event().wait(0.02)
    raise AssertionError("no session waits for a lock")


# Longest keys


@pytest.mark.parametrize("with_extension", [False, True])
@pytest.mark.parametrize("sealed", [False, True])
def test_keys_and_fields_that_no_index_holds_are_refused_by_name(*, sealed: bool, with_extension: bool) -> None:
    server = with_pgvector() if with_extension else shared()
    url = server.database(f"test_long_{next(_numbers)}")
    dice = random.Random(1)

    def text(length: int) -> str:
        return "".join(dice.choices("abcdefghijklmnopqrstuvwxyz0123456789äöüßé", k=length))  # hardly compressed

    if with_extension:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
    keyring = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32))
    index: Any = {"dims": 1, "embed": lambda texts: [[1.0] for _ in texts], "fields": ["text"], "model": "m"}
    with PostgresSaver(url, keyring=keyring if sealed else None) as saver:
        finding = {"vectors": Store(saver, index=index)}
        if not sealed:
            finding["words"] = Store(saver, text_search=True)
        for name, store in finding.items():
            for length in range(2000, 2500, 9):
                key, value = text(length), {"text": text(60)}
                try:
                    store.put(("n",), key, value)
                except ConfigError as error:
                    assert f"item {repr(key)[:100]}... of namespace 'n'" in str(error), name
                    assert store.get(("n",), key) is None
                else:
                    assert store.get(("n",), key) is not None
            with pytest.raises(ConfigError, match=r"item 'k' of namespace 'n' .* fewer or shorter fields"):
                store.put(("n",), "k", {"text": "a"}, index=[text(90) for _ in range(30)])
            with pytest.raises(
                ConfigError, match=r"item 'k+\.*.* of namespace 'n' .* and Postgres indexes at most 2600"
            ):
                store.put(("n",), "k" * 2599, {"text": "a b"})
            store.put(("n",), "k" * 2500, {"text": "a b"})
            assert store.verify().problems == []
    server.execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")
