"""Keeping a lease alive while its block runs, and its state afterwards, also if the database fails."""

import asyncio
import gc
import logging
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from patience import wait_until
from threadmark import LeaseLostError, MemorySaver, Saver, StoreError
from threadmark.leases.renewal import Schedule
from threadmark.program import Transaction
from threadmark.store.contract import Change
from threadmark.store.judging import Facts, renewal
from threadmark.types import Lease
from threadmark_conformance.driver_wrapper import DriverWrapper
from threadmark_conformance.engine import at, checkpoint
from threadmark_conformance.leasing import under

APIS = ["blocking", "asyncio"]
LONG = 60
"""Seconds that no test takes."""
_TIMES = 3
"""So often a short lease is taken: it may be lost if the machine stops for longer than it lives."""


class Troubled(DriverWrapper):
    """A driver whose renewals fail or hang, and whose releases fail, as long as a test says so."""

    def __init__(self, saver: Saver) -> None:
        super().__init__(saver._driver)
        self.fails: set[str] = set()
        self.hangs: set[str] = set()
        self.asked: dict[str, int] = {}

    def _wrap(self, transaction: Transaction[Any]) -> Generator[Transaction[Any] | None, Any, Any]:
        name = transaction.program.__name__.strip("_")
        self.asked[name] = self.asked.get(name, 0) + 1
        while name in self.hangs:
            yield None
        if name in self.fails:
            raise StoreError("the database is away")
        return (yield transaction)


@pytest.fixture
def driver() -> Iterator[Troubled]:
    with MemorySaver() as saver:
        yield Troubled(saver)


@pytest.fixture
def saver(driver: Troubled) -> Iterator[Saver]:
    saver = MemorySaver()
    saver._driver = driver
    yield saver
    driver.hangs.clear()
    wait_until(lambda: not _threads(), "a thread is left")


def _threads() -> list[str]:
    return [
        thread.name for thread in threading.enumerate() if thread.name in ("threadmark-lease", "threadmark-renewal")
    ]


def _in_block(api: str, lease: Lease, block: Callable[[], object]) -> None:
    """Run a function while the lease is held."""

    async def use() -> None:
        async with lease:
            await asyncio.to_thread(block)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    if api == "asyncio":
        asyncio.run(use())
    else:
        with lease:
            block()


@pytest.mark.parametrize("api", APIS)
def test_a_lease_is_renewed_in_the_background_and_leaves_nothing_behind(
    api: str, saver: Saver, driver: Troubled
) -> None:
    def is_renewed() -> bool:
        lease = saver.lease("thread", ttl=1.2)
        asked = driver.asked.get("renew_lease", 0)

        def block() -> None:
            wait_until(
                lambda: lease.lost.is_set() or driver.asked.get("renew_lease", 0) >= asked + 3, "it is not renewed"
            )

        _in_block(api, lease, block)
        return not lease.lost.is_set()

    assert any(is_renewed() for _ in range(_TIMES))
    wait_until(lambda: not _threads(), "a thread is left")
    asked = driver.asked["renew_lease"]
    time.sleep(0.5)
    assert driver.asked["renew_lease"] == asked


@pytest.mark.parametrize("api", APIS)
def test_a_renewal_that_fails_is_tried_again(
    api: str, saver: Saver, driver: Troubled, caplog: pytest.LogCaptureFixture
) -> None:
    def is_renewed() -> bool:
        lease = saver.lease("thread", ttl=3)
        driver.fails.add("renew_lease")
        driver.asked.clear()

        def asked(times: int) -> None:
            wait_until(lambda: lease.lost.is_set() or driver.asked.get("renew_lease", 0) >= times, "it is not renewed")

        def block() -> None:
            asked(3)
            driver.fails.clear()
            asked(4)

        _in_block(api, lease, block)
        return not lease.lost.is_set()

    with caplog.at_level(logging.WARNING, "threadmark"):
        assert any(is_renewed() for _ in range(_TIMES))
    assert "a lease could not be renewed (StoreError); this is tried again" in caplog.text


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("trouble", ["fails", "hangs"])
def test_a_lease_that_is_not_renewed_until_its_deadline_is_lost(
    api: str, trouble: str, saver: Saver, driver: Troubled
) -> None:
    told: list[float] = []
    lease = saver.lease("thread", ttl=0.3, on_lost=lambda _: told.append(time.monotonic()))
    getattr(driver, trouble).add("renew_lease")
    began = time.monotonic()
    _in_block(api, lease, lambda: lease.lost.wait(LONG))
    assert lease.lost.is_set()
    wait_until(lambda: told, "nobody is told")  # by the thread that renews the lease, perhaps only now
    assert len(told) == 1
    assert told[0] - began >= 0.3


@pytest.mark.parametrize("api", APIS)
def test_a_release_that_fails_is_told_unless_the_block_has_an_error_of_its_own(
    api: str, saver: Saver, driver: Troubled, caplog: pytest.LogCaptureFixture
) -> None:
    driver.fails.add("release")

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(StoreError, match="away"):
        _in_block(api, saver.lease("one thread", ttl=LONG), lambda: None)
    with caplog.at_level(logging.WARNING, "threadmark"), pytest.raises(ZeroDivisionError):
        _in_block(api, saver.lease("another thread", ttl=LONG), fail)
    assert "a lease could not be released (StoreError) and ends by itself" in caplog.text
    driver.fails.add("renew_lease")
    lost = saver.lease("a third thread", ttl=0.1)
    _in_block(api, lost, lambda: lost.lost.wait(LONG))  # which is no error of the block's end


