"""How often a call that is made once asks its server, counted on the wire, and how much SQLite reads for it."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from effects.graphs import CrashError, Shop
from effects.places import Receiver, opened
from postgres.cluster import shared
from postgres.proxy import Proxy as PostgresProxy
from postgres.test_round_trips import AS_MOST_SERVERS, through
from redis_backend import processes
from redis_backend.proxy import Proxy as RedisProxy
from threadmark import Effects, Saver
from threadmark.program import Transaction
from threadmark_redis import RedisSaver
from threadmark_sqlite import SqliteSaver

THREAD: Any = {"configurable": {"thread_id": "order"}}

FIRST = 2
"""Round trips of two changes."""

AGAIN = 2
"""A change that is refused, and a read."""


@pytest.fixture(params=["postgres", "redis"])
def counted(request: pytest.FixtureRequest) -> Iterator[tuple[Saver, Any]]:
    """A saver that has met its server, and the proxy between them."""
    if request.param == "redis":
        port = processes.shared().port
        with RedisProxy(port) as proxy, RedisSaver(proxy.url, prefix="cost:", durability="memory") as saver:
            yield met(saver), proxy
        processes.shared().command("FLUSHALL")
        return
    url = shared().database("effects_cost")
    port = int(url.rpartition(":")[2].partition("/")[0])
    with PostgresProxy(port) as of_postgres, through(of_postgres, url, AS_MOST_SERVERS) as postgres:
        yield met(postgres), of_postgres
    shared().execute("DROP DATABASE effects_cost WITH (FORCE)")


def met(saver: Saver) -> Saver:
    """Return a saver that has loaded its scripts and looked at the database."""
    for _ in range(2):
        Effects(saver).of("first").once("nothing", int)
    return saver


def test_a_call_takes_two_changes_and_its_repetition_one_read(counted: tuple[Saver, Any]) -> None:
    saver, proxy = counted
    orders, receiver = Effects(saver).of("order"), Receiver()
    for name in ("charge", "ship"):
        before = proxy.round_trips
        orders.once(name, receiver.charge, 5)
        assert proxy.round_trips - before == FIRST
        orders.once(name, receiver.charge, 5)
        assert proxy.round_trips - before == FIRST + AGAIN
    assert receiver.calls == [5, 5]


class Counting(Effects):
    """Effects that count the transactions of each call, not those of the engine in the background."""

    counts: ClassVar[list[int]] = []

    def once(self, *args: Any, **options: Any) -> Any:
        """Begin to count, and make the call."""
        self.counts.append(0)
        return super().once(*args, **options)

    def _answer(self, request: Any) -> Any:
        self.counts[-1] += isinstance(request, Transaction)
        return super()._answer(request)


def test_the_first_call_of_a_step_reads_claims_and_history_only_if_other_steps_have_made_it(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as saver:
        shop = Shop(saver)
        shop.effects, shop.durability = Counting(saver), "sync"
        for _ in range(2):
            shop.run(THREAD, rounds=2)
        shop.run(THREAD, amount=6)
        shop.crashes = ["charge"]
        with pytest.raises(CrashError):
            shop.run(THREAD, amount=7)
        shop.go_on(THREAD)
    assert Counting.counts == [2, 5, 5, 5, 2, 2, 2]


class Counted:
    """A saver over a database in memory, and the steps that SQLite takes in its own programs."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.saver = SqliteSaver(self.connection)
        self.saver.setup()
        self._steps = 0
        self.connection.set_progress_handler(self._note, 1)

    def _note(self) -> int:
        self._steps += 1
        return 0

    def steps(self, function: Callable[[], object]) -> int:
        """Call a function. Returns how many steps that took."""
        before = self._steps
        function()
        return self._steps - before

    def rows(self) -> int:
        """How many rows all ledgers have."""
        return int(
            self.connection.execute("SELECT count(*) FROM threadmark_checkpoint WHERE ns LIKE 'effects:%'").fetchone()[
                0
            ]
        )


@pytest.fixture
def database() -> Iterator[Counted]:
    counted = Counted()
    with counted.saver:
        yield counted
    counted.connection.close()


@pytest.mark.parametrize("at_once", [True, False], ids=["one thread", "many threads"])
def test_a_call_reads_no_more_if_the_thread_or_the_database_has_many_effects(
    database: Counted, *, at_once: bool
) -> None:
    effects = Effects(database.saver)

    def call(number: int) -> int:
        thread = effects.of("order" if at_once else f"order {number}")
        return database.steps(lambda: thread.once("charge", int, key=str(number)))

    few, many = [call(number) for number in range(100)][5:10], [call(number) for number in range(100, 110)]
    assert max(many) <= 1.1 * max(few)


def test_a_site_that_each_turn_calls_reads_no_more_and_keeps_few_rows(database: Counted) -> None:
    shop = Shop(database.saver)
    shop.durability = "sync"
    turns = [database.steps(lambda: shop.run(THREAD)) for _ in range(36)]
    assert max(turns[32:36]) <= 1.1 * max(turns[10:14])
    assert max(turns[16:31]) <= 1.1 * max(turns[10:14])
    assert database.rows() <= 2 * 16
    assert len(set(shop.receiver.keys)) == len(shop.effects.list(THREAD)) == 36
    assert shop.go_on(shop.before("charge", THREAD)) == [1]
    assert not database.saver.verify().problems
