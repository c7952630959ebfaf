"""Waiting for another connection's lock: it is asked for often, up to the timeout, and nothing stays behind."""

import asyncio
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from children import child, finished, line_from, send_line
from patience import wait_until
from sqlite_file import looking_at
from threadmark import TransientStoreError
from threadmark_conformance.engine import at, checkpoint
from threadmark_sqlite import SqliteSaver

HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
connection.close()
"""
BEGIN = "BEGIN IMMEDIATE"


def _put(saver: SqliteSaver, thread_id: str = "thread") -> None:
    saver.put(at(thread_id), checkpoint({"a": 1}), {}, {"a": 1})


def _put_on_a_loop(saver: SqliteSaver) -> None:
    asyncio.run(saver.aput(at("thread"), checkpoint({"a": 1}), {}, {"a": 1}))


def _count(saver: SqliteSaver) -> int:
    return len(list(saver.list(None)))


@contextmanager
def _locked(path: Path, timeout: float) -> Iterator[tuple[SqliteSaver, sqlite3.Connection]]:
    """A saver that has stored a checkpoint, and another connection, which has the lock now."""
    with SqliteSaver(path, timeout=timeout) as saver, looking_at(path) as other:
        _put(saver)
        other.execute(BEGIN)
        yield saver, other


PUTS = pytest.mark.parametrize("put", [_put, _put_on_a_loop])


def _writer(saver: SqliteSaver) -> Any:
    driver: Any = saver._driver
    return driver._handles.writer


@contextmanager
def _statements(saver: SqliteSaver) -> Iterator[list[str]]:
    """The statements of the writing connection during the block."""
    executed: list[str] = []
    connection = _writer(saver)._connection
    connection.set_trace_callback(executed.append)
    yield executed
    connection.set_trace_callback(None)


def _on_a_thread(call: Callable[..., object], *arguments: Any) -> tuple[threading.Thread, list[BaseException]]:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            call(*arguments)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, errors


def _error_of(call: Callable[..., object], *arguments: Any) -> BaseException:
    thread, errors = _on_a_thread(call, *arguments)
    thread.join(60)
    assert not thread.is_alive()
    (error,) = errors
    return error


@PUTS
def test_another_process_is_waited_for_by_asking_often(put: Callable[..., None], tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path, timeout=60) as saver:
        _put(saver)
        with _statements(saver) as executed:
            holder = child(HOLD, path)
            assert line_from(holder.stdout) == "held"
            # That this thread goes on shows that a waiting caller lets others run.
            thread, errors = _on_a_thread(put, saver)
            wait_until(lambda: executed.count(BEGIN) > 20, "it does not ask again")
            assert thread.is_alive()
            send_line(holder.stdin)
            finished(holder)
            thread.join()
        assert errors == []
        assert set(executed[: executed.index("COMMIT")][:20]) == {BEGIN}
        assert _count(saver) == 2


@PUTS
def test_who_is_alone_asks_once(put: Callable[..., None], tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db") as saver:
        _put(saver)
        with _statements(saver) as executed:
            put(saver)
        assert executed.count(BEGIN) == 1
        assert not [statement for statement in executed if "PRAGMA busy_timeout" in statement]


@pytest.mark.parametrize("timeout", [0, 0.001, 0.3])
@PUTS
def test_the_timeout_is_for_the_whole_wait(put: Callable[..., None], timeout: float, tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with _locked(path, timeout) as (saver, other):
        with _statements(saver) as executed:
            begun = time.monotonic()
            error = _error_of(put, saver)
            took = time.monotonic() - begun
        assert took >= timeout
        assert isinstance(error, TransientStoreError)
        assert str(error).endswith(
            f"has been locked by another connection for {timeout:g} s: end its transaction, or give a longer timeout"
        )
        assert isinstance(error.__cause__, sqlite3.OperationalError)
        assert set(executed) == {BEGIN}
        other.execute("ROLLBACK")
        put(saver)
        assert _count(saver) == 2


def test_callers_that_come_while_one_waits_share_its_commit(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with _locked(path, 60) as (saver, other):
        with _statements(saver) as executed:
            first, errors = _on_a_thread(_put, saver, "first")
            wait_until(lambda: BEGIN in executed, "it does not ask")
            rest = [_on_a_thread(_put, saver, f"thread {number}") for number in range(5)]
            wait_until(lambda: len(_writer(saver)._callers.waiting) == 5, "they do not come")
            other.execute("ROLLBACK")
            for thread, more in ((first, errors), *rest):
                thread.join()
                errors += more
        assert errors == []
        assert executed.count("COMMIT") == 1
        assert _count(saver) == 7


def test_a_removal_gives_space_back_once_it_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with _locked(path, 0.2) as (saver, other):
        with _statements(saver) as executed:
            assert isinstance(_error_of(saver.delete_thread, "thread"), TransientStoreError)
            assert set(executed) == {BEGIN}
            other.execute("ROLLBACK")
            executed.clear()
            saver.delete_thread("thread")
        # SQLite waits for readers, and not for the whole timeout, as others cannot write; then it asks often again.
        assert executed[-4:] == [
            "PRAGMA busy_timeout = 100",
            "PRAGMA incremental_vacuum",
            "PRAGMA wal_checkpoint(TRUNCATE)",
            "PRAGMA busy_timeout = 3",
        ]


@pytest.mark.skipif(sys.platform == "win32", reason="no signal can be sent to a thread there")
def test_an_interrupt_of_who_waits_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    interrupted = threading.Event()

    def interrupt(*_: object) -> None:
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt

    def interrupt_when_it_waits() -> None:
        wait_until(lambda: BEGIN in executed, "it does not ask")
        while not interrupted.is_set():  # Python misses a signal that comes just before it begins to wait for a lock
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
            interrupted.wait(0.1)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with _locked(path, 60) as (saver, other):
            with _statements(saver) as executed:
                interrupting, errors = _on_a_thread(interrupt_when_it_waits)
                with pytest.raises(KeyboardInterrupt):
                    _put(saver)
                interrupting.join()
                assert errors == []
                other.execute("ROLLBACK")
                _put(saver)
            assert _count(saver) == 3  # the transaction is stored, though no caller waits for it
            other.execute(BEGIN)  # the lock is free
            other.execute("ROLLBACK")
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_task_that_is_cancelled_while_it_waits_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"

    async def main() -> None:
        with _statements(saver) as executed:
            other.execute(BEGIN)
            task = asyncio.ensure_future(saver.aput(at("thread"), checkpoint({"a": 1}), {}, {"a": 1}))
            await asyncio.to_thread(wait_until, lambda: BEGIN in executed, "it does not ask")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            other.execute("ROLLBACK")
            await saver.aput(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})

    with SqliteSaver(path, timeout=60) as saver, looking_at(path) as other:
        _put(saver)
        asyncio.run(main())
        assert _count(saver) == 2  # without that of the cancelled task
        other.execute(BEGIN)
        other.execute("ROLLBACK")


def test_a_file_without_a_log_waits_for_readers_too(tmp_path: Path) -> None:
    path, copy = tmp_path / "threads.db", tmp_path / "copy.db"
    with SqliteSaver(path) as saver, looking_at(path) as other:
        _put(saver)
        other.execute("VACUUM INTO ?", (str(copy),))
    with SqliteSaver(copy, timeout=60) as saver, closing(sqlite3.connect(copy, isolation_level=None)) as reader:
        _put(saver)
        assert reader.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM threadmark_checkpoint").fetchone()
        with _statements(saver) as executed:
            thread, errors = _on_a_thread(_put, saver)
            wait_until(lambda: "COMMIT" in executed, "it does not commit")
            time.sleep(0.1)
            assert thread.is_alive()
            reader.execute("ROLLBACK")
            thread.join()
        assert errors == []
        assert executed.count(BEGIN) == 1
        assert _count(saver) == 3
