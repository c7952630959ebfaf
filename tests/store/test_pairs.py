"""Items of replicated pairs: both databases end up with the same, and nothing acknowledged is lost."""

import json
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.store.base import IndexConfig, PutOp, TTLConfig

from length import ALL
from postgres.cluster import shared
from replication.backends import BACKENDS
from replication.links import Link, linked
from threadmark import (
    Checkpoint,
    ConfigError,
    Keyring,
    MemorySaver,
    ReplicationError,
    Saver,
    States,
    new_id,
    replicated,
)
from threadmark.backends import Program, StoreError, now
from threadmark.errors import CorruptDataError, MissingDependencyError
from threadmark.program import Transaction
from threadmark.replication.others import shard_id_of, tables_of
from threadmark.store.replica import Entry
from threadmark.types import ReplicatedSaver
from threadmark_conformance.item_stores import STORE_CASES, StoreCase, over_savers, run_store_case
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisSaver
from threadmark_sqlite import SqliteSaver
from threadmark_store import Store
from threadmark_store.pairs.changes import SHARD_IDS, Changed, Removal, moved_behind, wins
from threadmark_store.pairs.tables import ask_side
from threadmark_store.shapes import ItemKey, ItemRow, Scope
from threadmark_store.vectors.sql import TableVectors

_NS = ("users", "ada")
_PATIENCE = 60.0


class Sides:
    """A pair whose sides can be taken away, and its store."""

    def __init__(self, pair: ReplicatedSaver, links: list[Link]) -> None:
        self.pair = pair
        self.links = links
        self.store = Store(pair)

    def rows(self) -> list[list[ItemRow]]:
        """The items of both sides."""
        found = []
        for side in self.pair._pair.pair.sides:
            transaction = Transaction(ask_side, (side, "items", "in_key_order", Scope(), None, 10_000))
            found.append(side.driver.run(transaction))
        return found

    def equal_keys(self) -> list[str]:
        """The keys of both sides, whose items are equal."""
        one, other = self.rows()
        assert one == other
        return [row.key.key for row in one]


@contextmanager
def sides(first: Saver, second: Saver, **options: Any) -> Iterator[Sides]:
    """A pair of two savers."""
    (one, here), (other, there) = linked(first), linked(second)
    with first, second, replicated(one, other, deadline=_PATIENCE, health_interval=0.01, **options) as pair:
        yield Sides(pair, [here, there])


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sides]:
    """A pair of two databases of a kind, of which the second is in memory if the first is on Postgres."""
    with ExitStack() as closing:
        if request.param == "postgres":
            url = shared().database("pairs_of_items")
            closing.callback(shared().execute, "DROP DATABASE pairs_of_items WITH (FORCE)")
            savers: tuple[Saver, Saver] = (PostgresSaver(url), MemorySaver())
        elif request.param == "sqlite":
            savers = SqliteSaver(tmp_path / "one.db"), SqliteSaver(tmp_path / "other.db")
        else:
            savers = MemorySaver(), MemorySaver()
        yield closing.enter_context(sides(*savers))


@pytest.fixture
def memory() -> Iterator[Sides]:
    """A pair in memory."""
    with sides(MemorySaver(), MemorySaver()) as two:
        yield two


def test_items_survive_the_loss_of_a_side(two: Sides) -> None:
    two.store.put(_NS, "kept", {"n": 1})
    two.store.put(_NS, "gone", {"n": 1})
    two.store.delete(_NS, "gone")
    created = two.rows()[0][0].created_at
    two.links[0].way = "closed"
    assert [item.key for item in two.store.search(("users",))] == ["kept"]
    with pytest.raises(ReplicationError, match="is away"):
        two.store.put(_NS, "kept", {"n": 2})
    assert two.pair.status().complete
    two.pair.promote(force=True)
    with pytest.raises(ReplicationError, match="has what was written to items"):
        two.store.put(_NS, "kept", {"n": 3})
    two.links[0].way = "open"
    two.pair.promote("secondary")
    two.pair.drain()
    assert two.equal_keys() == ["kept"]
    two.pair.promote("primary")
    found = two.store.get(_NS, "kept")
    assert found is not None
    assert found.value == {"n": 3}
    assert two.rows()[0][0].created_at == created
    two.store.delete(_NS, "kept")
    assert two.equal_keys() == []


