"""Group commit: operations that wait together share one commit, and one that fails leaves its neighbours alone."""

import asyncio
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from patience import wait_until
from sqlite_file import looking_at, see_writers
from threadmark import ClosedError, StoreError, ThreadDeletedError
from threadmark.program import Program, Transaction
from threadmark_conformance.engine import Run, at, checkpoint, early_id
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.driver.jobs import Job, Jobs
from threadmark_sqlite.steps import Query


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement of the writer, as SQLite sees it."""
    seen: list[str] = []

    see_writers(monkeypatch, lambda connection: connection.set_trace_callback(seen.append))
    return seen


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Another connection holds the write lock, so that operations gather."""
    with looking_at(path) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def _failing() -> Program[None]:
    yield Query("INSERT INTO threadmark_thread (thread_id, epoch, live, created_at) VALUES ('half', 1, 1, 1)")
    yield Query("INSERT INTO threadmark_thread (thread_id, epoch, live, created_at) VALUES ('half', 1, 1, 1)")


async def _gathered(saver: SqliteSaver, path: Path, *more: Any) -> list[Any]:
    """The outcomes of 40 puts and of `more`, all of which waited for one lock together."""
    puts = [saver.aput(at(number), checkpoint({"a": number}), {}, {"a": 1}) for number in range(40)]
    with held(path):
        tasks = [asyncio.ensure_future(each) for each in (*puts[:20], *more, *puts[20:])]
        await asyncio.sleep(0.2)
    return await asyncio.gather(*tasks, return_exceptions=True)


def test_operations_that_wait_together_share_commits(tmp_path: Path, statements: list[str]) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        saver.put(at("first"), checkpoint(), {}, {})
        statements.clear()
        outcomes = asyncio.run(_gathered(saver, path))
        assert [outcome["configurable"]["thread_id"] for outcome in outcomes] == [str(number) for number in range(40)]
        assert len(list(saver.list(None))) == 41
    assert statements.count("COMMIT") <= 4


def test_threads_share_commits_too(tmp_path: Path, statements: list[str]) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver, ThreadPoolExecutor(32) as pool:
        saver.put(at("first"), checkpoint(), {}, {})
        statements.clear()
        with held(path):
            futures = [
                pool.submit(saver.put_writes, at("first", "", early_id(1)), [("a", number)], f"task {number}")
                for number in range(32)
            ]
            driver: Any = saver._driver
            wait_until(lambda: len(driver._handles.writer._callers.waiting) >= 2, "they do not gather")
        for future in futures:
            future.result()
    assert statements.count("COMMIT") < 32
    with looking_at(path) as connection:
        assert connection.execute("SELECT count(*) FROM threadmark_write").fetchone() == (32,)


def test_who_finds_nobody_writing_writes_on_his_own_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def note(_: str) -> None:
        seen.append(threading.current_thread().name)

    see_writers(monkeypatch, lambda connection: connection.set_trace_callback(note))
    with SqliteSaver(tmp_path / "threads.db") as saver, ThreadPoolExecutor(1, thread_name_prefix="caller") as pool:
        config = pool.submit(saver.put, at("thread"), checkpoint(), {}, {}).result()
        assert set(seen) == {"caller_0"}
        seen.clear()
        saver.put_writes(config, [("a", 1)], "task")  # an interrupt of the main thread must not leave it half-way
        asyncio.run(saver.aput_writes(config, [("a", 1)], "other task"))
        assert set(seen) == {"threadmark-sqlite-writer"}


def test_a_transaction_that_was_left_open_is_undone_by_the_next_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[sqlite3.Connection] = []
    see_writers(monkeypatch, opened.append)
    with SqliteSaver(tmp_path / "threads.db") as saver:
        saver.put(at("thread"), checkpoint(), {}, {})
        (connection,) = opened
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM threadmark_checkpoint")
        saver.put(at("other"), checkpoint(), {}, {})
        assert len(list(saver.list(None))) == 2


def test_a_full_stack_stops_only_the_thread_whose_it_is(tmp_path: Path) -> None:
    limit = sys.getrecursionlimit()

    def add(name: int) -> Program[None]:
        yield Query("INSERT INTO threadmark_thread (thread_id, epoch, live, created_at) VALUES (?, 1, 1, 1)", (name,))

    def add_below(frames: int, name: int) -> None:
        if frames:
            add_below(frames - 1, name)
        else:
            saver._driver.run(Transaction(add, (name,), writes=True))

    def add_near_the_limit() -> list[bool]:
        return [_well(add_below, frames, frames) for frames in range(limit - 100, limit)]

    with SqliteSaver(tmp_path / "threads.db", durability="normal") as saver, ThreadPoolExecutor(1) as pool:
        saver.put(at("first"), checkpoint(), {}, {})
        went_well = pool.submit(add_near_the_limit).result()
        assert 0 < went_well.count(True) < len(went_well)
        saver.put(at("last"), checkpoint(), {}, {})
        assert len(list(saver.list(None))) == 2
    with looking_at(tmp_path / "threads.db") as connection:
        ((stored,),) = connection.execute("SELECT count(*) FROM threadmark_thread")
    assert stored >= went_well.count(True) + 2


