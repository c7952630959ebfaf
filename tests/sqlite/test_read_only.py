"""A saver that may only read: in every form, it changes nothing in the file, and makes nothing next to it."""

import asyncio
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import aiosqlite
import pytest

from children import child, finished
from sqlite_file import looking_at
from threadmark import ConfigError, StoreError, ThreadmarkError
from threadmark.program import Program, Transaction
from threadmark_conformance.engine import at, checkpoint
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.driver.connection import Settings, for_reading
from threadmark_sqlite.steps import Query
from threadmark_store import Store

SURVIVORS = {"a": 1}


def _read_only_url(path: Path) -> str:
    return f"sqlite:///{quote(str(path))}?mode=ro"


def _uri(path: Path, options: str) -> str:
    return f"{path.as_uri()}?{options}"


@contextmanager
def _url(path: Path) -> Iterator[Any]:
    yield _read_only_url(path)


@contextmanager
def _mode(path: Path) -> Iterator[Any]:
    with closing(sqlite3.connect(_uri(path, "mode=ro"), uri=True)) as connection:
        yield connection


@contextmanager
def _immutable(path: Path) -> Iterator[Any]:
    with closing(sqlite3.connect(_uri(path, "immutable=1"), uri=True)) as connection:
        yield connection


@contextmanager
def _query_only(path: Path) -> Iterator[Any]:
    # It gets the error before it has read anything, so that it makes nothing next to the file either.
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA query_only = ON")
        yield connection


@contextmanager
def _with_factories(path: Path) -> Iterator[Any]:
    with closing(sqlite3.connect(_uri(path, "mode=ro"), uri=True, isolation_level="EXCLUSIVE")) as connection:
        connection.row_factory = lambda cursor, row: {
            column[0]: value for column, value in zip(cursor.description, row, strict=True)
        }
        connection.text_factory = bytes
        yield connection