@pytest.mark.parametrize("api", APIS)
def test_a_release_does_not_wait_for_a_renewal_that_hangs(api: str, saver: Saver, driver: Troubled) -> None:
    driver.hangs.add("renew_lease")
    lease = saver.lease("thread", ttl=LONG)
    lease_again = saver.lease("thread", ttl=0.9)
    _in_block(api, lease, lambda: None)
    began = time.monotonic()
    _in_block(api, lease_again, lambda: wait_until(lambda: driver.asked.get("renew_lease"), "it is not renewed"))
    assert time.monotonic() - began < LONG / 2


@pytest.mark.parametrize("api", APIS)
def test_a_lease_ends_quietly_where_its_saver_was_closed_meanwhile(api: str) -> None:
    saver = MemorySaver()
    lease = saver.lease("thread", ttl=LONG)
    _in_block(api, lease, saver.close)
    assert lease.lost.is_set()


def test_who_is_cancelled_while_waiting_takes_no_lease(saver: Saver) -> None:
    async def use() -> None:
        async with saver.lease("thread", ttl=LONG):
            waiting = asyncio.create_task(saver.lease("thread").__aenter__())
            await asyncio.sleep(0.1)
            assert not waiting.done()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        async with saver.lease("thread", on_busy="reject"):
            pass

    asyncio.run(use())


def test_a_lease_that_everybody_forgot_is_not_renewed_for_ever(saver: Saver) -> None:
    lease = saver.lease("thread", ttl=LONG)
    lease.__enter__()
    wait_until(_threads, "nothing renews it")
    del lease
    gc.collect()
    wait_until(lambda: not _threads(), "it is renewed for ever")


def test_what_a_callback_raises_is_logged(saver: Saver, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Lease) -> None:
        raise ValueError("of the application")

    with (
        caplog.at_level(logging.ERROR, "threadmark"),
        saver.lease("thread", ttl=LONG, on_lost=fail) as lease,
        saver.lease("thread", on_busy="interrupt", ttl=LONG),
    ):
        for _ in range(2):
            with pytest.raises(LeaseLostError):
                lease.renew()
    assert caplog.text.count("ValueError: of the application") == 1


def test_a_callback_may_release_the_lease(saver: Saver) -> None:
    first = saver.lease("thread", ttl=0.1, on_lost=Lease.release)

    async def use() -> None:
        async with first, saver.lease("thread", on_busy="interrupt", ttl=LONG):
            await asyncio.to_thread(first.lost.wait, LONG)

    asyncio.run(use())
    again = saver.lease("thread", ttl=0.1, on_lost=Lease.release)
    with again, saver.lease("thread", on_busy="interrupt", ttl=LONG):
        assert again.lost.wait(LONG)
    assert first.lost.is_set()


def test_both_apis_serve_one_lease(saver: Saver) -> None:
    with saver.lease("thread", ttl=LONG) as lease:
        asyncio.run(lease.arenew())
        assert asyncio.run(lease.arelease()) is True

    async def use() -> None:
        async with saver.lease("thread", ttl=LONG) as lease:
            await asyncio.to_thread(lease.renew)
            assert await asyncio.to_thread(lease.release) is True

    asyncio.run(use())
    assert not _threads()


def test_a_lease_ends_in_another_event_loop_than_it_was_taken_in(saver: Saver) -> None:
    async def entered() -> Lease:
        return await saver.lease("thread", ttl=LONG).__aenter__()

    async def exited(lease: Lease) -> None:
        await lease.__aexit__(None, None, None)

    lease = asyncio.run(entered())
    asyncio.run(exited(lease))
    assert not lease.lost.is_set()
    with saver.lease("thread", on_busy="reject"):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_the_child_of_a_fork_leaves_its_parents_lease_alone(tmp_path: Any) -> None:
    from threadmark_sqlite import SqliteSaver

    with SqliteSaver(tmp_path / "threads.db") as saver, saver.lease("thread", ttl=LONG) as lease:
        child = os.fork()
        if child == 0:
            lease.__exit__(None, None, None)
            os._exit(lease.release())
        assert os.waitpid(child, 0)[1] == 0
        lease.renew()
        saver.put(under(lease), checkpoint({"a": 1}), {}, {"a": 1})
        assert saver.get(at("thread")) is not None


def test_tokens_grow_from_one_saver_in_memory_to_the_next() -> None:
    tokens = []
    for _ in range(2):
        with MemorySaver() as saver, saver.lease("thread") as lease:
            tokens.append(lease.token)
    assert tokens[0] < tokens[1]


@pytest.mark.parametrize(("left", "renewed"), [(50, 0), (49, 100), (1, 100), (-1, 100), (None, 0)])
def test_a_write_renews_a_lease_of_which_less_than_half_is_left(left: int | None, renewed: int) -> None:
    change = Change("thread", None, 0, {}, (), (), None, token=7)
    facts = Facts(1, True, None, 7, left, 100, False, False, "")
    assert renewal(change, facts) == renewed
    assert renewal(change._replace(token=6), facts) == 0


def test_the_deadline_counts_from_when_the_last_renewal_that_succeeded_was_sent() -> None:
    sent = time.monotonic()
    schedule = Schedule(9.0, sent)
    assert 2.0 < schedule.pause(waits=False) <= 3.0
    assert 8.0 < schedule.pause(waits=True) <= 9.0
    schedule.failed()
    assert schedule.pause(waits=False) <= 0.75
    schedule.renewed(sent + 1)
    schedule.renewed(sent - 5)  # an answer that comes late takes nothing away
    assert 9.0 < schedule.pause(waits=True) <= 10.0
    assert not schedule.is_over()
    assert Schedule(9.0, sent - 9).is_over()
    assert Schedule(9.0, sent - 9).pause(waits=False) == 0
