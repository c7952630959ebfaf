"""The refusals of SQLite itself: locks, full disks, foreign and newer files; each error says so, and passes."""

import asyncio
import os
import sqlite3
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiosqlite
import pytest

import threadmark_sqlite.driver.connection as opening
from children import child, finished
from sqlite_file import looking_at
from threadmark import CorruptDataError, SchemaError, StoreError, TransientStoreError
from threadmark_conformance.engine import Run, at, checkpoint
from threadmark_sqlite import SqliteSaver, migrations


def test_a_lock_held_too_long_is_an_error_and_passes(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path, timeout=0.1) as saver, looking_at(path) as other:
        first = saver.put(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TransientStoreError, match="locked") as caught:
            saver.put(at("thread"), checkpoint({"a": 2}), {}, {"a": 1})
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
        with pytest.raises(TransientStoreError, match="locked"):
            asyncio.run(saver.aput_writes(first, [("a", 1)], "task"))
        # Readers do not wait for writers.
        assert saver.get(at("thread")) is not None
        assert asyncio.run(saver.aget(first)) is not None
        other.execute("ROLLBACK")
        saver.put(at("thread"), checkpoint({"a": 2}), {}, {"a": 1})
        asyncio.run(saver.aput_writes(first, [("a", 1)], "task"))
        assert len(list(saver.list(None))) == 2


def test_an_aiosqlite_connection_waits_for_a_lock_for_the_timeout_of_the_saver(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"

    async def main() -> None:
        async with aiosqlite.connect(path) as connection, SqliteSaver(connection, timeout=0.1) as saver:
            assert await saver.aget(at("thread")) is None
            async with connection.execute("PRAGMA busy_timeout") as cursor:
                assert await cursor.fetchone() == (100,)
            with looking_at(path) as other:
                other.execute("BEGIN IMMEDIATE")
                with pytest.raises(TransientStoreError, match=r"threads\.db' has been locked .* for 0\.1 s"):
                    await saver.aput(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})

    asyncio.run(main())


def test_a_lock_that_is_let_go_in_time_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"

    async def put_while_locked() -> None:
        other.execute("BEGIN IMMEDIATE")
        put = asyncio.ensure_future(saver.aput(at("thread"), checkpoint(), {}, {}))
        await asyncio.sleep(0.2)
        assert not put.done()
        other.execute("ROLLBACK")
        await put

    with SqliteSaver(path) as saver, looking_at(path) as other:
        saver.put(at("thread"), checkpoint(), {}, {})
        asyncio.run(put_while_locked())
        assert len(list(saver.list(None))) == 2


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        Run(saver)
        saver.put(at("thread"), checkpoint(), {}, {})
    with looking_at(path) as connection:
        connection.execute(f"PRAGMA user_version = {migrations.CURRENT + 1}")
    for _ in range(2):
        with SqliteSaver(path) as saver, pytest.raises(SchemaError, match="upgrade threadmark-sqlite"):
            saver.get(at("thread"))
    with SqliteSaver(path) as saver, pytest.raises(SchemaError, match="upgrade threadmark-sqlite"):
        saver.put(at("thread"), checkpoint(), {}, {})


def test_a_file_of_another_application_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with looking_at(path) as connection:
        connection.execute("PRAGMA application_id = 1234")
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with SqliteSaver(path) as saver:
        with pytest.raises(SchemaError, match="another application"):
            saver.get(at("thread"))
        with pytest.raises(SchemaError, match="another application"):
            saver.put(at("thread"), checkpoint(), {}, {})
    assert path.read_bytes() == before


