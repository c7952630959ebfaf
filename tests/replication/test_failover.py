"""A saver while the side that takes the writes is away, and after its return."""

import asyncio
import threading
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import pytest

from outages import in_time
from patience import PATIENCE
from replication.lines import Database, Opened, checkpoint, config, number_in, put, wait_for
from threadmark import (
    CheckpointTuple,
    LeaseLostError,
    MemoryCache,
    ReplicationError,
    ThreadBusyError,
    TransientStoreError,
    cached,
)
from threadmark.memory import store as thread_store
from threadmark.program import Transaction
from threadmark.store.contract import now

T = TypeVar("T")

CONTINUE: dict[str, Any] = {"failover": "automatic", "on_secondary_failure": "continue", "deadline": PATIENCE}
SHORT = 0.2
"""A deadline while a database hangs."""
LATE = f"within {SHORT:g} s (deadline)"
"""In errors of calls that missed it, which on a busy machine any call may do."""


def test_reads_come_from_the_standby_and_say_so(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases)
    put(pair.saver, 1)
    found = pair.saver.get_tuple(config())
    assert found is not None
    assert "__read_from" not in found.config["configurable"]
    pair.primary.cut = True
    found = pair.saver.get_tuple(config())
    assert found is not None
    assert found.config["configurable"]["__read_from"] == "secondary"
    assert [each.config["configurable"]["__read_from"] for each in pair.saver.list(config())] == ["secondary"]
    assert pair.saver.status().reads_from == "secondary"

    async def read() -> list[str]:
        one = await pair.saver.aget_tuple(config())
        assert one is not None
        every = [one, *[each async for each in pair.saver.alist(config())]]
        return [each.config["configurable"]["__read_from"] for each in every]

    assert asyncio.run(read()) == ["secondary"] * 2
    pair.primary.cut = False
    wait_for(lambda: pair.saver.status().primary.healthy)
    found = pair.saver.get_tuple(config())
    assert found is not None
    assert "__read_from" not in found.config["configurable"]
    pair.saver.close()


def test_through_a_cache_they_say_so_as_well(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases)
    saver = cached(pair.saver, MemoryCache())
    put(saver, 1)
    pair.primary.cut = True

    async def read() -> list[CheckpointTuple | None]:
        return [await saver.aget_tuple(config()), *[each async for each in saver.alist(config())]]

    found = [saver.get_tuple(config()), *saver.list(config()), *asyncio.run(read())]
    assert [each and each.config["configurable"]["__read_from"] for each in found] == ["secondary"] * 4
    saver.close()


def test_a_run_goes_on_from_what_was_read_from_the_standby(databases: tuple[Database, Database]) -> None:
    """The mark is no part of the put, and nothing that was remembered of one side is relied on at the other."""
    pair = Opened(*databases)
    put(pair.saver, 1)
    assert pair.saver.drain() == 0  # the background may have copied it, and settle its entry a moment later
    pair.primary.cut = True
    found = pair.saver.get_tuple(config())
    assert found is not None
    pair.saver.promote()
    with pytest.raises(ReplicationError):
        pair.saver.put(found.config, checkpoint(2), {}, {"n": 2})
    pair.primary.cut = False
    assert pair.saver.drain() == 0
    for each in databases:
        stored = each.saver().get_tuple(config())
        assert stored is not None
        assert "__read_from" not in stored.metadata
        assert stored.checkpoint["channel_values"]["text"] == "some text " * 50
    pair.saver.close()