WAYS = [_url, _mode, _immutable, _query_only, _with_factories]
Way = Callable[[Path], Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with a thread of a checkpoint and a write, closed; it was stored a while ago."""
    path = tmp_path / "agents #1.db"
    with SqliteSaver(path) as saver:
        config = saver.put(at("thread"), checkpoint(SURVIVORS), {"run_id": "run"}, {"a": 1})
        saver.put_writes(config, [("a", 2)], "task")
    os.utime(path, (1_000_000, 1_000_000))
    return path


def _state(path: Path) -> dict[str, tuple[int, bytes]]:
    return {each.name: (each.stat().st_mtime_ns, each.read_bytes()) for each in path.parent.iterdir()}


def _read_everything(saver: SqliteSaver) -> None:
    item = saver.get_tuple(at("thread"))
    assert item is not None
    assert (item.checkpoint["channel_values"], item.pending_writes) == (SURVIVORS, [("task", "a", 2)])
    assert len(list(saver.list(None))) == 1
    assert saver.has_tables()
    assert len(list(saver.list_checkpoint_refs())) == 1
    assert saver.verify().problems == []
    assert saver.stats().checkpoints == 1
    assert saver.prune(["thread"], strategy="delete", dry_run=True).checkpoints == 1


def _changes(saver: Any) -> list[Callable[[], Any]]:
    return [
        lambda: saver.put(at("thread"), checkpoint({"a": 3}), {}, {"a": 2}),
        lambda: saver.put_writes(at("thread", "", "some id"), [("a", 3)], "task"),
        lambda: saver.delete_thread("thread"),
        lambda: saver.prune(["thread"], strategy="delete"),
        lambda: saver.delete_for_runs(["run"]),
        lambda: saver.copy_thread("thread", "copy"),
    ]


def _achanges(saver: Any) -> list[Callable[[], Any]]:
    return [
        lambda: saver.aput(at("thread"), checkpoint({"a": 3}), {}, {"a": 2}),
        lambda: saver.aput_writes(at("thread", "", "some id"), [("a", 3)], "task"),
        lambda: saver.adelete_thread("thread"),
        lambda: saver.aprune(["thread"], strategy="delete"),
        lambda: saver.adelete_for_runs(["run"]),
        lambda: saver.acopy_thread("thread", "copy"),
    ]


async def _aread(saver: SqliteSaver) -> None:
    item = await saver.aget_tuple(at("thread"))
    assert item is not None
    assert (item.checkpoint["channel_values"], item.pending_writes) == (SURVIVORS, [("task", "a", 2)])
    assert [each.metadata["run_id"] async for each in saver.alist(None)] == ["run"]
    assert await saver.ahas_tables()


@pytest.mark.parametrize("way", WAYS)
def test_what_a_read_only_saver_reads_lives_no_longer(way: Way, path: Path) -> None:
    with SqliteSaver(path, ttl=60) as saver:
        saver.update_thread("thread", expires_at=timedelta(seconds=30))
        Store(saver).put(("users",), "ada", {"n": 1}, ttl=1)
        ends = saver.get_thread("thread")
    with way(path) as database, SqliteSaver(database, ttl=60, refresh_on_read=True) as reader:
        assert reader.get(at("thread")) is not None
        assert asyncio.run(reader.aget(at("thread"))) is not None
        assert reader.get_thread("thread") == ends
        store = Store(reader)
        assert store.get(("users",), "ada") is not None
        assert [item.key for item in asyncio.run(store.asearch(("users",)))] == ["ada"]


READ_ONLY = r"agents #1\.db' is read-only: nothing can be stored in it; give the saver a path, or a connection"


@pytest.mark.parametrize("way", WAYS)
def test_a_saver_that_may_only_read_writes_nothing(way: Way, path: Path) -> None:
    async def main() -> None:
        await _aread(saver)
        for change in _achanges(saver):
            with pytest.raises(StoreError, match=READ_ONLY):
                await change()

    before = _state(path)
    with way(path) as database, SqliteSaver(database) as saver:
        _read_everything(saver)
        for change in _changes(saver):
            with pytest.raises(StoreError, match=READ_ONLY):
                change()
        _read_everything(saver)
        asyncio.run(main())
        assert _state(path) == before
    assert _state(path) == before


@pytest.mark.parametrize("way", [_url, _mode, _query_only])
def test_what_others_write_is_seen(way: Way, path: Path) -> None:
    """A log that a writer uses is read with its index, which is the one thing that is shared with them."""
    with way(path) as database, SqliteSaver(database) as reader:
        assert len(list(reader.list(None))) == 1
        with SqliteSaver(path) as writer:
            for number in range(5):
                writer.put(at(number), checkpoint(), {}, {})
                content = path.read_bytes(), path.with_name(f"{path.name}-wal").read_bytes()
                assert len(list(reader.list(None))) == number + 2
                assert (path.read_bytes(), path.with_name(f"{path.name}-wal").read_bytes()) == content
        assert len(list(reader.list(None))) == 6
        with SqliteSaver(path) as writer:
            writer.put(at("last"), checkpoint(), {}, {})
        assert len(list(reader.list(None))) == 7


def test_a_log_is_found_through_a_symbolic_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with SqliteSaver(path) as writer:
        writer.put(at("in the log"), checkpoint(), {}, {})
        time.sleep(0.05)  # a file that was written just now would not be read without a log
        with SqliteSaver(_read_only_url(link)) as reader:
            assert {item.config["configurable"]["thread_id"] for item in reader.list(None)} == {"thread", "in the log"}


def test_a_log_that_a_crash_has_left_is_read_and_kept(path: Path, tmp_path: Path) -> None:
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    with SqliteSaver(path) as saver:
        saver.put(at("in the log"), checkpoint(), {}, {})
        for side in ("", "-wal"):
            (crashed / f"agents.db{side}").write_bytes(path.with_name(path.name + side).read_bytes())
    left = crashed / "agents.db"
    before = _state(left)
    with SqliteSaver(_read_only_url(left)) as saver:
        assert {item.config["configurable"]["thread_id"] for item in saver.list(None)} == {"thread", "in the log"}
    after = _state(left)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) <= {"agents.db-shm"}  # the index of the log, which SQLite needs to read it


def test_a_file_that_is_written_again_and_again_is_read_whole(path: Path) -> None:
    """Each put here moves the log into the file, which is read as one that does not change: it must be read again."""

    async def main() -> None:
        for number in range(20):
            put = asyncio.to_thread(store, number)
            reads = asyncio.gather(*(asyncio.to_thread(count) for _ in range(3)))
            await put
            assert all(number + 1 <= each <= number + 2 for each in await reads)

    def store(number: int) -> None:
        with SqliteSaver(path) as writer:
            writer.put(at(number), checkpoint({"a": os.urandom(20_000)}), {}, {"a": 1})

    def count() -> int:
        return len(list(reader.list(None)))

    with SqliteSaver(_read_only_url(path)) as reader:
        asyncio.run(main())
        assert reader.verify().problems == []


def test_a_read_during_which_the_file_is_written_to_is_done_again(path: Path) -> None:
    counts: list[int] = []

    def count() -> Program[int]:
        rows = yield Query("SELECT count(*) FROM threadmark_checkpoint")
        if not counts:
            with SqliteSaver(path) as writer:  # its end brings the log into the file
                writer.put(at("meanwhile"), checkpoint(), {}, {})
        counts.append(rows[0][0])
        return counts[-1]

    with SqliteSaver(_read_only_url(path)) as reader:
        assert reader._driver.run(Transaction(count, writes=False)) == 2
    assert counts == [1, 2]


@pytest.mark.parametrize("way", [_url, _mode, _immutable, _query_only])
@pytest.mark.parametrize("content", ["", "CREATE TABLE theirs (x)"])
def test_a_database_without_tables_gets_none(content: str, way: Way, tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    with looking_at(path) as connection:
        connection.execute(content)
    os.utime(path, (1_000_000, 1_000_000))
    before = _state(path)
    with way(path) as database, SqliteSaver(database) as saver:
        assert not saver.has_tables()
        for call in (lambda: saver.get(at("thread")), lambda: saver.put(at("thread"), checkpoint(), {}, {})):
            with pytest.raises(StoreError, match="is read-only"):
                call()
    assert _state(path) == before


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with SqliteSaver(_read_only_url(tmp_path / "none.db")) as saver:
        assert not saver.has_tables()
        for call in (lambda: saver.get(at("thread")), lambda: saver.put(at("thread"), checkpoint(), {}, {})):
            with pytest.raises(StoreError, match=r"not there|read-only"):
                call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["mode=ro", "immutable=1", "query_only"])
def test_an_aiosqlite_connection_that_may_only_read_writes_nothing(how: str, path: Path) -> None:
    async def main() -> None:
        target = path.as_uri() if how == "query_only" else _uri(path, how)
        async with aiosqlite.connect(target, uri=True) as connection:
            if how == "query_only":
                await connection.execute("PRAGMA query_only = ON")
            saver = SqliteSaver(connection)
            await _aread(saver)
            for change in _achanges(saver):
                with pytest.raises(StoreError, match=READ_ONLY):
                    await change()
                assert not connection.in_transaction
            await _aread(saver)
            assert (await saver.aprune(["thread"], strategy="delete", dry_run=True)).checkpoints == 1

    content = path.read_bytes()
    asyncio.run(main())
    assert path.read_bytes() == content


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize("how", ["mode=ro", "query_only"])
def test_an_aiosqlite_connection_that_may_only_read_gets_no_tables(how: str, journal: str, tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with looking_at(path) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("CREATE TABLE theirs (x)")
    content = path.read_bytes()

    async def main() -> None:
        target = path.as_uri() if how == "query_only" else _uri(path, how)
        async with aiosqlite.connect(target, uri=True) as connection:
            if how == "query_only":
                await connection.execute("PRAGMA query_only = ON")
            saver = SqliteSaver(connection)
            assert not await saver.ahas_tables()
            for call in (saver.aget(at("thread")), saver.aput(at("thread"), checkpoint(), {}, {})):
                with pytest.raises(StoreError, match="is read-only"):
                    await call

    asyncio.run(main())
    assert path.read_bytes() == content


def test_a_connection_in_memory_that_may_only_read_says_so() -> None:
    with closing(sqlite3.connect(":memory:")) as connection, SqliteSaver(connection) as saver:
        config = saver.put(at("thread"), checkpoint(SURVIVORS), {}, {"a": 1})
        connection.execute("PRAGMA query_only = ON")
        assert saver.get(config) is not None
        with pytest.raises(StoreError, match="read-only"):
            saver.put(config, checkpoint(), {}, {})
        connection.execute("PRAGMA query_only = OFF")
        saver.put(config, checkpoint(), {}, {})


@pytest.mark.parametrize("options", ["mode=rw", "immutable=1", "mode=ro&cache=shared", "mode=RO", ""])
def test_a_url_takes_no_other_option(options: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has an unknown option"):
        SqliteSaver(f"sqlite:///{tmp_path}/agents.db?{options}")


def test_a_uri_of_sqlite_is_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"sqlite:///file\.db\?mode=ro"):
        SqliteSaver("file:agents.db?mode=ro")
    assert list(tmp_path.iterdir()) == []
    with SqliteSaver(Path("file:agents.db")) as saver:
        saver.put(at("thread"), checkpoint(), {}, {})
    assert (tmp_path / "file:agents.db").exists()


def test_a_replaced_file_is_read_from_then_on(path: Path) -> None:
    with SqliteSaver(_read_only_url(path)) as reader, SqliteSaver(path) as writer:
        writer.put(at("in the log"), checkpoint(), {}, {})
        assert len(list(reader.list(None))) == 2
        other = path.with_name("other.db")
        with SqliteSaver(other) as saver:
            for number in range(4):
                saver.put(at(number), checkpoint(), {}, {})
        other.replace(path)
        # Its log may only be taken away by a process that may write.
        with pytest.raises(ThreadmarkError, match="the log of the file that was there before"):
            reader.get(at("thread"))
        assert writer.get(at("thread")) is None
        assert len(list(reader.list(None))) == 4
        path.unlink()
        with pytest.raises(StoreError, match="was deleted"):
            reader.get(at("thread"))


PROTECTED = """
import os, sys
from threadmark import StoreError
from threadmark_sqlite import SqliteSaver
from threadmark_conformance.engine import at, checkpoint
if os.geteuid() == 0:
    os.setuid(65534)  # a superuser may write to any file
with SqliteSaver(sys.argv[1]) as saver:
    print(saver.get(at("thread"))["channel_values"])
    try:
        saver.put(at("thread"), checkpoint(), {}, {})
    except StoreError as error:
        print(error)
"""


def test_nothing_is_made_beside_a_file_without_permission_to_write() -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "agents #1.db"
        with SqliteSaver(path) as saver:
            saver.put(at("thread"), checkpoint(SURVIVORS), {}, {"a": 1})
        path.chmod(0o444)
        path.parent.chmod(0o777)  # there it might
        before = _state(path)
        values, problem = finished(child(PROTECTED, path)).splitlines()
        assert _state(path) == before
    assert values == str(SURVIVORS)
    assert re.search(READ_ONLY, problem)


def test_a_file_that_is_made_at_this_moment_is_not_taken_for_one_without_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "threads.db"

    def denied_as_missing(_: object, __: int) -> bool:
        path.touch()
        return False

    monkeypatch.setattr(os, "access", denied_as_missing)
    assert not for_reading(Settings(str(path), "full", 1)).read_only
