"""How often a call that is made once asks its server: counted on the wire."""

from collections.abc import Iterator
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
