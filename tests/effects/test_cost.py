"""How often a call that is made once asks its server: counted on the wire"""

from collections.abc import Iterator
from typing import Any

import pytest

from effects.graphs import Shop
from effects.places import Receiver
from postgres.cluster import shared
from postgres.proxy import Proxy as PostgresProxy
from postgres.test_round_trips import through
from redis_backend import processes
from redis_backend.proxy import Proxy as RedisProxy
from threadmark import Effects, Saver
from threadmark_redis import RedisSaver

THREAD: Any = {"configurable": {"thread_id": "order"}}


@pytest.fixture(params=["postgres", "redis"])
def counted(request: pytest.FixtureRequest) -> Iterator[tuple[Saver, Any]]:
    """A saver that has met its server, and the proxy between them."""
    if request.param == "redis":
        with RedisProxy(processes.shared().port) as proxy:
            with RedisSaver(proxy.url, prefix="cost:", durability="memory") as saver:
                yield met(saver), proxy
        processes.shared().command("FLUSHALL")
        return
    url = shared().database("effects_cost")
    with PostgresProxy(int(url.rpartition(":")[2].partition("/")[0])) as proxy:
        with through(proxy, url) as saver:
            yield met(saver), proxy
    shared().execute("DROP DATABASE effects_cost WITH (FORCE)")


def met(saver: Saver) -> Saver:
    Effects(saver).of("first").once("nothing", int)
    return saver


def test_a_call_takes_two_round_trips_and_its_repetition_two(counted: tuple[Saver, Any]) -> None:
    saver, proxy = counted
    orders, receiver = Effects(saver).of("order"), Receiver()
    for name in ("charge", "ship"):
        before = proxy.round_trips
        orders.once(name, receiver.charge, 5)
        assert proxy.round_trips - before == 2
        orders.once(name, receiver.charge, 5)
        assert proxy.round_trips - before == 4
    assert receiver.calls == [5, 5]


def test_a_call_of_a_graph_takes_two_and_one_that_comes_again_five(counted: tuple[Saver, Any]) -> None:
    saver, proxy = counted
    shop, taken = Shop(saver), []
    once = shop.effects.once

    def counting(*args: Any, **options: Any) -> Any:
        before = proxy.round_trips
        result = once(*args, **options)
        taken.append(proxy.round_trips - before)
        return result

    shop.effects.once = counting  # type: ignore[method-assign]  # to count each call
    for _ in range(2):
        shop.graph.invoke({"amount": 5, "rounds": 2}, THREAD, durability="sync")
    assert taken == [2, 5, 5, 5]