def test_a_side_that_is_back_is_written_to_when_it_is_known_that_it_still_takes_the_writes(
    databases: tuple[Database, Database],
) -> None:
    """The other one was promoted, of which the side that is back knows nothing."""
    options: dict[str, Any] = {"mode": "async", "health_interval": 3600.0}
    pair, operator = Opened(*databases, **options), Opened(*databases, **options)
    put(pair.saver, 1)
    assert operator.saver.drain() == 0
    pair.primary.cut = operator.primary.cut = True
    with pytest.raises(ReplicationError):
        put(pair.saver, 2)
    assert operator.saver.promote("secondary", force=True).active == "secondary"
    pair.primary.cut = False
    went_astray: list[int | None] = []

    def write(_: Transaction[Any]) -> None:
        """The work of another thread at any moment from now on."""
        pair.secondary.before = None
        with suppress(ReplicationError):
            put(pair.saver, 2)
        went_astray.append(number_in(databases[0].saver()))
        pair.secondary.before = write if len(went_astray) < 2 else None

    pair.secondary.before = write
    pair.saver.drain()
    assert went_astray == [1, 1]
    put(pair.saver, 3)
    assert number_in(databases[1].saver()) == 3
    operator.primary.cut = False
    for each in (pair, operator):
        each.saver.close()


def test_whose_transaction_failed_hears_of_a_promotion_at_once(databases: tuple[Database, Database]) -> None:
    """The side that failed answers again before anybody could say that it was away."""
    options: dict[str, Any] = {"mode": "async", "health_interval": 3600.0}
    pair, operator = Opened(*databases, **options), Opened(*databases, **options)
    put(pair.saver, 1)
    pair.end_background()
    operator.primary.cut = True

    def fail(_: Transaction[Any]) -> None:
        pair.primary.before = None
        operator.saver.promote("secondary", force=True)
        raise TransientStoreError("the connection was lost")

    pair.primary.before = fail
    with pytest.raises(TransientStoreError):
        put(pair.saver, 2)
    put(pair.saver, 3)
    assert [number_in(each.saver()) for each in databases] == [1, 3]
    for each in (pair, operator):
        each.saver.close()


def test_by_default_writes_fail_until_somebody_promotes(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases, on_secondary_failure="continue", health_interval=3600.0)
    put(pair.saver, 1)
    pair.primary.cut = True
    with pytest.raises(ReplicationError, match=r"promote\(\)"):
        put(pair.saver, 2)
    asked = pair.primary.asked
    for number in (2, 3):
        with pytest.raises(ReplicationError, match=r"promote\(\)"):
            put(pair.saver, number)
    assert pair.primary.asked == asked  # no caller waits for it each time
    assert pair.saver.promote().active == "secondary"
    put(pair.saver, 2)
    assert number_in(pair.saver) == 2
    pair.primary.cut = False
    assert pair.saver.drain() == 0
    assert number_in(databases[0].saver()) == 2
    assert pair.saver.promote("primary").active == "primary"
    put(pair.saver, 3)
    assert [number_in(each.saver()) for each in databases] == [3, 3]
    pair.saver.close()


def test_a_saver_that_may_moves_the_writes_itself(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases, **CONTINUE)
    put(pair.saver, 1)
    pair.primary.cut = True
    put(pair.saver, 2)
    assert pair.saver.status().active == "secondary"
    assert pair.saver.status().term == 2
    pair.saver.close()


def test_asyncio_moves_them_as_well(databases: tuple[Database, Database]) -> None:
    async def use() -> None:
        pair = Opened(*databases, **CONTINUE)
        async with pair.saver as saver:
            await saver.aput(config(), checkpoint(1), {}, {"n": 1, "text": 1})
            pair.primary.hang()
            pair.set_deadline(SHORT)
            await in_time(lambda: saver.aput(config(), checkpoint(2), {}, {"n": 2, "text": 1}), LATE)
            assert (await saver.astatus()).active == "secondary"
            pair.set_deadline(PATIENCE)
            pair.primary.resume()
            assert (await saver.apromote("primary")).active == "primary"

    asyncio.run(use())
    assert number_in(databases[0].saver()) == 2


