"""The log of the SQLite backend, on files and connections of every kind, and handlers that can harm no stored row."""

import asyncio
import logging
import os
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

import sqlite_next_format
from log_lines import assert_nothing_is_logged_of, handlers, lines_of
from patience import wait_until
from sqlite_file import looking_at
from threadmark import ConfigError, StoreError
from threadmark.program import Program, Transaction
from threadmark_conformance.engine import at, checkpoint
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.steps import Query

LOGGER = "threadmark.sqlite"
SLOW = 0.2
"""Seconds from which on a transaction is logged."""


@pytest.fixture(autouse=True)
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[..., list[str]]]:
    """The lines logged so far at a level, which it then forgets."""
    with lines_of(LOGGER, caplog) as found:
        yield found


def store(saver: SqliteSaver, thread: str = "thread") -> Any:
    return saver.put(at(thread), checkpoint({"a": 1}), {}, {"a": 1})


def on_main_thread(call: Callable[[], Any]) -> None:
    call()


def on_another_thread(call: Callable[[], Any]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(call).result()


THREADS = [on_main_thread, on_another_thread]


@pytest.mark.parametrize("run", THREADS)
def test_new_tables_are_told_once(tmp_path: Path, lines: Callable[..., list[str]], run: Callable[..., None]) -> None:
    path = tmp_path / "threads.db"
    for _ in range(2):
        with SqliteSaver(path) as saver:
            run(lambda: store(saver))
            run(lambda: saver.get(at("thread")))
    (line,) = lines(logging.INFO)
    assert re.fullmatch(rf"SQLite database {str(path)!r}: made the tables of format 1 in \d+\.\d+ s", line)


def test_new_tables_are_told_for_a_database_in_memory_and_for_asyncio(
    tmp_path: Path, lines: Callable[..., list[str]]
) -> None:
    async def use(saver: SqliteSaver) -> None:
        await saver.aput(at("thread"), checkpoint(), {}, {})

    async def body() -> None:
        await use(SqliteSaver(":memory:"))
        async with SqliteSaver(tmp_path / "threads.db") as saver:
            await use(saver)
        async with aiosqlite.connect(tmp_path / "another.db") as connection:
            await use(SqliteSaver(connection))

    asyncio.run(body())
    found = lines(logging.INFO)
    assert [line.partition(" in ")[0].rpartition("/")[2] for line in found] == [
        "SQLite database ':memory:': made the tables of format 1",
        "threads.db': made the tables of format 1",
        "another.db': made the tables of format 1",
    ]


def test_a_migration_is_told_with_its_formats_and_its_duration(
    tmp_path: Path, lines: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        saver.setup()
    lines(logging.INFO)
    sqlite_next_format.install(monkeypatch)
    with SqliteSaver(path) as saver:
        assert not list(saver.list(None))
    (line,) = lines(logging.INFO)
    assert re.fullmatch(
        rf"SQLite database {str(path)!r}: migrated from format 1 to {sqlite_next_format.NUMBER} in \d+\.\d+ s", line
    )


def let_go_late(saver: SqliteSaver, other: sqlite3.Connection) -> None:
    """End another's transaction when a caller has waited for its lock for longer than `SLOW`."""
    driver: Any = saver._driver
    wait_until(driver._handles.writer.turn.locked, "nobody waits")
    time.sleep(1.5 * SLOW)
    other.execute("ROLLBACK")


@pytest.mark.parametrize("run", THREADS)
def test_a_write_that_waits_for_a_lock_is_told(
    tmp_path: Path, lines: Callable[..., list[str]], run: Callable[..., None]
) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path, slow=SLOW) as saver:
        store(saver)
        lines(logging.WARNING)  # on a busy machine even that may be slow
        for call in (lambda: store(saver), lambda: asyncio.run(saver.aput(at("b"), checkpoint(), {}, {}))):
            with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
                other.execute("BEGIN IMMEDIATE")
                release = threading.Thread(target=let_go_late, args=(saver, other))
                release.start()
                run(call)
                release.join()
            (line,) = lines(logging.WARNING)
            assert line.startswith(f"SQLite database {str(path)!r}: a transaction that writes (SqliteStore.add) took ")
            assert line.endswith(" s, waiting for locks included")


def test_a_lock_that_is_never_released_is_told_and_raised(tmp_path: Path, lines: Callable[..., list[str]]) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path, slow=SLOW, timeout=2 * SLOW) as saver, looking_at(path) as other:
        store(saver)
        lines(logging.WARNING)  # as above
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            store(saver)
    assert len(lines(logging.WARNING)) == 1


def test_slow_is_whatever_the_user_says(tmp_path: Path, lines: Callable[..., list[str]]) -> None:
    for slow, logged in ((0, True), (30, False), (None, False)):
        for database in (tmp_path / f"{slow}.db", ":memory:"):
            with SqliteSaver(database, slow=slow) as saver:
                config = store(saver)
                saver.get(config)
            found = lines(logging.WARNING)
            assert any("that writes (SqliteStore.add)" in line for line in found) == logged
            assert any("that reads (load)" in line for line in found) == logged
            assert bool(found) == logged
    with pytest.raises(ConfigError, match="slow must be"):
        SqliteSaver(tmp_path / "threads.db", slow=-1)
    assert not (tmp_path / "threads.db").exists()


def test_a_connection_of_the_user_is_watched_as_well(tmp_path: Path, lines: Callable[..., list[str]]) -> None:
    async def body() -> None:
        async with aiosqlite.connect(tmp_path / "threads.db") as connection:
            saver = SqliteSaver(connection, slow=0)
            await saver.aput(at("thread"), checkpoint(), {}, {})
            assert any("that writes (SqliteStore.add)" in line for line in lines(logging.WARNING))
            await asyncio.to_thread(saver.get, at("thread"))
            assert any("that reads (load)" in line for line in lines(logging.WARNING))

    asyncio.run(body())


