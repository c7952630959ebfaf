"""A database file that is deleted, moved, replaced or written over while savers have it open.

Earlier acknowledged writes are not touched, later ones are in the file at the path, and nothing of
the old file's log gets into another one.
"""

import asyncio
import os
import random
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from select import select
from types import SimpleNamespace
from typing import Any

import aiosqlite
import pytest

import threadmark_sqlite.driver.connection as opening
from children import child, finished, line_from, send_line
from patience import wait_until
from sqlite_file import looking_at
from threadmark import StoreError, ThreadmarkError
from threadmark_conformance.engine import at, checkpoint, early_id
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.driver import database_files, handles, log_index, watch

LONG = "a long value that is stored as a segment of its own, "
SIDES = ("-wal", "-shm")


class Sync:
    """A saver, asked by blocking calls from a thread that may write by itself."""

    def __init__(self, saver: SqliteSaver) -> None:
        self.saver = saver
        self._pool = ThreadPoolExecutor(1)

    def put(self, thread: str, number: int, parent: Any = None) -> Any:
        return self._pool.submit(self.saver.put, *_put(thread, number, parent)).result()

    def write(self, config: Any, task: str) -> None:
        self._pool.submit(self.saver.put_writes, config, [("a", LONG * 50)], task).result()

    def numbers(self, thread: str) -> list[int]:
        return [item.metadata["n"] for item in self._pool.submit(list, self.saver.list(at(thread))).result()]


class Async(Sync):
    """A saver, asked through asyncio."""

    def put(self, thread: str, number: int, parent: Any = None) -> Any:
        return asyncio.run(self.saver.aput(*_put(thread, number, parent)))

    def write(self, config: Any, task: str) -> None:
        asyncio.run(self.saver.aput_writes(config, [("a", LONG * 50)], task))

    def numbers(self, thread: str) -> list[int]:
        async def listed() -> list[int]:
            return [item.metadata["n"] async for item in self.saver.alist(at(thread))]

        return asyncio.run(listed())


def _put(thread: str, number: int, parent: Any) -> tuple[Any, ...]:
    made = checkpoint({"a": [LONG * 40, number], "kept": LONG * 60}, {"a": number, "kept": 1})
    made["id"] = early_id(number)
    return parent or at(thread), made, {"n": number}, {"a": number} | ({} if parent else {"kept": 1})