def test_a_database_that_hangs_holds_nobody_for_longer_than_the_deadline(
    databases: tuple[Database, Database],
) -> None:
    pair = Opened(*databases, **CONTINUE)
    put(pair.saver, 1)
    pair.primary.hang()
    pair.set_deadline(SHORT)

    async def go_on() -> None:
        await in_time(partial(asyncio.to_thread, put, pair.saver, 2), LATE)  # it would wait for a minute, and fail
        assert await in_time(partial(asyncio.to_thread, number_in, pair.saver), LATE) == 2

    asyncio.run(go_on())
    pair.set_deadline(PATIENCE)
    pair.primary.resume()
    wait_for(lambda: number_in(databases[0].saver()) == 2)
    pair.saver.close()


def test_another_process_follows_at_its_next_write(databases: tuple[Database, Database]) -> None:
    one, other = Opened(*databases), Opened(*databases, health_interval=3600.0)
    put(one.saver, 1)
    put(other.saver, 2)
    one.saver.promote()
    put(other.saver, 3)
    assert other.saver.status().active == "secondary"
    assert [number_in(each.saver()) for each in databases] == [3, 3]
    assert one.saver.status().branched == ()
    one.saver.close()
    other.saver.close()


def test_a_write_whose_copy_finds_a_greater_term_is_put_again_on_the_new_side(
    databases: tuple[Database, Database],
) -> None:
    """It was committed on the old side: without the new one it would be acknowledged and then missing."""
    one, other = Opened(*databases), Opened(*databases, health_interval=3600.0)
    put(one.saver, 1)
    put(other.saver, 2)

    def promote_first(transaction: Transaction[Any]) -> None:
        if transaction.writes:
            other.primary.after = None
            one.primary.cut = True  # as far as `one` can see
            one.saver.promote(force=True)

    other.primary.after = promote_first
    put(other.saver, 3)
    assert number_in(databases[1].saver()) == 3
    one.primary.cut = False
    one.saver.drain()
    assert number_in(databases[0].saver()) == 3
    one.saver.close()
    other.saver.close()


def test_what_two_sides_wrote_apart_stays_as_branches(databases: tuple[Database, Database]) -> None:
    one = Opened(*databases, mode="async", **{**CONTINUE, "on_secondary_failure": "raise"})
    put(one.saver, 1)
    assert one.saver.drain() == 0
    cut_off = Opened(*databases, mode="async", health_interval=3600.0)
    number_in(cut_off.saver)
    cut_off.secondary.cut = True
    one.primary.cut = True
    put(one.saver, 3)
    put(cut_off.saver, 2)
    one.primary.cut = False
    wait_for(lambda: "thread" in one.saver.status().branched)
    wait_for(lambda: one.saver.status().primary.waiting == one.saver.status().secondary.waiting == 0)
    for each in databases:
        numbers = [found.checkpoint["channel_values"]["n"] for found in each.saver().list(config())]
        assert numbers == [3, 2, 1]
    one.saver.close()
    cut_off.secondary.cut = False
    cut_off.saver.close()


def test_the_primary_gets_the_writes_back_when_it_has_been_well_for_long_enough(
    databases: tuple[Database, Database],
) -> None:
    pair = Opened(*databases, **CONTINUE, failback_delay=timedelta(milliseconds=20))
    put(pair.saver, 1)
    pair.primary.cut = True
    put(pair.saver, 2)
    assert pair.saver.status().active == "secondary"
    pair.primary.cut = False
    wait_for(lambda: pair.saver.status().active == "primary")
    assert number_in(databases[0].saver()) == 2
    assert pair.saver.status().last_reconcile is not None
    pair.saver.close()


def test_after_so_many_moves_a_saver_waits_for_somebody(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases, **CONTINUE, max_failover_attempts=1)
    put(pair.saver, 1)
    pair.primary.cut = True
    put(pair.saver, 2)
    pair.primary.cut = False
    wait_for(lambda: number_in(databases[0].saver()) == 2)
    pair.secondary.cut = True
    with pytest.raises(ReplicationError, match="max_failover_attempts"):
        put(pair.saver, 3)
    assert pair.saver.promote(force=True).active == "primary"
    put(pair.saver, 3)
    pair.saver.close()