def test_the_file_says_whose_it_is(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        saver.put(at("thread"), checkpoint(), {}, {})
    with looking_at(path) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (0x54484D4B,)
        assert connection.execute("PRAGMA user_version").fetchone() == (migrations.CURRENT,)


def test_a_file_that_is_no_database_is_said_to_be_damaged(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are notes, not a database. " * 200)
    with SqliteSaver(path) as saver, pytest.raises(CorruptDataError, match="not a SQLite database"):
        saver.get(at("thread"))


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "nowhere" / "threads.db") as saver:
        with pytest.raises(StoreError, match="cannot be opened"):
            saver.get(at("thread"))
        with pytest.raises(StoreError, match="cannot be opened"):
            saver.put(at("thread"), checkpoint(), {}, {})
        (tmp_path / "nowhere").mkdir()
        saver.put(at("thread"), checkpoint(), {}, {})
        assert saver.get(at("thread")) is not None


READ = """
import os, sys
from threadmark import StoreError
from threadmark_sqlite import SqliteSaver
from threadmark_conformance.engine import at, checkpoint
if os.geteuid() == 0:
    os.setuid(65534)  # a superuser may write to any file
with SqliteSaver(sys.argv[1]) as saver:
    print(len(list(saver.list(None))), saver.get(at("thread"))["channel_values"])
    try:
        saver.put(at("thread"), checkpoint(), {}, {})
    except StoreError as error:
        print(error)
    print(len(list(saver.list(None))))
"""


@pytest.mark.parametrize("open_elsewhere", [True, False])
def test_a_read_only_file_can_be_read(*, open_elsewhere: bool) -> None:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        path = Path(folder) / "threads.db"
        writer = stack.enter_context(SqliteSaver(path))
        writer.put(at("thread"), checkpoint({"a": "value"}), {}, {"a": 1})
        if not open_elsewhere:
            writer.close()
        for each in Path(folder).iterdir():
            each.chmod(0o444)
        Path(folder).chmod(0o555)
        try:
            first, problem, last = finished(child(READ, path)).splitlines()
        finally:
            Path(folder).chmod(0o700)
    assert first == "1 {'a': 'value'}"
    assert "read-only" in problem
    assert last == "1"


def test_a_full_disk_is_an_error_with_nothing_half_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "threads.db"
    limited: list[sqlite3.Connection] = []
    prepare = opening.prepare

    def prepare_small(connection: sqlite3.Connection, settings: opening.Settings) -> None:
        prepare(connection, settings)
        connection.execute("PRAGMA max_page_count = 60")
        limited.append(connection)

    monkeypatch.setattr(opening, "prepare", prepare_small)
    with SqliteSaver(path) as saver:
        config = saver.put(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})
        large = os.urandom(600_000)
        for _ in range(2):
            with pytest.raises(StoreError, match="full"):
                saver.put(config, checkpoint({"a": large}, {"a": 2}), {}, {"a": 2})
            with pytest.raises(StoreError, match="full"):
                asyncio.run(saver.aput_writes(config, [("a", 1), ("b", large)], "task"))
        (item,) = saver.list(None)
        assert (item.checkpoint["channel_values"], item.pending_writes) == ({"a": 1}, [])
        after = saver.put(config, checkpoint({"a": 3}, {"a": 2}), {}, {"a": 2})
        saver.put_writes(after, [("a", "fits")], "task")
    assert limited
    with SqliteSaver(path) as saver:
        assert [item.checkpoint["channel_values"] for item in saver.list(None)] == [{"a": 3}, {"a": 1}]
        assert saver.prune(["thread"], strategy="delete", dry_run=True).segments == 0


def test_one_full_disk_among_neighbours_stops_only_who_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "threads.db"
    prepare = opening.prepare

    def prepare_small(connection: sqlite3.Connection, settings: opening.Settings) -> None:
        prepare(connection, settings)
        connection.execute("PRAGMA max_page_count = 80")

    async def many() -> list[Any]:
        puts = [
            saver.aput(at(number), checkpoint({"a": os.urandom(600_000) if number == 5 else number}), {}, {"a": 1})
            for number in range(12)
        ]
        return list(await asyncio.gather(*puts, return_exceptions=True))

    monkeypatch.setattr(opening, "prepare", prepare_small)
    with SqliteSaver(path) as saver:
        saver.put(at("first"), checkpoint(), {}, {})
        outcomes = asyncio.run(many())
        failed = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, Exception)]
        assert failed == [5]
        assert isinstance(outcomes[5], StoreError)
        assert len(list(saver.list(None))) == 12
