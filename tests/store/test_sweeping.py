"""The sweeper of a store: it starts when it is asked to, goes on after errors, and ends without a word."""

import asyncio
import gc
import logging
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import TTLConfig

from children import child
from log_lines import lines_of
from patience import wait_until
from threadmark import ConfigError, MemorySaver
from threadmark.backends import StoreError
from threadmark_store import AsyncSqliteStore, InMemoryStore, SqliteStore, Store

AT_ONCE = 0.0001
"""Minutes: six milliseconds."""


@contextmanager
def in_memory(ttl: TTLConfig | None = None) -> Iterator[Store]:
    """A store on a saver in memory."""
    with MemorySaver() as saver, Store(saver, ttl=ttl) as store:
        yield store


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "threadmark-store-sweeper"]


def test_expired_items_are_removed_again_and_again() -> None:
    with in_memory() as store:
        store.start_ttl_sweeper(AT_ONCE)
        for round_ in range(3):
            store.put(("drafts",), str(round_), {"n": round_}, ttl=AT_ONCE)
            store.put(("drafts",), "kept", {"n": round_})
            wait_until(lambda: len(store.search(("drafts",), refresh_ttl=False)) == 1, "the item is still there")


def test_a_sweeper_starts_without_a_ttl_and_only_when_it_is_asked_to() -> None:
    ttl: Any = {"default_ttl": AT_ONCE, "sweep_interval_minutes": AT_ONCE}
    with in_memory(ttl) as store:
        store.put(("drafts",), "1", {})
        time.sleep(0.1)
        assert store.get(("drafts",), "1", refresh_ttl=False) is not None
        store.start_ttl_sweeper()  # after the interval of its configuration
        wait_until(lambda: store.get(("drafts",), "1", refresh_ttl=False) is None, "it is still there")
    with in_memory() as store:
        assert not store.start_ttl_sweeper().done()


@pytest.mark.parametrize("ttl", [float("nan"), float("inf"), -float("inf"), 1e12, "5"])
def test_a_ttl_that_is_no_time_is_refused(ttl: Any) -> None:
    with in_memory() as store, pytest.raises(ConfigError, match="ttl must be a number of minutes up to 4,000,000,000"):
        store.put(("drafts",), "1", {}, ttl=ttl)


def test_the_longest_ttl_is_kept(tmp_path: Path) -> None:
    with in_memory() as memory, SqliteStore(tmp_path / "items.db") as file:
        for store in (memory, file):
            store.put(("drafts",), "1", {}, ttl=4_000_000_000)
            assert store.sweep_ttl() == 0
            assert store.verify().problems == []


def test_the_interval_is_the_arguments_or_the_configurations_or_five_minutes() -> None:
    with in_memory({"sweep_interval_minutes": 3}) as store:
        assert store._interval(2) == 120
        assert store._interval(None) == 180
        assert store._interval(0) == 180
        for wrong in (-1, True, "5", float("nan")):
            with pytest.raises(ConfigError, match="sweep_interval_minutes must be"):
                store.start_ttl_sweeper(wrong)  # type: ignore[arg-type]  # the point of the test
    with in_memory() as store:
        assert store._interval(None) == 300


def test_a_second_start_changes_nothing_and_a_stopped_one_starts_again() -> None:
    with in_memory() as store:
        first = store.start_ttl_sweeper(1)
        assert store.start_ttl_sweeper(1) is first
        assert len(threads()) == 1
        assert store.stop_ttl_sweeper(timeout=60)
        assert first.done()
        assert threads() == []
        assert store.stop_ttl_sweeper(), "stopping a sweeper that does not run succeeds"
        second = store.start_ttl_sweeper(1)
        assert not second.done()
    assert second.done()


def test_a_start_while_the_stopped_one_ends_begins_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, goes_on = threading.Event(), threading.Event()
    with in_memory() as store:
        sweep = store._items.sweep

        def waiting(*arguments: Any, **options: Any) -> Any:
            begun.set()
            goes_on.wait(60)
            return sweep(*arguments, **options)

        monkeypatch.setattr(store._items, "sweep", waiting)
        first = store.start_ttl_sweeper(AT_ONCE)
        assert begun.wait(60)
        assert not store.stop_ttl_sweeper(timeout=0)
        second = store.start_ttl_sweeper(1)
        goes_on.set()
        first.result(60)
        assert not second.done()
    assert second.done()


@pytest.mark.parametrize("end", ["stop", "cancel"])
def test_a_start_while_the_stopped_task_ends_begins_another_one(end: str) -> None:
    async def run() -> None:
        with InMemoryStore() as store:
            first = await store.astart_ttl_sweeper(1)
            await asyncio.sleep(0)
            _ = store.stop_ttl_sweeper() if end == "stop" else first.cancel()
            second = await store.astart_ttl_sweeper(1)
            await asyncio.wait_for(first, 60)
            assert not second.done()
            assert await store.astop_ttl_sweeper(timeout=60)
            assert second.done()

    asyncio.run(run())


def test_cancelling_the_future_ends_it() -> None:
    with in_memory() as store:
        future = store.start_ttl_sweeper(1)
        assert future.cancel()
        wait_until(lambda: threads() == [], "it still runs")
        assert not store.start_ttl_sweeper(1).done()


def test_a_store_that_is_forgotten_goes_with_its_sweeper() -> None:
    store = InMemoryStore()
    future = store.start_ttl_sweeper(1)
    place = weakref.ref(store)
    del store
    gc.collect()
    assert place() is None
    future.result(60)


