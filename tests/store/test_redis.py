"""Items on Redis: one command for a get, whole batches, indexes without leftovers, races, and a cluster's slots."""

import random
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any

import pytest
from langgraph.store.base import GetOp, PutOp
from redis.crc import key_slot

from redis_backend import cluster, processes
from redis_backend.backends import OPTIONS
from threadmark import ConfigError
from threadmark.backends import Program, Step, relay
from threadmark.memory import MemorySaver
from threadmark.program import Transaction
from threadmark.saver import Saver
from threadmark_redis import RedisSaver
from threadmark_redis.columns import from_bytes, to_bytes
from threadmark_redis.keys import shard_of
from threadmark_redis.steps import Commands, Run
from threadmark_store import Store
from threadmark_store.backends import rows_over
from threadmark_store.items import redis_layout
from threadmark_store.shapes import ItemKey, ItemRow, Place, Scope

_numbers = count()

INDEX: Any = {"dims": 2, "embed": lambda texts: [[float(len(text)), 1.0] for text in texts], "fields": ["text"]}

PAST, NOW, LATER = 1_700_000_000_000_000, 1_800_000_000_000_000, 1_900_000_000_000_000


class Database:
    """A single server or a cluster, and a prefix that only this test has."""

    def __init__(self, kind: str) -> None:
        self.prefix = f"store{next(_numbers)}:"
        self.cluster = cluster.shared() if kind == "cluster" else None
        self.url = self.cluster.url if self.cluster else processes.shared().url
        self.masters = self.cluster.masters if self.cluster else [processes.shared()]

    def saver(self) -> RedisSaver:
        """Open a saver."""
        return RedisSaver(self.url, prefix=self.prefix, **OPTIONS)

    def stored(self) -> dict[bytes, Any]:
        """Everything that is stored of items: hashes, and sorted sets with their scores."""
        found: dict[bytes, Any] = {}
        for master in self.masters:
            for key in master.client.scan_iter(f"{self.prefix}{{item-*}}[^v]*", count=10_000):  # vectors have "v" there
                is_hash = master.client.type(key) == b"hash"
                parts = (
                    master.command("HGETALL", key) if is_hash else master.command("ZRANGE", key, 0, -1, "WITHSCORES")
                )
                found[key] = dict(parts)
        return found

    def expected(self) -> dict[bytes, Any]:
        """Everything that must be stored, by the items that are."""
        prefix = self.prefix.encode()
        found: dict[bytes, Any] = defaultdict(dict)
        for key, fields in self.stored().items():
            if not key.endswith(b"i"):
                continue
            namespace = from_bytes(key.partition(b"}:")[2][:-1])
            found[key][redis_layout.VERSION] = fields.pop(redis_layout.VERSION)
            assert fields
            for name, value in fields.items():
                row = redis_layout.row_in(ItemKey(namespace, from_bytes(name)), value)
                mark = redis_layout.mark_of(row.owner)
                shard = redis_layout.shard_keys(prefix, shard_of(namespace))
                found[key][name] = value
                found[redis_layout.names_key(prefix, namespace)][name] = 0
                found[redis_layout.bucket_of(prefix, namespace, mark).order][redis_layout.place_member(row)] = 0
                found[shard.namespaces][redis_layout.namespace_member(namespace, mark)] = 0
                if mark:
                    found[shard.owners][redis_layout.owner_member(namespace, mark)] = 0
                if row.expires_at is not None:
                    found[shard.expiries][redis_layout.expiry_member(row.key, mark)] = row.expires_at
        return found