def _failing() -> Program[None]:
    yield Query(
        "INSERT INTO threadmark_thread (thread_id, epoch, live, created_at) VALUES ('half', 1, 1, 'distinctive')"
    )
    yield Query("INSERT INTO threadmark_thread (thread_id, epoch, live, created_at) VALUES ('half', 1, 1, 1)")


def test_a_batch_that_is_done_again_in_halves_is_told(tmp_path: Path, lines: Callable[..., list[str]]) -> None:
    path = tmp_path / "threads.db"

    async def body(saver: SqliteSaver) -> list[Any]:
        puts = [saver.aput(at(number), checkpoint({"a": number}), {}, {"a": 1}) for number in range(4)]
        with looking_at(path) as other:
            other.execute("BEGIN IMMEDIATE")
            tasks = [
                asyncio.ensure_future(each) for each in (*puts, saver._driver.arun(Transaction(_failing, writes=True)))
            ]
            await asyncio.sleep(0.2)
            other.execute("ROLLBACK")
        outcomes: list[Any] = await asyncio.gather(*tasks, return_exceptions=True)
        return outcomes

    with SqliteSaver(path) as saver:
        store(saver)
        outcomes = asyncio.run(body(saver))
    assert [isinstance(outcome, StoreError) for outcome in outcomes] == [False] * 4 + [True]
    found = lines(logging.DEBUG)
    assert found
    assert all("transactions failed (IntegrityError): it is done again in halves" in line for line in found)
    assert not any("distinctive" in line for line in found)


def test_a_file_that_was_replaced_is_told(tmp_path: Path, lines: Callable[..., list[str]]) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(tmp_path / "other.db") as saver:
        store(saver)
    for run in THREADS:
        with SqliteSaver(path, slow=None) as saver:
            store(saver)
            shutil.copy(tmp_path / "other.db", tmp_path / "copy.db")
            os.replace(tmp_path / "copy.db", path)  # noqa: PTH105 - as a restore does it
            run(lambda: store(saver))
        assert lines(logging.WARNING) == [
            f"SQLite database {str(path)!r} was replaced: the new file is used from now on"
        ]


@pytest.fixture
def handler() -> Iterator[Callable[[Callable[[], Any]], None]]:
    with handlers(LOGGER) as add:
        yield add


@pytest.mark.parametrize("run", THREADS)
def test_a_handler_that_raises_loses_no_answer(
    tmp_path: Path, run: Callable[..., None], handler: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise OSError("the log is full")

    handler(fail)
    with SqliteSaver(tmp_path / "threads.db", slow=0) as saver:
        run(lambda: store(saver))
        asyncio.run(saver.aput(at("thread"), checkpoint(), {}, {}))
        assert len(list(saver.list(None))) == 2
    assert "the log is full" in capsys.readouterr().err


def test_a_handler_may_use_the_saver_that_logs(tmp_path: Path, handler: Callable[..., None]) -> None:
    busy = threading.local()

    def store_too() -> None:
        if not getattr(busy, "yes", False):
            busy.yes = True
            store(saver, "log")
            busy.yes = False

    with SqliteSaver(tmp_path / "threads.db", slow=0) as saver:
        handler(store_too)
        for run in THREADS:
            run(lambda: store(saver))
        asyncio.run(saver.aput(at("thread"), checkpoint(), {}, {}))
        assert len(list(saver.list(at("log")))) >= 3


def test_a_handler_that_waits_for_a_lock_of_a_caller_stops_nobody_else(
    tmp_path: Path, handler: Callable[..., None]
) -> None:
    lock = threading.Lock()

    def wait() -> None:
        if threading.current_thread() is not threading.main_thread():  # that has the lock
            with lock:
                pass

    with SqliteSaver(tmp_path / "threads.db", slow=SLOW) as saver, ThreadPoolExecutor(1) as pool:
        store(saver)
        handler(wait)
        with lock:
            with looking_at(tmp_path / "threads.db") as other:
                other.execute("BEGIN IMMEDIATE")
                slow = pool.submit(store, saver)
                let_go_late(saver, other)
            wait_until(lambda: len(list(saver.list(None))) == 2, "it is not stored")
            store(saver, "another")  # by the writer's thread, which does not wait for the handler
            assert not slow.done()
        slow.result()


def test_no_value_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    distinctive = "a sentence that stands nowhere else"
    path = tmp_path / "threads.db"
    for database in (path, ":memory:"):
        with SqliteSaver(database, slow=0, cache_bytes=10_000) as saver:
            config: Any = at("thread")
            for number in range(12):
                made = checkpoint({"a": [f"{distinctive} {each}" for each in range(200 + number)]})
                config = saver.put(config, made, {"note": distinctive}, {"a": number + 1})
                saver.put_writes(config, [("a", distinctive), ("__error__", distinctive)], f"task {number}")
            assert list(saver.list(at("thread"), filter={"note": distinctive}))
            saver.copy_thread("thread", "copy")
            saver.prune(["thread"], keep_last=2)
            saver.delete_thread("copy")
            assert saver.verify().problems == []
            for wrong in ({"a": object()}, {"a": {"deep": lambda: distinctive}}):
                with pytest.raises(Exception, match="cannot be stored"):
                    saver.put(config, checkpoint(wrong), {"note": distinctive}, {"a": 99})
            saver.stats()
    assert_nothing_is_logged_of(caplog, distinctive)