def test_with_both_away_the_error_names_both(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases, **CONTINUE)
    put(pair.saver, 1)
    pair.primary.cut = pair.secondary.cut = True
    with pytest.raises(ReplicationError, match=r"primary .* is away.*secondary"):
        put(pair.saver, 2)
    with pytest.raises(ReplicationError, match=r"primary .* is away.*secondary"):
        number_in(pair.saver)
    pair.primary.cut = pair.secondary.cut = False
    wait_for(lambda: pair.saver.status().primary.healthy and pair.saver.status().secondary.healthy)
    put(pair.saver, 2)
    pair.saver.close()


def test_a_lease_ends_with_a_failover(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases)
    put(pair.saver, 1)
    lease = pair.saver.lease("thread", ttl=timedelta(hours=1))
    with lease as held:
        pair.saver.promote()
        leased = {"configurable": {**config()["configurable"], "lease_token": held.token}}
        with pytest.raises(LeaseLostError):
            pair.saver.put(leased, checkpoint(2), {}, {"n": 2})
    put(pair.saver, 2)
    pair.saver.close()


def test_tokens_grow_over_promotions_to_a_side_whose_clock_is_behind(
    databases: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Opened(*databases)
    put(pair.saver, 1)
    tokens: list[int] = []
    for hours in (0, -1, -5, 3, -2):
        monkeypatch.setattr(thread_store, "now", lambda late=hours: now() + late * 3600 * 1_000_000)
        with pair.saver.lease("thread", on_busy="interrupt") as held:
            tokens.append(held.token)
        pair.saver.promote()
    assert tokens == sorted(set(tokens))
    assert tokens[-1] < 2**63
    pair.saver.close()


def test_a_lease_is_over_where_the_writes_come_back(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases)
    put(pair.saver, 1)
    with pair.saver.lease("thread", ttl=timedelta(hours=1)) as held:
        pair.saver.promote("secondary")
        pair.saver.promote("primary")
        leased = {"configurable": {**config()["configurable"], "lease_token": held.token}}
        with pytest.raises(LeaseLostError):
            pair.saver.put(leased, checkpoint(2), {}, {"n": 2})
        with pytest.raises(LeaseLostError):
            held.renew()
        with pytest.raises(ThreadBusyError):
            put(pair.saver, 2)
        with pair.saver.lease("thread", ttl=timedelta(hours=1), on_busy="interrupt") as other:
            assert other.token > held.token
            leased["configurable"]["lease_token"] = other.token
            pair.saver.put(leased, checkpoint(2), {}, {"n": 2})
    pair.saver.close()


def _more(items: list[str], number: int) -> bool:
    return len(items) > number


def test_many_writers_lose_nothing_while_the_writes_are_moved(databases: tuple[Database, Database]) -> None:
    pair, other = Opened(*databases), Opened(*databases)
    put(pair.saver, 0)
    put(other.saver, 0)
    acknowledged: list[str] = []
    stop = threading.Event()

    def write(saver: Any, name: str) -> None:
        number = 0
        while not stop.is_set():
            put(saver, number, f"{name} {number}")
            acknowledged.append(f"{name} {number}")
            number += 1

    threads = [
        threading.Thread(target=write, args=(saver, f"{name} {n}"))
        for n in range(2)
        for name, saver in (("one", pair.saver), ("other", other.saver))
    ]
    for thread in threads:
        thread.start()
    for _ in range(3):
        before = len(acknowledged)
        wait_for(partial(_more, acknowledged, before + 5))
        pair.saver.promote()
    stop.set()
    for thread in threads:
        thread.join()
    for each in databases:
        assert set(acknowledged) <= {info.id for info in each.saver().list_threads(limit=1000).threads}
    assert pair.saver.status().branched == other.saver.status().branched == ()
    pair.saver.close()
    other.saver.close()