@pytest.fixture(params=["single", "cluster"])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database without items. Everything must lead to an item at the end, and to every one."""
    made = Database(request.param)
    yield made
    assert made.stored() == made.expected()
    for master in made.masters:
        master.command("FLUSHALL")


@pytest.fixture
def saver(database: Database) -> Iterator[RedisSaver]:
    """A saver on it."""
    with database.saver() as opened:
        yield opened


def _row(key: str, *, at: int = NOW, namespace: str = "a", **columns: Any) -> ItemRow:
    return ItemRow(ItemKey(namespace, key), f'{{"key":"{at}"}}', 7, at, at, **columns)


def _do(saver: Saver, program: Callable[[], Program[Any]]) -> Any:
    """Run a program as a transaction."""
    return saver._driver.run(Transaction(program, writes=True))


def _watched(program: Callable[[], Program[Any]], before: Callable[[Step], None]) -> Callable[[], Program[Any]]:
    """The program, with a call before each of its steps."""

    def answer(step: Step) -> Program[Any]:
        before(step)
        return (yield step)

    return lambda: relay(program(), answer)


def _sent(saver: Saver, program: Callable[[], Program[Any]]) -> list[Step]:
    """The steps of a program that go to servers."""
    steps: list[Step] = []
    _do(saver, _watched(program, steps.append))
    return [step for step in steps if isinstance(step, (Commands, Run))]


def test_a_get_is_one_command(saver: RedisSaver) -> None:
    items = rows_over(saver, "items")
    _do(saver, lambda: items.put([_row("one")]))
    (step,) = _sent(saver, lambda: items.items([ItemKey("a", "one")]))
    assert isinstance(step, Commands)
    assert [command[0] for command in step.commands] == [b"HGET"]


def test_text_and_bytes_come_back_as_they_are(saver: RedisSaver) -> None:
    items = rows_over(saver, "items")
    values: list[str | bytes] = ['{"a":1}', b'{"a":1}', "", b"", "\u00e4\u20ac\ud7ff", bytes(range(256)), "t" * 100_000]
    rows = [_row(str(number), at=NOW + number)._replace(value=value) for number, value in enumerate(values)]
    _do(saver, lambda: items.put(rows))
    found = _do(saver, lambda: items.items([row.key for row in rows]))
    assert found == {row.key: row for row in rows}
    assert [type(found[row.key].value) for row in rows] == [type(value) for value in values]


def test_nothing_is_left_when_the_last_item_goes(database: Database, saver: RedisSaver) -> None:
    items = rows_over(saver, "items")
    rows = [
        _row(f"{number}", namespace=namespace, owner=owner, expires_at=expires_at, ttl=None if number else 5)
        for namespace in ("a", "a.b", "c}h", "d\0e", "\u00fc" * 200)
        for owner, expires_at in (("ada", None), ("ada\0", LATER), (None, LATER))
        for number in range(2)
    ]
    for number, row in enumerate(rows):
        named = row._replace(key=ItemKey(row.key.namespace, f"{number}"))
        _do(saver, lambda named=named: items.put([named]))  # type: ignore[misc]  # a default binds it now
    assert _do(saver, lambda: items.count(Scope()))[0] == len(rows)
    assert database.stored() == database.expected()
    assert len(_do(saver, lambda: items.sweep(LATER, 1000))) == len(rows) * 2 // 3
    assert database.stored() == database.expected()
    left = [row.key for row in _do(saver, lambda: items.in_key_order(Scope(), None, 100))]
    _do(saver, lambda: items.delete(left, "bob"))
    assert _do(saver, lambda: items.count(Scope()))[0] == len(left)
    _do(saver, lambda: items.delete(left, None))
    assert database.stored() == {}


def test_an_empty_namespace_is_listed_no_longer(saver: RedisSaver) -> None:
    store = Store(saver)
    store.put(("a", "b"), "one", {})
    store.put(("a", "b"), "two", {})
    store.put(("a",), "three", {})
    store.delete(("a", "b"), "one")
    assert store.list_namespaces() == [("a",), ("a", "b")]
    store.delete(("a", "b"), "two")
    assert store.list_namespaces() == [("a",)]


def test_a_batch_with_an_item_of_another_owner_changes_nothing(database: Database, saver: RedisSaver) -> None:
    ada, bob = Store(saver.for_owner("ada")), Store(saver.for_owner("bob"))
    for number in range(40):
        ada.put(("a", str(number)), "kept", {"n": number})
    bob.put(("a", "7"), "of bob", {})
    before = database.stored()
    puts = [PutOp(("a", str(number)), "new", {"n": -1}) for number in range(40)]
    removed = PutOp(("a", "3"), "kept", None)
    with pytest.raises(PermissionError, match="belongs to another owner than 'ada'"):
        ada.batch([*puts[:20], removed, PutOp(("a", "7"), "of bob", {}), *puts[20:]])
    assert database.stored() == before


def test_puts_and_removals_of_a_batch_are_one_script_on_one_server(database: Database, saver: RedisSaver) -> None:
    items = rows_over(saver, "items")
    _do(saver, lambda: items.put([_row("old", namespace=str(number)) for number in range(30)]))

    def program() -> Program[None]:
        yield from items.delete([ItemKey(str(number), "old") for number in range(30)], None)
        yield from items.put([_row("new", namespace=str(number)) for number in range(30)])

    scripts = [step for step in _sent(saver, program) if isinstance(step, Run)]
    assert len(scripts) == (len({key_slot(step.keys[0]) for step in scripts}) if database.cluster else 1)
    assert {row.key.key for row in _do(saver, lambda: items.search(Scope(), None, 100, 0))} == {"new"}


def test_reads_of_a_transaction_see_its_removals(saver: RedisSaver) -> None:
    items = rows_over(saver, "items")
    key = ItemKey("a", "one")
    reads: list[tuple[Callable[[], Program[Any]], Any]] = [
        (lambda: items.items([key]), {}),
        (lambda: items.search(Scope("a"), None, 10, 0), []),
        (lambda: items.in_key_order(Scope(), None, 10), []),
        (lambda: items.namespaces(Scope()), []),
        (lambda: items.count(Scope()), (0, 0)),
        (lambda: items.delete([key], None), None),
    ]
    for read, expected in reads:
        _do(saver, lambda: items.put([_row("one")]))

        def program(read: Callable[[], Program[Any]] = read) -> Program[Any]:
            yield from items.delete([key], None)
            return (yield from read())

        assert _do(saver, program) == expected
        assert _do(saver, lambda: items.items([key])) == {}


def test_an_item_keeps_its_owner_if_one_without_an_owner_replaces_it(saver: RedisSaver) -> None:
    items = rows_over(saver, "items")
    _do(saver, lambda: items.put([_row("one", at=PAST, owner="ada", expires_at=LATER)]))
    assert _do(saver, lambda: items.put([_row("one"), _row("two")])) == []
    (found,) = _do(saver, lambda: items.search(Scope(owner="ada"), None, 10, 0))
    assert found == _row("one", owner="ada")._replace(created_at=PAST)
    assert _do(saver, lambda: items.put([_row("two", owner="ada")])) == [ItemKey("a", "two")]
    _do(saver, lambda: items.delete([ItemKey("a", "one")], None))
    assert _do(saver, lambda: items.namespaces(Scope(owner="ada"))) == []


def test_an_item_that_is_replaced_by_another_owner_s_in_between(database: Database, saver: RedisSaver) -> None:
    """One without an owner learns whose an item is from the script, and this may change until it is sent again."""
    items = rows_over(saver, "items")
    _do(saver, lambda: items.put([_row("one", owner="ada")]))
    key = ItemKey("a", "one")
    scripts = count()
    with database.saver() as other:

        def before(step: Step) -> None:
            if isinstance(step, Run):
                number = next(scripts)
                if number in (1, 2):
                    _do(other, lambda: items.delete([key], None))
                if number == 1:
                    _do(other, lambda: items.put([_row("one", owner="bob")]))

        assert _do(saver, _watched(lambda: items.put([_row("one", at=LATER)]), before)) == []
    assert next(scripts) == 4
    assert _do(saver, lambda: items.items([key])) == {key: _row("one", at=LATER)}


@pytest.mark.parametrize("change", ["refresh", "put", "put without an end", "delete"])
def test_a_sweep_leaves_an_item_that_was_changed_since_it_was_found(
    database: Database, saver: RedisSaver, change: str
) -> None:
    items = rows_over(saver, "items")
    keys = [ItemKey("a", str(number)) for number in range(3)]
    _do(saver, lambda: items.put([_row(key.key, at=PAST, owner="ada", expires_at=PAST, ttl=10) for key in keys]))
    with database.saver() as other:
        changes: dict[str, Callable[[], Program[Any]]] = {
            "refresh": lambda: items.refresh([keys[1]], NOW),
            "put": lambda: items.put([_row("1", owner="ada", expires_at=LATER)]),
            "put without an end": lambda: items.put([_row("1", owner="ada")]),
            "delete": lambda: items.delete([keys[1]], None),
        }

        def before(step: Step) -> None:
            if isinstance(step, Run):
                _do(other, changes[change])

        assert len(_do(saver, _watched(lambda: items.sweep(NOW, 10), before))) == 2
    left = _do(saver, lambda: items.items(keys))
    assert list(left) == ([] if change == "delete" else [keys[1]])
    if change == "refresh":
        assert left[keys[1]] == _row("1", at=PAST, owner="ada", expires_at=NOW + 10, ttl=10)


def test_a_sweep_takes_the_first_that_expired_and_no_more_than_asked(saver: RedisSaver) -> None:
    items = rows_over(saver, "items")
    rows = [_row("one", namespace=str(number), expires_at=PAST + number) for number in range(50)]
    _do(saver, lambda: items.put(rows))
    assert len(_do(saver, lambda: items.sweep(PAST + 40, 7))) == 7
    left = _do(saver, lambda: items.in_key_order(Scope(), None, 100))
    assert sorted(row.expires_at - PAST for row in left) == list(range(7, 50))
    assert len(_do(saver, lambda: items.sweep(PAST + 40, 100))) == 34
    assert len(_do(saver, lambda: items.sweep(PAST + 40, 100))) == 0


def test_entries_that_lead_to_nothing_do_not_stop_sweeps(database: Database, saver: RedisSaver) -> None:
    items = rows_over(saver, "items")
    _do(saver, lambda: items.put([_row("one", expires_at=PAST), _row("two", expires_at=PAST + 1)]))
    stray = redis_layout.expiry_member(ItemKey("a", "lost"), b"")
    key = next(key for key in database.stored() if key.endswith(b"x"))
    server = database.cluster.master_of(key) if database.cluster else processes.shared()
    server.client.zadd(key, {stray: PAST - 1})
    assert [len(_do(saver, lambda: items.sweep(NOW, 1))) for _ in range(3)] == [0, 1, 1]
    assert database.stored() == {}


def test_a_search_finds_an_item_that_is_updated_while_it_runs(database: Database, saver: RedisSaver) -> None:
    items = rows_over(saver, "items")
    _do(saver, lambda: items.put([_row(str(number), at=PAST + number) for number in range(10)]))
    with database.saver() as other:

        def before(step: Step) -> None:
            if isinstance(step, Commands) and step.commands[0][0] == b"HGET":
                _do(other, lambda: items.put([_row("3"), _row("5", at=NOW + 1)]))
                _do(other, lambda: items.delete([ItemKey("a", "4")], None))

        search = _watched(lambda: items.search(Scope("a"), None, 8, 0), before)
        assert [row.key.key for row in _do(saver, search)] == list("53987621")


@pytest.mark.parametrize("at", range(1, 6))
def test_reads_of_a_transaction_show_one_moment(database: Database, saver: RedisSaver, at: int) -> None:
    items = rows_over(saver, "items")
    keys = [ItemKey(namespace, "one") for namespace in ("a", "b", "c")]
    _do(saver, lambda: items.put([_row("one", at=PAST, namespace=key.namespace) for key in keys[:2]]))
    sent = count()
    with database.saver() as other:

        def before(step: Step) -> None:
            if isinstance(step, Commands) and next(sent) == at:  # a whole batch of another client's
                for change in (_row("one", namespace=key.namespace) for key in keys[1:]):
                    _do(other, partial(items.put, [change]))
                _do(other, lambda: items.delete(keys[:1], None))

        def program() -> Program[Any]:
            one = yield from items.items(keys[:1])
            every = yield from items.items(keys)
            found = yield from items.search(Scope(), None, 10, 0)
            return len(one), sorted(every), sorted(row.key for row in found), {row.updated_at for row in found}

        seen = _do(saver, _watched(program, before))
    assert seen in ((1, keys[:2], keys[:2], {PAST}), (0, keys[1:], keys[1:], {NOW}))


@pytest.mark.parametrize("size", [1, 3, 100])
def test_items_of_one_moment_are_paged_by_key(saver: RedisSaver, size: int) -> None:
    items = rows_over(saver, "items")
    rows = [
        _row(f"{number:02}", at=NOW - (number % 2), namespace=namespace, owner=owner)
        for number in range(12)
        for namespace, owner in (("a", "ada"), ("a.b", None), ("a-b", None), ("a.c", "bob"))
    ]
    rows += [_row(f"{number:02}0", namespace="a", owner="bob") for number in range(4)]
    _do(saver, lambda: items.put(rows))
    expected = sorted((-row.updated_at, row.key) for row in rows if row.key.namespace != "a-b")
    found: list[ItemRow] = []
    after = None
    while page := _do(saver, partial(items.search, Scope("a"), after, size, 0)):
        found += page
        after = Place(page[-1].updated_at, page[-1].key)
    assert [(-row.updated_at, row.key) for row in found] == expected


def test_pages_in_the_order_of_keys_go_through_many_namespaces(saver: RedisSaver) -> None:
    items = rows_over(saver, "items")
    names = [f"a.{number:04}" for number in range(1500)]
    rows = [_row(str(number), namespace=name) for name in [*names, "b"] for number in range(2 if name < "b" else 300)]
    _do(saver, lambda: items.put(rows))
    for scope, expected in ((Scope("a"), rows[:3000]), (Scope(), rows)):
        found: list[ItemKey] = []
        while page := _do(saver, partial(items.in_key_order, scope, found[-1] if found else None, 700)):
            found += [row.key for row in page]
        assert found == sorted(row.key for row in expected)


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_items_in_memory(database: Database, saver: RedisSaver, seed: int) -> None:
    dice = random.Random(seed)
    labels = ["a", "b", "a.b", "a.b.c", "a-b", "a\0b", "\u00e4", "\ud800", "a\0"]
    keys = ["one", "one.two", "", "\0", "\U0001f600", "\udfff", "o\0"]
    owners = [None, None, "ada", "", "ada\0"]
    with MemorySaver() as memory:
        theirs, ours = rows_over(memory, "items"), rows_over(saver, "items")

        def key() -> ItemKey:
            return ItemKey(dice.choice(labels), dice.choice(keys))

        def row(at: int, owner: str | None) -> ItemRow:
            ttl = dice.choice([None, None, 3, 20])
            values: list[str | bytes] = ['{"a":1}', b"\x01abc", '{"b":"\u00e4"}']
            value = dice.choice(values)
            return ItemRow(key(), value, dice.randrange(-99, 99), at, at, owner, None if ttl is None else at + ttl, ttl)

        for at in range(100):
            owner = dice.choice(owners)
            rows = list({each.key: each for each in (row(at, owner) for _ in range(dice.randrange(1, 5)))}.values())
            if dice.random() < 0.3 and owner is None:
                rows = rows[:1]
            scope = Scope(dice.choice(["", *labels]), dice.choice(owners), dice.choice([None, at]))
            after = Place(dice.randrange(at + 1), key()) if dice.random() < 0.5 else None
            limit, offset = dice.randrange(8), dice.randrange(4)
            asked: list[tuple[str, tuple[Any, ...]]] = [
                ("delete", ([key(), key()], dice.choice(owners))),
                ("put", (rows[:1],)),
                ("refresh", ([key(), key()], at)),
                ("sweep", (at - 10, 100)),
                ("items", ([key(), key(), key()],)),
                ("search", (scope, after, limit, offset)),
                ("in_key_order", (scope, None if after is None else after.key, limit)),
                ("namespaces", (scope,)),
                ("count", (scope,)),
            ]
            for name, arguments in asked:
                expected = _do(memory, partial(getattr(theirs, name), *arguments))
                answer = _do(saver, partial(getattr(ours, name), *arguments))
                if name == "sweep":
                    answer, expected = sorted(answer), sorted(expected)
                assert answer == expected, (name, arguments)
        assert database.stored() == database.expected()


def test_nothing_gets_lost_where_many_change_the_same_items(database: Database, saver: RedisSaver) -> None:
    stores = [Store(saver), Store(saver.for_owner("ada")), Store(saver.for_owner("bob"), ttl={"refresh_on_read": True})]

    def work(number: int) -> None:
        dice = random.Random(number)
        for _ in range(60):
            store = dice.choice(stores)
            namespace, key = ("a", str(dice.randrange(3))), str(dice.randrange(3))
            ops: list[Any] = [PutOp(namespace, key, dice.choice([None, {"n": 1}]), ttl=dice.choice([None, 0.00001, 5]))]
            ops.append(GetOp(namespace, key, refresh_ttl=True))
            try:
                store.batch(ops)
                store.search(("a",))
            except PermissionError:
                pass
            if not dice.randrange(5):
                store.sweep_ttl()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert database.stored() == database.expected()


def test_a_cluster_s_items_lie_on_all_of_its_nodes() -> None:
    database = Database("cluster")
    with database.saver() as saver:
        store = Store(saver)
        store.batch([PutOp(("user", str(number)), "one", {"n": number}) for number in range(30)])
        assert database.cluster is not None
        assert {database.cluster.master_of(key).port for key in database.stored()} == {
            master.port for master in database.masters
        }
        assert [item.value["n"] for item in store.search(("user",), limit=30)] == list(range(29, -1, -1))
        assert len(store.list_namespaces(limit=1000)) == 30
        store.batch([PutOp(("user", str(number)), "one", None) for number in range(30)])
        assert database.stored() == {}


def test_a_namespace_that_is_too_long_is_refused_and_has_no_items(saver: RedisSaver) -> None:
    store, longest = Store(saver), ("n" * 65_535,)
    store.put(longest, "a", {"n": 1}, ttl=1000)
    longer = (*longest, "é")
    with pytest.raises(ConfigError, match="more than 65,535 bytes"):
        store.batch([PutOp(("short",), "a", {"n": 1}), PutOp(longer, "a", {"n": 1})])
    assert store.get(longer, "a") is None
    assert store.search(longer) == []
    store.delete(longer, "a")
    assert store.list_namespaces() == [longest]
    store.delete(longest, "a")
    assert store.list_namespaces() == []


def test_items_are_no_threads(saver: RedisSaver) -> None:
    """A repair looks for heads of threads among all keys."""
    store = Store(saver)
    for namespace in ("h", "}h", "x}e", "e"):
        for key in ("i", "v", "e"):
            store.put((namespace,), key, {"n": 1})
    assert saver.verify(repair=True).problems == []
    assert saver.list_threads().threads == []


def test_a_damaged_row_is_reported(database: Database, saver: RedisSaver) -> None:
    store = Store(saver)
    store.put(("a",), "one", {"n": 1})
    key = redis_layout.items_key(database.prefix.encode(), "a")
    server = database.cluster.master_of(key) if database.cluster else processes.shared()
    whole: bytes = server.command("HGET", key, "one")
    for damaged in (b"", whole[:20], whole[:-1], b"b" + whole[1:-1] + b"x", to_bytes("\ud800") * 20):
        server.client.hset(key, "one", damaged)
        with pytest.raises(Exception, match="item 'one' of namespace 'a'"):
            store.get(("a",), "one")
    server.client.hset(key, "one", whole)


def test_a_put_and_a_delete_at_once_leave_an_item_with_its_vectors_or_neither(saver: RedisSaver) -> None:
    store = Store(saver, index=INDEX)
    ready = threading.Barrier(2)

    def put() -> None:
        ready.wait(30)
        store.put(("a",), "k", {"text": "another"})

    def delete() -> None:
        ready.wait(30)
        store.delete(("a",), "k")

    with ThreadPoolExecutor(2) as threads:
        for _ in range(50):
            store.put(("a",), "k", {"text": "first"})
            for each in [threads.submit(put), threads.submit(delete)]:
                each.result(60)
            assert (store.stats().items, store.stats().vectors) in ((0, 0), (1, 1))


def test_vectors_that_do_not_read_are_reported_and_computed_again(database: Database, saver: RedisSaver) -> None:
    store = Store(saver, index=INDEX)
    for key in ("k", "other"):
        store.put(("a",), key, {"text": "abc"})
    place = b"%b{item-%d}v:a" % (database.prefix.encode(), shard_of("a"))
    server = database.cluster.master_of(place + b"r") if database.cluster else processes.shared()
    for end in (b"r", b"h"):
        whole: bytes = server.command("HGET", place + end, "k")
        for damaged in (
            whole[:-3],
            b"\x93",
            b"\x91\xc0",
            b"\xc0",
            b"\x07",
            b"\x91\x93\x01\x02\x03",
            b"\x91\x96\x90\x00\xc4\x00\xa0\x00\xc0",
        ):
            server.client.hset(place + end, "k", damaged)
            if end == b"r":  # the rows with their data
                assert [each.location for each in store.verify().problems] == ["item 'k' of namespace 'a', vector ''"]
            else:
                assert store.report().vectors_of_model == 1
            assert {item.key for item in store.search(("a",), query="abc")} == {"k", "other"}
            assert (store.reindex(), store.reindex()) == (1, 0)
            assert store.verify().problems == []
            assert store.report().vectors_of_model == 2


def test_the_proof_of_a_change_is_no_key_of_a_namespace() -> None:
    """It is a key of a moment, named after the first one that the change is about."""
    name = next(name for name in map("docs{}".format, count()) if shard_of(name) == shard_of(f"{name}i:mar"))
    with RedisSaver(cluster.shared().url, prefix="proof:", durability="replicas:1") as saver:
        store = Store(saver)
        for namespace in (f"{name}i:mar", name):
            store.put((namespace,), "key", {})
        assert store.verify().items == 2
    for master in cluster.shared().masters:
        master.command("FLUSHALL")