def test_of_two_changes_made_apart_the_later_one_wins(two: Sides) -> None:
    for key in ("put", "removed"):
        two.store.put(_NS, key, {"n": 0})
    two.links[1].way = "closed"
    for key in ("put", "removed", "begun"):
        with pytest.raises(ReplicationError, match="Until both have it a write fails"):
            two.store.put(_NS, key, {"n": 1})
    two.links[0].way, two.links[1].way = "closed", "open"
    two.pair.promote("secondary", force=True)
    # This side knows nothing of the one that was begun.
    for key, value in (("put", {"n": 2}), ("removed", None), ("begun", None)):
        with pytest.raises(ReplicationError, match="Until both have it a write fails"):
            two.store.batch([PutOp(_NS, key, value)])
    two.links[0].way = "open"
    two.pair.reconcile()
    assert two.pair.drain() == 0
    assert two.equal_keys() == ["put"]
    assert json.loads(two.rows()[0][0].value) == {"n": 2}


def test_a_long_outbox_is_copied_in_parts(memory: Sides) -> None:
    memory.store.put(_NS, "000", {})
    memory.links[1].way = "closed"
    for number in range(300):
        with pytest.raises(ReplicationError):
            memory.store.put(_NS, f"{number:03}", {"n": number})
    memory.links[1].way = "open"
    assert memory.pair.drain() == 0
    assert len(memory.equal_keys()) == 300


def test_items_that_are_read_live_on_on_both_sides(memory: Sides) -> None:
    ttl: TTLConfig = {"refresh_on_read": True}
    store = Store(memory.pair, ttl=ttl)
    store.put(_NS, "short", {}, ttl=0.00001)
    store.put(_NS, "long", {}, ttl=5)
    before = {row.key.key: row.expires_at for row in memory.rows()[1]}
    store.get(_NS, "long")
    after = {row.key.key: row.expires_at for row in memory.rows()[1]}
    assert (after["long"] or 0) > (before["long"] or 0)
    assert store.sweep_ttl() == 1
    assert memory.equal_keys() == ["long"]
    memory.links[0].way = "closed"
    assert store.get(_NS, "long") is not None  # though it cannot be noted that it was read
    store.search(_NS)


def test_a_read_by_a_slow_clock_does_not_shorten_a_life(memory: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(memory.pair, ttl={"refresh_on_read": True})
    store.put(_NS, "long", {}, ttl=5)
    before = [row.expires_at for row in memory.rows()[0]]
    monkeypatch.setattr("threadmark_store.store.now", lambda: now() - 60_000_000)
    assert store.get(_NS, "long") is not None
    assert [row.expires_at for row in memory.rows()[0]] == before
    assert memory.equal_keys() == ["long"]


def test_a_database_with_items_becomes_a_side() -> None:
    first = MemorySaver()
    Store(first).put(_NS, "before", {"n": 1})
    with sides(first, MemorySaver(), on_secondary_failure="continue") as two:
        assert not two.pair.status().complete
        report = two.pair.reconcile(dry_run=True)
        assert (report.items, len(two.rows()[1])) == (1, 0)
        assert two.pair.reconcile().items == 1
        assert two.pair.status().complete
        assert two.equal_keys() == ["before"]
        assert two.pair.reconcile().items == 0


def test_items_that_only_the_other_side_has_stay_there_unless_you_ask_for_them() -> None:
    second = MemorySaver()
    with sides(MemorySaver(), second) as two:
        two.store.put(_NS, "copied", {"n": 1})
        Store(second).put(_NS, "only there", {"n": 1})
        Store(second).put(_NS, "copied", {"n": 2})  # the later one
        report = two.pair.reconcile()
        assert (report.items, report.items_only_there) == (1, 1)
        assert [len(rows) for rows in two.rows()] == [1, 2]
        assert not two.pair.promote("secondary").complete
        assert two.pair.promote("primary") is not None
        assert two.pair.reconcile(both_ways=True).items_only_there == 0
        assert two.equal_keys() == ["copied", "only there"]
        assert json.loads(two.rows()[0][0].value) == {"n": 2}


@pytest.mark.parametrize("restored", ["active", "standby"])
def test_a_side_that_was_restored_from_a_backup_is_completed_from_the_other_one(tmp_path: Path, restored: str) -> None:
    paths = [tmp_path / "active.db", tmp_path / "standby.db"]

    def pair() -> ReplicatedSaver:
        return replicated(*map(SqliteSaver, paths))

    with pair() as saver:
        store = Store(saver)
        for key in ("changed", "removed"):
            store.put(_NS, key, {"n": 1})
            States(saver).save(key, {"n": 1})
    path = tmp_path / f"{restored}.db"
    before = path.read_bytes()
    with pair() as saver:
        store = Store(saver)
        for key in ("changed", "begun"):
            store.put(_NS, key, {"n": 2})
            States(saver).save(key, {"n": 2})
        store.delete(_NS, "removed")
        saver.delete_thread("removed")
    path.write_bytes(before)
    with pair() as saver:
        store = Store(saver)
        report = saver.reconcile(both_ways=restored == "active")
        assert report.items_only_there == (1 if restored == "standby" else 0)
        store.delete(_NS, "removed")
        saver.delete_thread("removed")
        assert saver.reconcile(dry_run=True).different == 0
    expected = {"changed": {"n": 2}, "begun": {"n": 2}}
    for side in paths:
        with SqliteSaver(side) as one:
            assert {item.key: item.value for item in Store(one).search(_NS)} == expected
            assert {each.id: States(one).load(each.id) for each in one.list_threads().threads} == expected


def test_vectors_and_words_are_computed_on_the_other_side(memory: Sides) -> None:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[float("cat" in text), float("dog" in text)] for text in texts]

    by_words = Store(memory.pair, text_search=True)
    index: IndexConfig = {"dims": 2, "embed": embed, "fields": ["text"]}
    by_vectors = Store(memory.pair, index=index)
    for store in (by_words, by_vectors):
        store.put(_NS, "one", {"text": "a cat"})
        store.put(_NS, "two", {"text": "a dog"})
        assert store.search(_NS, query="dog")[0].key == "two"
        memory.pair.promote()
        assert store.reindex() == 2
        assert store.search(_NS, query="dog")[0].key == "two"
        store.delete(_NS, "two")
        memory.pair.promote()
        assert [item.key for item in store.search(_NS, query="dog")] in (["one"], [])