def _well(call: Callable[..., None], *arguments: int) -> bool:
    try:
        call(*arguments)
    except RecursionError:
        return False
    return True


def test_a_failing_operation_leaves_its_neighbours_alone(tmp_path: Path, statements: list[str]) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        saver.put(at("first"), checkpoint(), {}, {})
        gone = saver.put(at("gone"), checkpoint(), {}, {})
        saver.delete_thread("gone")
        statements.clear()
        late = saver.aput_writes(gone, [("a", 1)], "late")
        broken = saver._driver.arun(Transaction(_failing, writes=True))
        outcomes = asyncio.run(_gathered(saver, path, late, broken))
        assert isinstance(outcomes[20], ThreadDeletedError)
        assert isinstance(outcomes[21], StoreError)
        assert isinstance(outcomes[21].__cause__, sqlite3.IntegrityError)
        others = [*outcomes[:20], *outcomes[22:]]
        assert [outcome["configurable"]["thread_id"] for outcome in others] == [str(number) for number in range(40)]
        assert len(list(saver.list(None))) == 41
    assert statements.count("COMMIT") <= 8  # halves of 42, down to the one
    with looking_at(path) as connection:
        assert connection.execute("SELECT count(*) FROM threadmark_thread WHERE thread_id = 'half'").fetchone() == (0,)


def test_an_operation_is_answered_after_its_commit(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver, looking_at(path) as other:
        for number in range(20):
            saver.put(at(number), checkpoint(), {}, {})
            count = other.execute("SELECT count(*) FROM threadmark_checkpoint").fetchone()
            assert count == (number + 1,)


def test_work_handed_over_before_the_end_is_not_refused_as_late() -> None:
    class Ending(Jobs):
        def _hand_over(self, jobs: list[Job]) -> None:
            super()._hand_over(jobs)
            self.close()

    async def body() -> None:
        jobs = Ending()
        futures = [jobs.asubmit(Transaction(_failing, writes=True)) for _ in range(100)]
        await asyncio.sleep(0)
        taken = jobs.next_batch()
        assert [future.done() for future in futures] == [False] * len(taken) + [True] * (100 - len(taken))
        assert all(isinstance(future.exception(), ClosedError) for future in futures[len(taken) :])
        assert 0 < len(taken) < 100

    asyncio.run(body())


def test_a_cancelled_task_waits_for_a_put_that_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it reads then is what stays: the put does not take effect later."""
    has_begun, go_on = threading.Event(), threading.Event()

    def pausing(begin: Callable[[], Program[Any]]) -> Program[Any]:
        result = yield from begin()
        has_begun.set()
        assert go_on.wait(60)
        return result

    def arun(transaction: Transaction[Any]) -> Any:
        return driver_arun(transaction.through(pausing) if transaction.writes else transaction)

    async def main() -> None:
        put = asyncio.ensure_future(saver.aput(at("thread"), checkpoint(), {}, {}))
        await asyncio.to_thread(has_begun.wait, 60)
        for _ in range(3):
            put.cancel()
            await asyncio.sleep(0)
        assert not put.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await put
        assert await saver.aget_tuple(at("thread")) is not None

    with SqliteSaver(tmp_path / "threads.db") as saver:
        driver_arun = saver._driver.arun
        monkeypatch.setattr(saver._driver, "arun", arun)
        asyncio.run(main())


@pytest.mark.parametrize("attempt", range(4))
def test_a_cancelled_put_is_there_whole_or_not_at_all(attempt: int, tmp_path: Path) -> None:
    path = tmp_path / "threads.db"

    async def cancel_some() -> None:
        run = Run(saver)
        await run.step({"kept": "x" * 1000})
        for number in range(60):
            made = checkpoint({"a": ["y" * 500, number]}, checkpoint_id=early_id(number))
            put = asyncio.ensure_future(saver.aput(at("cancelled"), made, {}, {"a": 1}))
            write = asyncio.ensure_future(saver.aput_writes(run.config, [("a", number), ("b", number)], str(number)))
            for _ in range((number + attempt) % 6):
                await asyncio.sleep(0)
            if number % 3 == attempt % 3:
                await asyncio.sleep(0.0005 * (number % 5))
            put.cancel()
            write.cancel()
            await asyncio.gather(put, write, return_exceptions=True)
        await run.step({"after": 1})

    with SqliteSaver(path, durability="normal") as saver:
        asyncio.run(cancel_some())
        for item in saver.list(at("cancelled")):
            assert item.checkpoint["channel_values"]["a"][0] == "y" * 500
        after, before = list(saver.list(at("thread")))
        assert after.checkpoint["channel_values"] == {"kept": "x" * 1000, "after": 1}
        tasks: dict[str, list[str]] = {}
        for task, channel, _ in before.pending_writes or []:
            tasks.setdefault(task, []).append(channel)
        assert all(channels == ["a", "b"] for channels in tasks.values())
    with looking_at(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