@pytest.fixture(params=[Sync, Async])
def api(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agents.db"


def _backup(path: Path) -> Path:
    """A copy of the database as it is now, made as SQLite's documentation says."""
    copy = path.with_name("backup.db")
    with looking_at(path) as source, looking_at(copy) as target:
        source.backup(target)
    return copy


def _everything(path: Path) -> dict[int, Any]:
    """The threads that a new saver reads, proven."""
    with SqliteSaver(path) as saver:
        assert saver.verify().problems == []
        found = {item.metadata["n"]: item.checkpoint["channel_values"]["a"] for item in saver.list(None)}
    with looking_at(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return found


def _content(path: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in path.parent.iterdir()}


# Deleted


@pytest.mark.parametrize("how", ["deleted", "moved", "folder"])
def test_a_file_that_is_gone_is_an_error_and_not_made_anew(how: str, api: type[Sync], path: Path) -> None:
    folder = path.parent / "folder"
    folder.mkdir()
    path = folder / path.name
    with SqliteSaver(path) as saver:
        one = api(saver)
        config = one.put("thread", 1)
        if how == "deleted":
            path.unlink()
        elif how == "moved":
            path.rename(folder / "elsewhere.db")
        else:
            shutil.rmtree(folder)
        for call in (
            lambda: one.put("thread", 2, config),
            lambda: one.write(config, "task"),
            lambda: one.numbers("thread"),
            lambda: saver.get(config),
            lambda: saver.delete_thread("thread"),
            saver.has_tables,
        ):
            with pytest.raises(StoreError, match=r"agents\.db' was deleted or moved away .* until it is back"):
                call()
        assert not path.exists()
        if how == "moved":
            (folder / "elsewhere.db").rename(path)
            config = one.put("thread", 2, config)
            assert one.numbers("thread") == [2, 1]
    if how == "moved":
        assert set(_everything(path)) == {1, 2}


def test_a_file_that_was_moved_away_takes_its_log_along(api: type[Sync], path: Path) -> None:
    moved = path.with_name("moved.db")
    with SqliteSaver(path) as saver:
        one = api(saver)
        config = None
        for number in range(1, 6):
            config = one.put("thread", number, config)
        path.rename(moved)
        with pytest.raises(StoreError, match="moved away"):
            one.put("thread", 6, config)
    assert sorted(each.name for each in path.parent.iterdir()) == ["moved.db"]
    assert set(_everything(moved)) == {1, 2, 3, 4, 5}


def test_a_file_that_is_gone_before_the_answer_is_not_acknowledged(api: type[Sync], path: Path) -> None:
    """It is deleted while the transaction is under way: after the look before it, before its commit."""
    with SqliteSaver(path) as saver:
        one = api(saver)
        config = one.put("thread", 1)
        with looking_at(path) as other, ThreadPoolExecutor(1) as pool:
            other.execute("BEGIN IMMEDIATE")
            late = pool.submit(one.put, "thread", 2, config)
            driver: Any = saver._driver
            wait_until(driver._handles.writer.turn.locked, "nobody writes")
            time.sleep(0.05)  # from the look to the lock: also if it has not come so far, this is an error
            path.unlink()
            other.execute("ROLLBACK")
            with pytest.raises(StoreError, match="was deleted or moved away"):
                late.result()


# Replaced


@pytest.fixture(params=["rename", "remove the log first", "remove all first", "remove and copy"])
def restore(request: pytest.FixtureRequest) -> Callable[[Path, Path], None]:
    """The ways in which a backup gets to the path as another file."""

    def restored(backup: Path, path: Path) -> None:
        if request.param.startswith("remove"):
            removed = {"remove the log first": SIDES, "remove all first": ("", *SIDES), "remove and copy": ("",)}
            for side in removed[request.param]:
                path.with_name(path.name + side).unlink(missing_ok=True)
        fresh = path.with_name("fresh.db")
        shutil.copy(backup, fresh)
        fresh.replace(path)

    return restored


def test_a_restored_backup_is_gone_on_with(api: type[Sync], path: Path, restore: Callable[[Path, Path], None]) -> None:
    with SqliteSaver(path) as saver:
        one = api(saver)
        config = one.put("thread", 1)
        backup = _backup(path)
        later = one.put("thread", 2, config)
        one.write(config, "after the backup")
        one.put("other", 3)
        restore(backup, path)
        assert one.numbers("thread") == [1]
        assert one.numbers("other") == []
        one.put("thread", 4, config)
        one.put("other", 5)
        assert one.numbers("thread") == [4, 1]
        assert one.saver.get(later) is None
    assert {number: values[1] for number, values in _everything(path).items()} == {1: 1, 4: 4, 5: 5}


def test_the_first_to_notice_may_write(api: type[Sync], path: Path, restore: Callable[[Path, Path], None]) -> None:
    """The memory of the old file (here a task's writes) must not be taken for granted in the new one."""
    with SqliteSaver(path) as saver:
        one = api(saver)
        config = one.put("thread", 1)
        backup = _backup(path)
        one.write(config, "after the backup")
        second = one.put("thread", 2, config)
        restore(backup, path)
        third = one.put("thread", 3, second)  # its parent is not there any more
        one.write(third, "task")
        one.put("thread", 4, config)
        assert one.numbers("thread") == [4, 3, 1]
    found = _everything(path)
    assert {number: values[1] for number, values in found.items()} == {1: 1, 3: 3, 4: 4}


@pytest.mark.parametrize("first", ["write", "read"])
def test_what_a_task_wrote_after_the_backup_is_not_counted_on(
    first: str, api: type[Sync], path: Path, restore: Callable[[Path, Path], None]
) -> None:
    """The thread's epoch in the backup is the one that is remembered, but not all of its segments are there."""
    with SqliteSaver(path) as saver:
        one = api(saver)
        config = one.put("thread", 1)
        backup = _backup(path)
        result = random.Random(0).randbytes(20_000)
        saver.put_writes(config, [("a", result)], "task")
        restore(backup, path)
        if first == "read":
            assert one.numbers("thread") == [1]
        made = checkpoint({"a": result}, {"a": 2, "kept": 1})
        asyncio.run(saver.aput(config, made, {"n": 2}, {"a": 2}))
        found = saver.get(at("thread"))
        assert found is not None
        assert found["channel_values"]["a"] == result
    assert set(_everything(path)) == {1, 2}


@pytest.mark.parametrize("by", ["path", "link"])
def test_who_comes_after_the_restoring_does_not_read_the_old_log(by: str, path: Path) -> None:
    """A saver that is there already, and has nothing to do, takes its log away before another one opens the file."""
    with SqliteSaver(path) as idle:
        idle.put(*_put("thread", 1, None))
        backup = _backup(path)
        idle.put(*_put("thread", 2, None))
        shutil.copy(backup, path.with_name("fresh.db"))
        path.with_name("fresh.db").replace(path)
        link = path.with_name("link.db")
        link.symlink_to(path)
        with SqliteSaver(link if by == "link" else path) as saver:
            one = Sync(saver)
            assert one.numbers("thread") == [1]
            one.put("thread", 3)
            assert [item.metadata["n"] for item in idle.list(at("thread"))] == [3, 1]
        idle.put(*_put("thread", 4, None))
    assert set(_everything(path)) == {1, 3, 4}


def test_several_savers_and_a_reader_go_on_with_a_restored_backup(
    path: Path, restore: Callable[[Path, Path], None]
) -> None:
    with SqliteSaver(path) as first, SqliteSaver(path) as second, SqliteSaver(path) as reader:
        one, other = Sync(first), Async(second)
        config = one.put("thread", 1)
        backup = _backup(path)
        here, there = one.put("thread", 2, config), other.put("other", 12)
        assert Sync(reader).numbers("thread") == [2, 1]
        restore(backup, path)
        one.put("thread", 3, here)
        other.put("other", 13, there)
        one.put("thread", 4, config)
        other.put("thread", 5, config)
        assert Sync(reader).numbers("thread") == [5, 4, 3, 1]
        assert Sync(reader).numbers("other") == [13]
    assert {number: values[1] for number, values in _everything(path).items()} == {1: 1, 3: 3, 4: 4, 5: 5, 13: 13}


def test_a_file_that_is_replaced_while_it_is_opened_is_not_mixed_with_the_old_log(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that was opened to the new file must not even look at the log, which is still the old one's."""

    def replacing(settings: opening.Settings, **options: bool) -> str:
        if backup.exists():
            backup.replace(path)
        return location(settings, **options)

    location = opening.location
    with SqliteSaver(path) as saver:
        one = Sync(saver)
        config = one.put("thread", 1)
        backup = _backup(path)
        one.put("thread", 2, config)
        handles = saver._driver._handles  # type: ignore[attr-defined]  # the file's driver
        handles._close_idle()  # a reader that is open already would see the old file to the end
        monkeypatch.setattr(opening, "location", replacing)
        assert one.numbers("thread") == [1]
        one.put("thread", 3, config)
    assert set(_everything(path)) == {1, 3}


def test_a_file_that_is_replaced_just_before_it_is_opened_gets_nothing_of_the_old_log(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is opened in place of the old one, and closing it would copy the log into it."""

    def look(settings: opening.Settings) -> os.stat_result | None:
        if backup.exists():
            backup.replace(path)
        return look_at(settings)

    look_at = watch._look
    with SqliteSaver(path) as saver:
        one = Sync(saver)
        config = one.put("thread", 1)
        backup = _backup(path)
        one.put("thread", 2, config)
        handles = saver._driver._handles  # type: ignore[attr-defined]  # the file's driver
        handles._close_idle()
        monkeypatch.setattr(watch, "_look", look)
        assert one.numbers("thread") == [1]
    assert set(_everything(path)) == {1}


def test_the_only_connection_is_waited_for_while_another_thread_reads(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteSaver(path) as saver:
        saver.put(*_put("thread", 1, None))
    shutil.copy(path, path.with_name("fresh.db"))
    reading, replaced = threading.Event(), threading.Event()
    with SqliteSaver(path) as saver:
        one = Sync(saver)
        assert one.numbers("thread") == [1]

        def transact(*arguments: Any) -> Any:
            if not reading.is_set():
                reading.set()
                replaced.wait()
            return opening.transact(*arguments)

        def sleep(seconds: float) -> None:
            replaced.set()
            time.sleep(seconds)

        monkeypatch.setattr(handles, "transact", transact)
        monkeypatch.setattr(database_files, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(saver.get, at("thread"))
            reading.wait()
            path.with_name("fresh.db").replace(path)
            try:
                assert one.numbers("thread") == [1]
            finally:
                replaced.set()
            assert first.result() is not None


def test_a_saver_that_only_makes_blocks_goes_on_with_a_restored_backup(path: Path) -> None:
    with SqliteSaver(path) as saver:
        saver.put(*_put("thread", 1, None))
    backup = _backup(path)
    with SqliteSaver(path, timeout=0.1) as saver:
        with saver.transaction() as tx:
            tx.saver.put(*_put("thread", 2, None))
        backup.replace(path)
        with saver.transaction() as tx:
            tx.saver.put(*_put("thread", 3, None))
    assert set(_everything(path)) == {1, 3}


def test_the_journal_of_an_open_block_is_not_rolled_back_into_the_new_file(path: Path) -> None:
    """A file without a log, such as one made by VACUUM INTO. The block is larger than SQLite's cache."""
    with SqliteSaver(path) as saver:
        for number in range(30):
            saver.put(*_put(f"thread {number}", number, None))
            if number in (0, 29):
                with looking_at(path) as connection:
                    connection.execute("VACUUM INTO ?", (f"{path}-{number}",))
    small, large = (path.with_name(f"{path.name}-{number}") for number in (0, 29))
    small.replace(path)
    with SqliteSaver(path, timeout=0.1) as saver:
        one = Sync(saver)
        with pytest.raises(StoreError, match="replaced during a transaction"), saver.transaction() as tx:  # noqa: PT012 - the block
            value = random.Random(0).randbytes(3_000_000)
            for thread in ("thread 0", "another"):
                tx.saver.put(at(thread), checkpoint({"a": value}), {}, {"a": 1})
            assert path.with_name(f"{path.name}-journal").read_bytes()[:1] > b"\0"
            large.replace(path)
            with pytest.raises(StoreError, match="has to end before"):
                one.numbers("thread 29")
        assert one.numbers("thread 29") == [29]
    assert set(_everything(path)) == set(range(30))


def test_the_log_of_a_file_that_was_switched_to_one_while_it_was_open_is_taken_away(path: Path) -> None:
    """As Litestream does it with a file without a log, such as one made by VACUUM INTO."""
    with SqliteSaver(path) as saver:
        saver.put(*_put("thread", 1, None))
    with looking_at(path) as connection:
        connection.execute("VACUUM INTO ?", (f"{path}-copy",))
    path.rename(path.with_name("fresh.db"))
    path.with_name(f"{path.name}-copy").rename(path)
    with SqliteSaver(path) as saver:
        one = Sync(saver)
        one.put("thread", 2)
        with looking_at(path) as connection:
            assert connection.execute("PRAGMA journal_mode = WAL").fetchall() == [("wal",)]
        for number in range(3, 9):
            one.put("thread", number)
        path.with_name("fresh.db").replace(path)
        assert one.numbers("thread") == [1]
        one.put("thread", 9)
    assert set(_everything(path)) == {1, 9}


def test_a_reader_in_the_old_file_sees_it_to_the_end(path: Path) -> None:
    with SqliteSaver(path) as saver:
        one = Sync(saver)
        config = one.put("thread", 1)
        backup = _backup(path)
        one.put("thread", 2, config)
        with looking_at(path) as other:
            other.execute("BEGIN")
            assert other.execute("SELECT count(*) FROM threadmark_checkpoint").fetchone() == (2,)
            backup.replace(path)
            assert other.execute("SELECT count(*) FROM threadmark_checkpoint").fetchone() == (2,)
            other.execute("COMMIT")
        assert one.numbers("thread") == [1]


def test_while_the_old_log_cannot_be_emptied_nothing_is_stored(path: Path) -> None:
    with SqliteSaver(path, timeout=0.1) as saver, looking_at(path) as other:
        one = Sync(saver)
        config = one.put("thread", 1)
        backup = _backup(path)
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM threadmark_checkpoint").fetchone()
        config = one.put("thread", 2, config)
        shutil.copy(backup, path.with_name("fresh.db"))
        path.with_name("fresh.db").replace(path)
        before = path.read_bytes()
        for call in (lambda: one.put("thread", 3, config), lambda: one.numbers("thread")):
            with pytest.raises(StoreError, match=r"agents\.db-wal', the log of the file that was there before"):
                call()
        assert path.read_bytes() == before
        other.execute("COMMIT")
        one.put("thread", 4)
        assert one.numbers("thread") == [4, 1]
    assert set(_everything(path)) == {1, 4}


@pytest.mark.parametrize("what", ["empty", "theirs", "text"])
def test_a_file_that_is_not_ours_is_left_alone(what: str, api: type[Sync], path: Path) -> None:
    with SqliteSaver(path) as saver:
        one = api(saver)
        config = one.put("thread", 1)
        good = _backup(path)
        stranger = path.with_name("stranger.db")
        if what == "theirs":
            with looking_at(stranger) as connection:
                connection.execute("CREATE TABLE theirs (x)")
        else:
            stranger.write_bytes(b"no database " * 500 if what == "text" else b"")
        content = stranger.read_bytes()
        stranger.replace(path)
        for call in (lambda: one.put("thread", 2, config), lambda: one.numbers("thread")):
            with pytest.raises(
                ThreadmarkError, match="damaged or is not a SQLite" if what == "text" else "not Threadmark's"
            ):
                call()
        assert path.read_bytes() == content
        good.replace(path)
        one.put("thread", 3, config)
        assert one.numbers("thread") == [3, 1]
    assert set(_everything(path)) == {1, 3}


def test_a_link_that_is_turned_to_another_file(api: type[Sync], path: Path) -> None:
    for name in ("first", "second"):
        (path.parent / name).mkdir()
        with SqliteSaver(path.parent / name / "real.db") as saver:
            saver.put(*_put(name, 1 if name == "first" else 2, None))
    path.symlink_to(path.parent / "first" / "real.db")
    with SqliteSaver(path) as saver:
        one = api(saver)
        one.put("first", 3)
        turned = path.with_name("turned")
        turned.symlink_to(path.parent / "second" / "real.db")
        turned.replace(path)
        assert one.numbers("second") == [2]
        one.put("second", 4)
    assert set(_everything(path.parent / "first" / "real.db")) == {1, 3}
    assert set(_everything(path.parent / "second" / "real.db")) == {2, 4}


WRITE_ON = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threadmark import StoreError
from threadmark_sqlite import SqliteSaver
from threadmark_conformance.engine import at, checkpoint
path, name = sys.argv[1:]
with SqliteSaver(path, durability="normal") as saver, ThreadPoolExecutor(1) as pool:
    config, number = pool.submit(saver.put, at(name), checkpoint(), {"n": [name, 0]}, {}).result(), 0
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "end\\n":
            break
        for _ in range(int(line)):
            number += 1
            value = [name, number, "a long value that is a segment " * 40]
            made = checkpoint({"a": value}, {"a": number})
            config = pool.submit(saver.put, config, made, {"n": [name, number]}, {"a": number}).result()
        print(number, flush=True)
"""


def _lines(process: Any, seconds: float) -> bool:
    """Whether a process writes a line in that time."""
    return bool(select([process.stdout], [], [], seconds)[0])


def test_processes_that_write_all_the_time_go_on_with_a_restored_backup(path: Path) -> None:
    with SqliteSaver(path) as saver:
        saver.put(*_put("thread", 0, None))
    backup = _backup(path)
    children = [child(WRITE_ON, path, f"process {number}") for number in range(3)]
    for each in children:
        assert line_from(each.stdout) == "ready"
    for turn in range(1, 4):
        for each in children:
            send_line(each.stdin, "40")
        time.sleep(0.03 * turn)  # they are writing
        shutil.copy(backup, path.with_name("fresh.db"))
        path.with_name("fresh.db").replace(path)
        for each in children:
            assert line_from(each.stdout) == str(60 * turn - 20), finished(each)
        for each in children:  # a child that was done before notices now
            send_line(each.stdin, "20")
            assert line_from(each.stdout) == str(60 * turn), finished(each)
    for each in children:
        send_line(each.stdin, "end")
        finished(each)
    with SqliteSaver(path) as saver:
        assert saver.verify().problems == []
        for number in range(3):
            name = f"process {number}"
            found = {item.metadata["n"][1] for item in saver.list(at(name))}
            assert set(range(161, 181)) <= found <= set(range(121, 181))
    with looking_at(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def _after_the_first_removal(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Call `act` once the index of a replaced file's log is deleted, and before the log is."""
    remove, acts = database_files._remove, [act]

    def removed(name: str, known: Any) -> None:
        remove(name, known)
        if acts:
            acts.pop()()

    monkeypatch.setattr(database_files, "_remove", removed)


def test_a_process_waits_until_both_the_old_log_and_its_index_are_gone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one that opened the new file with the index of the old log would write over pages of others."""
    with SqliteSaver(path) as saver:
        one = Sync(saver)
        config = one.put("thread", 1)
        backup = _backup(path)
        other = child(WRITE_ON, path, "other")
        assert line_from(other.stdout) == "ready"
        shutil.copy(backup, path.with_name("fresh.db"))
        path.with_name("fresh.db").replace(path)
        early: list[bool] = []

        def write() -> None:
            send_line(other.stdin, "10")
            early.append(_lines(other, 0.5))

        _after_the_first_removal(monkeypatch, write)
        config = one.put("thread", 2, config)
        assert early == [False]
        assert line_from(other.stdout) == "10", finished(other)
        send_line(other.stdin, "30")
        for number in range(3, 33):
            config = one.put("thread", number, config)
        assert line_from(other.stdout) == "40", finished(other)
        send_line(other.stdin, "end")
        finished(other)
        assert one.numbers("thread") == list(range(32, 0, -1))
        assert {item.metadata["n"][1] for item in saver.list(at("other"))} >= set(range(2, 41))
        assert saver.verify().problems == []


def test_a_process_that_comes_between_the_removals_of_index_and_log_waits(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would store in the old log, which is about to be deleted, and leave its index to others."""
    with SqliteSaver(path) as saver:
        one = Sync(saver)
        config = one.put("thread", 1)
        backup = _backup(path)
        config = one.put("thread", 2, config)
        backup.replace(path)
        others: list[Any] = []

        def come() -> None:
            others.append(child(WRITE_ON, path, "other"))
            assert not _lines(others[0], 1)

        _after_the_first_removal(monkeypatch, come)
        config = one.put("thread", 3, config)
        assert line_from(others[0].stdout) == "ready", finished(others[0])
        for number in range(4, 14):
            config = one.put("thread", number, config)
            send_line(others[0].stdin, "1")
            assert line_from(others[0].stdout) == str(number - 3), finished(others[0])
        send_line(others[0].stdin, "end")
        finished(others[0])
        assert one.numbers("thread") == [*range(13, 2, -1), 1]
        assert [item.metadata["n"][1] for item in saver.list(at("other"))] == list(range(10, -1, -1))
        assert saver.verify().problems == []


KILLED = """
import os, sys
from threadmark_conformance.engine import at, checkpoint
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.driver import database_files
def remove(path, known):
    remove_really(path, known)
    os._exit(9)
remove_really, database_files._remove = database_files._remove, remove
saver = SqliteSaver(sys.argv[1])
saver.put(at("killed"), checkpoint(), {"n": 0}, {})
print("ready", flush=True)
sys.stdin.readline()
saver.put(at("killed"), checkpoint(), {"n": 1}, {})
"""


def test_a_process_that_is_killed_between_the_removals_of_index_and_log_costs_nothing(path: Path) -> None:
    """The next process stores in the log that was emptied; the last one in the old file must not empty it again."""
    with SqliteSaver(path) as last:
        last.put(*_put("thread", 1, None))
        killed = child(KILLED, path)
        assert line_from(killed.stdout) == "ready"
        _backup(path).replace(path)
        send_line(killed.stdin)
        killed.communicate(timeout=60)
        assert killed.returncode == 9
        other = child(WRITE_ON, path, "other")
        assert line_from(other.stdout) == "ready"
        send_line(other.stdin, "5")
        assert line_from(other.stdout) == "5"
        assert [item.metadata["n"][1] for item in last.list(at("other"))] == [5, 4, 3, 2, 1, 0]
        send_line(other.stdin, "5")
        assert line_from(other.stdout) == "10", finished(other)
        send_line(other.stdin, "end")
        finished(other)
        assert [item.metadata["n"][1] for item in last.list(at("other"))] == list(range(10, -1, -1))
        assert last.verify().problems == []


# Written over, truncated, robbed of its log


def test_a_file_that_was_written_over_is_refused_and_not_mixed_with_the_old_log(api: type[Sync], path: Path) -> None:
    with SqliteSaver(path) as saver:
        one = api(saver)
        config = one.put("thread", 1)
        backup = _backup(path)
        for number in range(2, 30):
            config = one.put("thread", number, config)
        shutil.copyfile(backup, path)
        for call in (
            lambda: one.put("thread", 30, config),
            lambda: one.put("thread", 30),
            lambda: one.numbers("thread"),
        ):
            with pytest.raises(
                StoreError, match=r"agents\.db' was written to past SQLite .* delete '.*agents\.db-wal'"
            ):
                call()
    # Not even the last connection has written its log over the restored file.
    assert path.read_bytes() == backup.read_bytes()
    for side in SIDES:
        path.with_name(path.name + side).unlink()
    assert set(_everything(path)) == {1}


def test_a_file_that_was_written_over_after_the_last_put_is_not_harmed_by_the_end(api: type[Sync], path: Path) -> None:
    with SqliteSaver(path) as saver:
        one = api(saver)
        config = one.put("thread", 1)
        backup = _backup(path)
        for number in range(2, 30):
            config = one.put("thread", number, config)
        shutil.copyfile(backup, path)
    assert path.read_bytes() == backup.read_bytes()


def test_a_file_that_was_written_over_while_its_log_was_empty_is_gone_on_with(api: type[Sync], path: Path) -> None:
    with SqliteSaver(path) as saver:
        one = api(saver)
        config = one.put("thread", 1)
        backup = _backup(path)
        one.put("thread", 2, config)
        one.put("gone", 3)
        saver.delete_thread("gone")  # this empties the log
        shutil.copyfile(backup, path)
        one.put("thread", 4, config)
        assert one.numbers("thread") == [4, 1]
    assert set(_everything(path)) == {1, 4}


def test_a_file_that_was_truncated_is_refused(api: type[Sync], path: Path) -> None:
    with SqliteSaver(path) as saver:
        one = api(saver)
        config = one.put("thread", 1)
        with SqliteSaver(path) as second:  # another saver has committed: that must not hide it
            second.put(*_put("other", 1, None))
        os.truncate(path, 0)
        with pytest.raises(StoreError, match="was written to past SQLite"):
            one.put("thread", 2, config)
    assert path.stat().st_size == 0


def test_a_log_that_others_copy_into_the_file_is_no_reason_to_stop(api: type[Sync], path: Path) -> None:
    with SqliteSaver(path) as saver, looking_at(path) as other:
        one = api(saver)
        config = one.put("thread", 1)
        for number in range(2, 5):
            before = path.stat().st_mtime_ns
            assert other.execute("PRAGMA wal_checkpoint").fetchone() is not None
            assert path.stat().st_mtime_ns != before
            config = one.put("thread", number, config)
        assert one.numbers("thread") == [4, 3, 2, 1]
    assert set(_everything(path)) == {1, 2, 3, 4}


@pytest.mark.parametrize("by", ["a tool", "a saver that is closed"])
def test_a_log_that_others_copy_in_part_is_no_reason_to_stop(by: str, api: type[Sync], path: Path) -> None:
    """A reader must not see later commits, so that stays out of the file."""
    with SqliteSaver(path) as earlier, SqliteSaver(path) as saver:
        Sync(earlier).put("other", 1)
        one = api(saver)
        config = one.put("thread", 1)
        with looking_at(path) as reader, looking_at(path) as other:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM threadmark_checkpoint").fetchone() == (2,)
            config = one.put("thread", 2, config)
            before = path.stat().st_mtime_ns
            if by == "a tool":
                _, pages, copied = other.execute("PRAGMA wal_checkpoint").fetchone()
                assert copied < pages
            else:
                earlier.close()
            assert path.stat().st_mtime_ns != before
            config = one.put("thread", 3, config)
        one.put("thread", 4, config)
        assert one.numbers("thread") == [4, 3, 2, 1]
    assert set(_everything(path)) == {1, 2, 3, 4}


@pytest.mark.parametrize("way", ["commit", "copy"])
def test_whoever_writes_while_the_file_is_examined_is_no_reason_to_stop(
    way: str, api: type[Sync], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the copied part of the log is unknown, which is simulated here."""

    def written_to(_: float) -> None:
        if way == "copy":
            reader.execute("ROLLBACK")
            other.execute("PRAGMA wal_checkpoint")
        else:
            other.execute("UPDATE threadmark_thread SET epoch = epoch + 1")
        monkeypatch.undo()

    connect = partial(sqlite3.connect, path, isolation_level=None, check_same_thread=False)
    with SqliteSaver(path) as saver, closing(connect()) as reader, closing(connect()) as other:
        one = api(saver)
        config = one.put("thread", 1)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM threadmark_checkpoint").fetchone() == (1,)
        config = one.put("thread", 2, config)
        other.execute("PRAGMA wal_checkpoint")
        monkeypatch.setattr(log_index, "_OPEN_FILES", "nowhere")
        monkeypatch.setattr(time, "sleep", written_to)
        one.put("thread", 3, config)
        assert one.numbers("thread") == [3, 2, 1]
    assert set(_everything(path)) == {1, 2, 3}


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_log_that_is_gone_is_noticed_and_rescued_by_closing(how: str, api: type[Sync], path: Path) -> None:
    log = path.with_name(f"{path.name}-wal")
    with SqliteSaver(path) as saver:
        one = api(saver)
        config = one.put("thread", 1)
        assert one.numbers("thread") == [1]
        log.unlink()
        if how == "replaced":
            log.touch()
        for call in (lambda: one.put("thread", 2, config), lambda: one.put("more", 3), lambda: one.numbers("thread")):
            with pytest.raises(StoreError, match=r"its log '.*-wal' was deleted or replaced .* close every saver"):
                call()
    assert {1} <= set(_everything(path)) <= {1, 2}


# Connections of the user


@pytest.mark.parametrize("how", ["deleted", "replaced", "log"])
def test_an_aiosqlite_connection_to_a_file_that_is_gone_is_refused(how: str, path: Path) -> None:
    def harm() -> None:
        if how == "replaced":
            _backup(path).replace(path)
            contents.append(path.read_bytes())
        else:
            path.with_name(path.name + ("-wal" if how == "log" else "")).unlink()

    async def main() -> None:
        async with aiosqlite.connect(path) as connection:
            saver = SqliteSaver(connection)
            config = await saver.aput(*_put("thread", 1, None))
            harm()
            problem = {"replaced": "open a new connection", "deleted": "was deleted", "log": "its log"}[how]
            for call in (saver.aput(*_put("thread", 2, config)), saver.aget(config)):
                with pytest.raises(StoreError, match=problem):
                    await call

    contents: list[bytes] = []
    asyncio.run(main())
    if contents:
        assert path.read_bytes() == contents[0]


def test_an_aiosqlite_connection_does_not_acknowledge_what_went_into_a_deleted_file(path: Path) -> None:
    async def main() -> None:
        async with aiosqlite.connect(path) as connection:
            saver = SqliteSaver(connection)
            config = await saver.aput(*_put("thread", 1, None))
            with looking_at(path) as other:
                other.execute("BEGIN IMMEDIATE")
                late = asyncio.ensure_future(saver.aput(*_put("thread", 2, config)))
                await asyncio.sleep(0.1)
                delete()
                other.execute("ROLLBACK")
            with pytest.raises(StoreError, match="was deleted"):
                await late

    delete = path.unlink
    asyncio.run(main())


def test_a_connection_given_whose_file_is_gone_makes_no_new_one(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        path.unlink()
        with pytest.raises(ThreadmarkError, match=r"agents\.db', was deleted or moved away"):
            SqliteSaver(connection)
        assert _content(path) == {}


@pytest.fixture(autouse=True)
def nothing_is_left_open() -> Iterator[None]:
    """Every connection that is left behind is closed with its saver."""
    yield
    for entry in Path("/proc/self/fd").iterdir() if Path("/proc/self/fd").exists() else ():
        try:
            assert "agents.db" not in str(entry.readlink())
        except OSError:
            continue