def test_a_task_is_awaited_like_langgraphs() -> None:
    async def run() -> None:
        async with AsyncSqliteStore(":memory:") as store:
            await store.aput(("drafts",), "1", {}, ttl=AT_ONCE)
            task = await store.start_ttl_sweeper(AT_ONCE)
            assert await store.start_ttl_sweeper() is task
            while await store.aget(("drafts",), "1", refresh_ttl=False):  # noqa: ASYNC110 - the sweeper tells nothing
                await asyncio.sleep(0.001)
            assert await store.stop_ttl_sweeper(timeout=60)
            assert task.done()
            await task
            again = await store.start_ttl_sweeper(1)
            await asyncio.sleep(0)
            again.cancel()
            await again  # is no error
            last = await store.start_ttl_sweeper(1)
        assert last.done()

    asyncio.run(run())


def test_a_task_ends_with_its_store() -> None:
    async def run() -> None:
        store = AsyncSqliteStore(":memory:")
        task = await store.start_ttl_sweeper(1)
        del store
        gc.collect()
        await asyncio.wait_for(task, 60)

    asyncio.run(run())


def test_a_task_starts_again_after_its_event_loop_was_closed() -> None:
    loop = asyncio.new_event_loop()
    with InMemoryStore() as store:
        first = loop.run_until_complete(store.astart_ttl_sweeper(1))
        loop.close()

        async def run() -> None:
            assert await store.astart_ttl_sweeper(1) is not first
            assert await store.astop_ttl_sweeper(timeout=60)

        asyncio.run(run())


def test_a_thread_and_a_task_are_stopped_together() -> None:
    async def run() -> None:
        with InMemoryStore() as store:
            future, task = store.start_ttl_sweeper(1), await store.astart_ttl_sweeper(1)
            assert await store.astop_ttl_sweeper(timeout=60)
            assert future.done()
            assert task.done()

    asyncio.run(run())


def test_a_blocking_close_ends_a_task() -> None:
    async def run() -> None:
        store = AsyncSqliteStore(":memory:")
        task = await store.start_ttl_sweeper(1)
        await asyncio.to_thread(store.close)
        await asyncio.wait_for(task, 60)

    asyncio.run(run())


class Failing:
    """The items of a store, whose first sweeps fail."""

    def __init__(self, items: Any, failures: int) -> None:
        self._items = items
        self.left = failures

    def sweep(self, *arguments: Any, **options: Any) -> Any:
        if self.left:
            self.left -= 1
            raise StoreError("the disk is full")
        return self._items.sweep(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._items, name)


def test_an_error_is_logged_and_the_next_sweep_tries_again(caplog: pytest.LogCaptureFixture) -> None:
    with in_memory() as store, lines_of("threadmark.store", caplog) as logged:
        store.put(("drafts",), "1", {}, ttl=AT_ONCE)
        failing: Any = Failing(store._items, 2)
        store._items = failing
        store.start_ttl_sweeper(AT_ONCE)
        wait_until(lambda: failing.left == 0, "it gave up")
        wait_until(lambda: store.get(("drafts",), "1", refresh_ttl=False) is None, "it gave up")
        expected = "sweeper: expired items were not removed: StoreError: the disk is full"
        assert logged(logging.WARNING) == [expected] * 2


def test_a_saver_that_is_closed_first_ends_it_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with lines_of("threadmark.store", caplog) as logged:
        with MemorySaver() as saver:
            future = Store(saver).start_ttl_sweeper(AT_ONCE)
            store = Store(saver)
            kept = store.start_ttl_sweeper(AT_ONCE)
        future.result(60)
        kept.result(60)
        assert logged(logging.WARNING) == []


_BEGINNING = """
import asyncio, os, sys, threading, time
from threadmark_store import AsyncSqliteStore, SqliteStore

AT_ONCE, LATE = 0.0001, 1000

async def started(minutes):
    store = AsyncSqliteStore(sys.argv[1])
    return store, await store.start_ttl_sweeper(minutes)
"""

_ENDINGS = {
    "a thread that sleeps": "SqliteStore(sys.argv[1]).start_ttl_sweeper(LATE)",
    "a thread that sweeps": """
store = SqliteStore(sys.argv[1])
store.start_ttl_sweeper(AT_ONCE)
time.sleep(0.2)
""",
    "a task that sleeps": "kept = asyncio.run(started(LATE))",
    "a task that sweeps": """
async def main():
    store, task = await started(AT_ONCE)
    await asyncio.sleep(0.2)
asyncio.run(main())
""",
    "a loop that is closed": """
loop = asyncio.new_event_loop()
kept = loop.run_until_complete(started(LATE))
loop.close()
""",
    "a loop that still runs": """
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
kept = asyncio.run_coroutine_threadsafe(started(AT_ONCE), loop).result()
time.sleep(0.2)
""",
    "a fork": """
store = SqliteStore(sys.argv[1])
store.start_ttl_sweeper(LATE)
child = os.fork()
if child == 0:
    assert not store.start_ttl_sweeper(AT_ONCE).done()
    time.sleep(0.2)
else:
    assert os.waitpid(child, 0)[1] == 0
""",
}


@pytest.mark.parametrize("ending", _ENDINGS)
def test_a_program_ends_without_a_word(tmp_path: Path, ending: str) -> None:
    warned = "import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n" if ending == "a fork" else ""
    process = child(warned + _BEGINNING + _ENDINGS[ending], tmp_path / "items.db")
    begin = time.monotonic()
    assert process.communicate(timeout=120) == ("", "")
    assert process.returncode == 0
    assert time.monotonic() - begin < 60
    with SqliteStore(tmp_path / "items.db") as store:
        assert store.sweep_ttl() == 0