def test_a_table_whose_creation_was_undone_is_created_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Program[None]:
        yield from ()
        raise StoreError("the disk is full")

    index: IndexConfig = {"dims": 1, "embed": lambda texts: [[1.0] for _ in texts], "fields": ["text"]}
    with sides(SqliteSaver(tmp_path / "one.db"), SqliteSaver(tmp_path / "two.db")) as two:
        store = Store(two.pair, index=index)
        assert store.search(_NS) == []
        two.pair.promote("secondary")  # which has no items yet, and no table of them
        with monkeypatch.context() as failing:
            failing.setattr(TableVectors, "replace", fail)
            with pytest.raises(StoreError, match="the disk is full"):
                store.put(_NS, "one", {"text": "a cat"})
        store.put(_NS, "one", {"text": "a cat"})
        assert two.equal_keys() == ["one"]


def test_an_owner_removes_no_item_of_another(memory: Sides) -> None:
    ada, bob = (Store(memory.pair.for_owner(owner)) for owner in ("ada", "bob"))
    ada.put(_NS, "hers", {"n": 1})
    bob.delete(_NS, "hers")
    with pytest.raises(PermissionError, match="belongs to another owner"):
        bob.put(_NS, "hers", {})
    assert memory.equal_keys() == ["hers"]
    row = memory.rows()[0][0]
    for owner, removes in (("bob", False), ("ada", True), (None, True)):
        removal = Removal(row.updated_at, owner)
        assert (wins(removal, row), wins(row, removal)) == (removes, not removes)


def test_a_removal_counts_though_an_owner_removes_the_item_once_more(memory: Sides) -> None:
    ada, bob = (Store(memory.pair.for_owner(owner)) for owner in ("ada", "bob"))
    memory.store.put(_NS, "of all", {"n": 1})
    ada.put(_NS, "hers", {"n": 1})
    memory.links[1].way = "closed"
    for store, key in ((memory.store, "of all"), (ada, "of all"), (ada, "hers"), (bob, "hers")):
        with pytest.raises(ReplicationError, match="has what was written to items"):
            store.delete(_NS, key)
    memory.links[1].way = "open"
    assert memory.pair.drain() == 0
    assert memory.equal_keys() == []


def test_removals_by_several_owners_are_told_apart() -> None:
    key = ItemKey("a", "b")
    made = Removal(3, "bob", (Removal(1), Removal(2, "ada")))
    assert Changed.in_entries([Entry("x", 1, Changed({key: made}).to_bytes())]).keys == {key: made}
    for owner, at in (("bob", 3), ("ada", 2), (None, 1)):
        for time in (at - 1, at, at + 1):
            row = ItemRow(key, "{}", 1, time, time, owner)
            assert (wins(made, row), wins(row, made)) == (time <= at, time > at)


def test_a_database_remembers_how_far_a_shard_was_copied(memory: Sides) -> None:
    """It forgets the positions of ids without a thread in time, unless a lease keeps them."""
    memory.store.put(_NS, "a", {})
    for side in memory.pair._pair.pair.sides:
        leases = [side.driver.run(Transaction(side.store.lease, (shard_id,))) for shard_id in SHARD_IDS]
        assert [lease.left > 0 for lease in leases if lease is not None] == [True]


