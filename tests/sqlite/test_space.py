"""Space: the file shrinks after a removal, and a reader that goes on keeps its view."""

import asyncio
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from sqlite_file import looking_at
from threadmark_conformance.engine import at, checkpoint
from threadmark_sqlite import SqliteSaver


def _filled(saver: SqliteSaver, thread: str, steps: int = 20) -> None:
    config = at(thread)
    for number in range(1, steps + 1):
        made = checkpoint({"a": os.urandom(50_000)}, {"a": number})
        config = saver.put(config, made, {"run_id": thread}, {"a": number})


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.iterdir())


REMOVALS: dict[str, Callable[[SqliteSaver], Any]] = {
    "delete": lambda saver: saver.delete_thread("gone"),
    "prune": lambda saver: saver.prune(["gone"]),
    "runs": lambda saver: saver.delete_for_runs(["gone"]),
    "strategy": lambda saver: saver.prune(["gone"], strategy="delete"),
}


def _expect_small(folder: Path, full: int) -> None:
    assert _size(folder) < full / 4
    with looking_at(folder / "threads.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)


@pytest.mark.parametrize("given", ["path", "connection"])
@pytest.mark.parametrize("how", REMOVALS)
def test_the_file_shrinks_after_a_removal(how: str, given: str, tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with (
        closing(sqlite3.connect(path)) as connection,
        SqliteSaver(path if given == "path" else connection, durability="normal") as saver,
    ):
        _filled(saver, "kept", 1)
        _filled(saver, "gone")
        full = _size(tmp_path)
        REMOVALS[how](saver)
        _expect_small(tmp_path, full)
        assert saver.get(at("kept")) is not None


@pytest.mark.parametrize("how", REMOVALS)
def test_the_file_of_an_aiosqlite_connection_shrinks_after_a_removal(how: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with aiosqlite.connect(tmp_path / "threads.db") as connection:
            saver = SqliteSaver(connection, durability="normal")
            await asyncio.to_thread(_filled, saver, "kept", 1)
            await asyncio.to_thread(_filled, saver, "gone")
            full = _size(tmp_path)
            await asyncio.to_thread(REMOVALS[how], saver)
            assert not connection.in_transaction
            _expect_small(tmp_path, full)
            assert await saver.aget(at("kept")) is not None

    asyncio.run(main())


def test_a_reader_in_the_way_of_an_aiosqlite_connection_only_delays_the_shrinking(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"

    async def main() -> None:
        async with aiosqlite.connect(path) as connection:
            saver = SqliteSaver(connection, durability="normal", timeout=0.2)
            await asyncio.to_thread(_filled, saver, "one")
            await asyncio.to_thread(_filled, saver, "two")
            full = _size(tmp_path)
            with looking_at(path) as reader:
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM threadmark_checkpoint").fetchone()
                await saver.adelete_thread("one")
                reader.execute("ROLLBACK")
            await saver.adelete_thread("two")
            _expect_small(tmp_path, full)

    asyncio.run(main())


@pytest.mark.parametrize("how", REMOVALS)
def test_a_database_in_memory_shrinks_after_a_removal(how: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection, SqliteSaver(connection) as saver:
        _filled(saver, "kept", 1)
        _filled(saver, "gone")
        ((full,),) = connection.execute("PRAGMA page_count").fetchall()
        REMOVALS[how](saver)
        ((left,),) = connection.execute("PRAGMA page_count").fetchall()
        assert left < full / 4
        assert saver.get(at("kept")) is not None


def test_a_reader_in_the_way_only_delays_the_shrinking(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path, durability="normal", timeout=0.2) as saver, looking_at(path) as reader:
        _filled(saver, "one")
        _filled(saver, "two")
        full = _size(tmp_path)
        reader.execute("BEGIN")
        count = reader.execute("SELECT count(*) FROM threadmark_checkpoint").fetchone()
        saver.delete_thread("one")
        assert reader.execute("SELECT count(*) FROM threadmark_checkpoint").fetchone() == count
        reader.execute("ROLLBACK")
        saver.delete_thread("two")
        assert _size(tmp_path) < full / 4


def test_a_deleted_thread_leaves_one_row_that_remembers_it(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        _filled(saver, "gone", 2)
        saver.delete_thread("gone")
    with looking_at(path) as connection:
        for table, count in (("thread", 1), ("checkpoint", 0), ("write", 0), ("segment", 0)):
            assert connection.execute(f"SELECT count(*) FROM threadmark_{table}").fetchone() == (count,)


@pytest.mark.parametrize("room", [0, 20_000])
def test_a_disk_without_room_is_named(room: int, tmp_path: Path) -> None:
    code = f"""
import resource, signal
from threadmark import StoreError
from threadmark_sqlite import SqliteSaver
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))
try:
    SqliteSaver("threads.db").setup()
except StoreError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.search("threads.db' (cannot be read or written|cannot grow).* disk", done.stdout), done