def test_a_thread_may_not_have_the_id_of_a_shard(memory: Sides) -> None:
    checkpoint: Checkpoint = {"id": new_id(), "channel_values": {}, "channel_versions": {}}
    with pytest.raises(ConfigError, match="give the thread another one"):
        memory.pair.put({"configurable": {"thread_id": SHARD_IDS[0], "checkpoint_ns": ""}}, checkpoint, {}, {})


def test_a_side_on_redis_is_refused() -> None:
    pair = replicated(MemorySaver(), RedisSaver("redis://localhost:1/0"))
    with pair, pytest.raises(ConfigError, match="in one transaction"):
        Store(pair)


def test_items_that_are_sealed_again_arrive(tmp_path: Path) -> None:
    keys = {"old": bytes(32), "new": bytes([1]) * 32}
    files = [tmp_path / "one.db", tmp_path / "other.db"]
    for names in (["old"], ["old", "new"]):
        keyring = Keyring({name: keys[name] for name in names}, names[-1], digest_secret=bytes(32))
        with ExitStack() as closing:
            first, second = (SqliteSaver(file, keyring=keyring) for file in files)
            two = closing.enter_context(sides(first, second, keyring=keyring))
            if names == ["old"]:
                two.store.put(("a",), "k", {"n": 1}, ttl=1000)
                two.store.put(("b",), "k", {"n": 2})
                before = two.rows()[0]
            else:
                assert two.pair.reencrypt() == len(before)
                assert two.equal_keys() == ["k", "k"]
                assert [(row.created_at, row.expires_at) for row in two.rows()[1]] == [
                    (row.created_at, row.expires_at) for row in before
                ]
    with SqliteSaver(files[1], keyring=Keyring({"new": keys["new"]}, "new", digest_secret=bytes(32))) as last:
        assert [item.value["n"] for item in Store(last).search(())] == [2, 1]


def test_changes_without_a_package_that_copies_them_say_so() -> None:
    with pytest.raises(MissingDependencyError, match="'others' wait to be copied"):
        tables_of(shard_id_of("others", 0))


def test_an_item_that_a_fast_clock_has_put_is_removed_on_both_sides(
    memory: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as fast:
        fast.setattr("threadmark_store.store.now", lambda: now() + 60_000_000)
        memory.store.put(_NS, "a", {})
    memory.store.delete(_NS, "a")
    assert memory.pair.drain() == 0
    assert memory.equal_keys() == []


def test_the_last_removal_of_an_item_counts() -> None:
    key, removals = ItemKey("a", "b"), [Removal(1), None, Removal(3), Removal(2)]
    entries = [Entry("x", number, Changed({key: each}).to_bytes()) for number, each in enumerate(removals)]
    assert Changed.in_entries(entries).keys == {key: Removal(3)}


def test_a_damaged_entry_is_named() -> None:
    entry = Changed({ItemKey("a", "k"): Removal(1), ItemKey("b", "k"): None}).to_bytes()
    assert entry == b'[["a","k",1,null],["b","k"]]'
    with pytest.raises(CorruptDataError, match="about items is damaged"):
        Changed.in_entries([Entry("x", 1, b"{")])


@pytest.mark.parametrize("kind", ["postgres"])
def test_batches_about_many_namespaces_do_not_lock_each_other_out(kind: str) -> None:
    url = shared().database(f"crowds_of_{kind}_items")

    def work(store: Store, number: int) -> None:
        chance = random.Random(number)
        for _ in range(12):
            keys = chance.sample([(f"n{place}", "k") for place in range(8)], 4)
            store.batch([PutOp((ns,), key, chance.choice([{"n": number}, None])) for ns, key in keys])
        store.sweep_ttl()

    with sides(PostgresSaver(url), MemorySaver(), mode="async") as two, ThreadPoolExecutor(4) as pool:
        two.store.setup()
        list(pool.map(partial(work, two.store), range(4)))
        assert two.pair.drain() == 0
        two.equal_keys()
    with psycopg.connect(url) as connection:
        statement = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        assert connection.execute(statement).fetchone() == (0,)


_SHORT = [case for case in STORE_CASES if ALL or str(case).startswith(("items.", "sweeping."))]


@pytest.mark.parametrize("case", _SHORT, ids=str)
def test_a_case_of_any_store(case: StoreCase, tmp_path: Path) -> None:
    run_store_case(case, over_savers(BACKENDS["replicated memory"]), "asyncio", tmp_path)


def test_a_put_after_a_removal_is_later_though_the_clock_says_the_same() -> None:
    row, removal = ItemRow(ItemKey("a", "b"), "{}", 1, 100, 100), Removal(100)
    for each in (row, row._replace(expires_at=500, ttl=400)):
        assert not wins(each, removal)
    assert wins(moved_behind(row, removal.at), removal)
