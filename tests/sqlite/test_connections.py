"""Databases as users hand them over: paths, URLs, and their own connections with their own settings."""

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from threadmark import ConfigError, SchemaError, StoreError, ThreadmarkError
from threadmark_conformance.engine import Run, at, checkpoint, early_id
from threadmark_sqlite import Durability, SqliteSaver
from threadmark_sqlite.saver import open_url

ODD = "na\x00me \ud800'\"%s"


def _use(saver: SqliteSaver) -> None:
    config = saver.put(at(ODD, ODD), checkpoint({ODD: [1, "x" * 500]}), {ODD: ODD}, {ODD: 1})
    saver.put_writes(config, [(ODD, 1)], ODD)
    (item,) = saver.list(None, filter={ODD: ODD})
    assert item.checkpoint["channel_values"] == {ODD: [1, "x" * 500]}
    assert item.pending_writes == [(ODD, ODD, 1)]
    saver.copy_thread(ODD, "copy")
    saver.delete_thread(ODD)
    assert saver.get(at("copy", ODD)) is not None


async def _use_async(saver: SqliteSaver) -> None:
    run = Run(saver, ODD, ODD)
    for number in range(3):
        await run.step({ODD: [number, "x" * 500]})
        await run.write((ODD, 1), task=ODD)
    found = [item async for item in saver.alist(at(ODD))]
    assert [item.checkpoint["channel_values"][ODD][0] for item in found] == [2, 1, 0]
    await saver.adelete_thread(ODD)
    assert await saver.aget(at(ODD, ODD)) is None


def _bytes_factory(connection: sqlite3.Connection) -> None:
    connection.text_factory = bytes


def _row_factory(connection: sqlite3.Connection) -> None:
    connection.row_factory = sqlite3.Row


def _dict_factory(connection: sqlite3.Connection) -> None:
    connection.row_factory = lambda cursor, row: {
        column[0]: value for column, value in zip(cursor.description, row, strict=True)
    }


def _deferred(connection: sqlite3.Connection) -> None:
    connection.isolation_level = "DEFERRED"


def _exclusive(connection: sqlite3.Connection) -> None:
    connection.isolation_level = "EXCLUSIVE"


@pytest.mark.parametrize("odd", [_bytes_factory, _row_factory, _dict_factory, _deferred, _exclusive])
@pytest.mark.parametrize("location", ["memory", "file"])
def test_a_connection_with_settings_of_its_own(
    odd: Callable[[sqlite3.Connection], None], location: str, tmp_path: Path
) -> None:
    target = ":memory:" if location == "memory" else tmp_path / "threads.db"
    with closing(sqlite3.connect(target, check_same_thread=False)) as connection:
        odd(connection)
        before = connection.row_factory, connection.text_factory, connection.isolation_level
        with SqliteSaver(connection) as saver:
            _use(saver)
            asyncio.run(_use_async(saver))
        assert (connection.row_factory, connection.text_factory, connection.isolation_level) == before
        # It stays the user's, open and usable.
        connection.row_factory = None
        assert len(connection.execute("SELECT thread_id FROM threadmark_thread WHERE live").fetchall()) == 1


def test_a_connection_with_an_open_transaction_is_refused_and_left_alone() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
        with SqliteSaver(connection) as saver:
            _use(saver)
            connection.execute("BEGIN")
            connection.execute("INSERT INTO theirs VALUES (1)")
            with pytest.raises(StoreError, match="open transaction"):
                saver.put(at("thread"), checkpoint(), {}, {})
            assert connection.in_transaction
            connection.execute("COMMIT")
            saver.put(at("thread"), checkpoint(), {}, {})
        assert connection.execute("SELECT x FROM theirs").fetchall() == [(1,)]


def test_a_connection_bound_to_a_thread_says_what_to_do() -> None:
    async def elsewhere() -> None:
        await asyncio.to_thread(saver.get, at("thread"))

    with closing(sqlite3.connect(":memory:")) as connection, SqliteSaver(connection) as saver:
        _use(saver)
        with pytest.raises(StoreError, match="check_same_thread=False"):
            asyncio.run(elsewhere())


def test_a_closed_connection_is_an_error() -> None:
    connection = sqlite3.connect(":memory:")
    connection.close()
    with pytest.raises(ConfigError, match="closed"):
        SqliteSaver(connection)


def test_an_aiosqlite_connection_that_was_closed_is_an_error() -> None:
    async def main() -> None:
        async with aiosqlite.connect(":memory:") as connection:
            saver = SqliteSaver(connection)
            await saver.aput(at("thread"), checkpoint(), {}, {})
        with pytest.raises(StoreError, match="not open"):
            await saver.aget(at("thread"))

    asyncio.run(main())


def test_several_savers_may_share_a_connection_in_turn() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        one, other = SqliteSaver(connection), SqliteSaver(connection)
        config = one.put(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})
        one.close()
        found = other.get(config)
        assert found is not None
        assert found["channel_values"] == {"a": 1}


@pytest.mark.parametrize("odd", [None, "row", "text", "isolation"])
@pytest.mark.parametrize("location", ["memory", "file"])
def test_an_aiosqlite_connection(odd: str | None, location: str, tmp_path: Path) -> None:
    target = ":memory:" if location == "memory" else str(tmp_path / "threads.db")

    async def main() -> None:
        async with aiosqlite.connect(target) as connection:
            if odd == "row":
                connection.row_factory = aiosqlite.Row
            elif odd == "text":
                connection.text_factory = bytes
            elif odd == "isolation":
                connection.isolation_level = "EXCLUSIVE"
            saver = SqliteSaver(connection)
            await _use_async(saver)
            await asyncio.gather(*(saver.aput(at(number), checkpoint(), {}, {}) for number in range(20)))
            with pytest.raises(ConfigError, match="give a path"):
                saver.get(at("thread"))
            await saver.aclose()
            async with connection.execute("SELECT count(*) FROM threadmark_thread WHERE live") as cursor:
                row = await cursor.fetchone()
                assert row is not None
                assert tuple(row) == (20,)

    asyncio.run(main())


def test_a_cancelled_call_on_an_aiosqlite_connection_is_whole_or_nothing(tmp_path: Path) -> None:
    async def cancelled(call: Awaitable[Any], turns: int) -> None:
        task = asyncio.ensure_future(call)
        for _ in range(turns):
            await asyncio.sleep(0.0002)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def main() -> None:
        async with aiosqlite.connect(tmp_path / "threads.db") as connection:
            saver = SqliteSaver(connection)
            config = await saver.aput(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})
            for number in range(40):
                await cancelled(saver.aput_writes(config, [("a", number), ("b", number)], str(number)), number % 8)
                made = checkpoint({"a": number}, checkpoint_id=early_id(number))
                await cancelled(saver.aput(at("other"), made, {}, {"a": 1}), number % 5)
            found = await saver.aget_tuple(config)
            assert found is not None
            tasks: dict[str, list[str]] = {}
            for task, channel, _ in found.pending_writes or []:
                tasks.setdefault(task, []).append(channel)
            assert all(channels == ["a", "b"] for channels in tasks.values())
            assert not connection.in_transaction

    asyncio.run(main())


def test_a_path_may_be_text_or_a_path_or_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SqliteSaver("one.db") as saver:
        monkeypatch.chdir("/")
        _use(saver)
    monkeypatch.chdir(tmp_path)
    odd = "two 100% ?x=1#.db"
    for database in (tmp_path / "two.db", Path("three.db"), odd):
        with SqliteSaver(database) as saver:
            _use(saver)
    for url in ("sqlite:///four.db", f"sqlite:///{tmp_path}/five.db", "sqlite:///six%20seven.db"):
        with SqliteSaver(url) as saver:
            _use(saver)
    names = {"one.db", "two.db", "three.db", odd, "four.db", "five.db", "six seven.db"}
    assert {each.name for each in tmp_path.iterdir()} == names


@pytest.mark.parametrize("url", ["sqlite://:memory:", "sqlite://"])
def test_a_url_may_name_memory(url: str) -> None:
    with open_url(url) as saver:
        _use(saver)


@pytest.mark.parametrize("database", ["", None, 7, b"", object()])
def test_what_is_no_database_is_refused(database: Any) -> None:
    with pytest.raises(ConfigError):
        SqliteSaver(database)


@pytest.mark.parametrize("url", ["sqlite:", "sqlite:/x.db", "sqlite:///", "sqlite://x.db", "mysql:///x.db", "x.db"])
def test_a_url_that_names_no_file_says_how_to_write_one(url: str) -> None:
    with pytest.raises(ConfigError, match="sqlite:///"):
        open_url(url)


@pytest.mark.parametrize("url", ["sqlite:///x.db?nothing=5", "sqlite:///x.db#y"])
def test_a_url_with_options_says_where_they_go(url: str) -> None:
    with pytest.raises(ConfigError, match="as an argument"):
        open_url(url)


def test_only_open_reads_options_from_a_url() -> None:
    with pytest.raises(ConfigError, match=r"only threadmark\.open reads"):
        SqliteSaver("sqlite:///x.db?timeout=5")


@pytest.mark.parametrize("url", ["postgresql://me:secret@host/agents", "memory://", "sqlite3:///agents.db"])
def test_a_url_of_another_backend_is_no_path(url: str) -> None:
    with pytest.raises(ConfigError, match=rf"a '{url.partition(':')[0]}' URL is no .* threadmark\.open") as caught:
        SqliteSaver(url)
    assert "secret" not in str(caught.value)


def test_a_path_that_no_file_can_have_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has a NUL character"):
        SqliteSaver("threads\0.db")
    with SqliteSaver(tmp_path / ("x" * 300)) as saver, pytest.raises(StoreError, match="cannot be"):
        saver.list_threads()


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_a_file_in_another_encoding_is_refused_and_left_as_it_is(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as theirs:
        theirs.executescript(f"PRAGMA encoding = '{encoding}'; CREATE TABLE theirs (name)")
    with SqliteSaver(path) as saver, pytest.raises(SchemaError, match=f"encoding {encoding}.*choose another file"):
        saver.setup()
    with closing(sqlite3.connect(path)) as theirs:
        assert theirs.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]


def test_a_path_may_have_two_slashes_and_a_colon(tmp_path: Path) -> None:
    (tmp_path / "a:").mkdir()
    with SqliteSaver(f"{tmp_path}/a://agents.db") as saver:
        saver.setup()
    assert (tmp_path / "a:" / "agents.db").exists()


def test_durability_is_full_or_normal(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="durability"):
        SqliteSaver(tmp_path / "threads.db", durability="off")  # type: ignore[arg-type]  # refused without a type checker, too
    levels: dict[Durability, int] = {"full": 2, "normal": 1}
    for durability, level in levels.items():
        with (
            closing(sqlite3.connect(":memory:")) as connection,
            SqliteSaver(connection, durability=durability) as saver,
        ):
            saver.get(at("thread"))
            assert connection.execute("PRAGMA synchronous").fetchone() == (level,)


def _nothing_is_there(saver: SqliteSaver) -> None:
    assert not saver.has_tables()
    assert (list(saver.list_checkpoint_refs()), list(saver.list_orphan_writes())) == ([], [])


async def _nothing_is_there_async(saver: SqliteSaver) -> None:
    assert not await saver.ahas_tables()
    assert (list(await saver.alist_checkpoint_refs()), list(await saver.alist_orphan_writes())) == ([], [])


@pytest.mark.parametrize("before", [None, "", "CREATE TABLE theirs (x)"], ids=["no file", "empty", "theirs"])
def test_asking_whether_a_database_is_there_makes_nothing(before: str | None, tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    if before is not None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(before)
    content = path.read_bytes() if before is not None else None
    with SqliteSaver(path) as saver:
        _nothing_is_there(saver)
        asyncio.run(_nothing_is_there_async(saver))
        assert (path.read_bytes() if path.exists() else None) == content
        assert [each.name for each in tmp_path.iterdir()] == ["threads.db"] * path.exists()
        _use(saver)
        assert saver.has_tables()
    with SqliteSaver(path) as saver:
        assert saver.has_tables()


def test_asking_makes_nothing_on_a_connection_of_the_user() -> None:
    tables = "SELECT count(*) FROM sqlite_master"

    async def main() -> None:
        async with aiosqlite.connect(":memory:") as connection:
            saver = SqliteSaver(connection)
            await _nothing_is_there_async(saver)
            assert list(await connection.execute_fetchall(tables)) == [(0,)]
            await _use_async(saver)
            assert await saver.ahas_tables()

    with closing(sqlite3.connect(":memory:")) as connection, SqliteSaver(connection) as saver:
        _nothing_is_there(saver)
        assert connection.execute(tables).fetchone() == (0,)
        _use(saver)
        assert saver.has_tables()
    asyncio.run(main())


def test_asking_whether_a_database_is_there_says_why_it_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("no database" * 100)
    for path, problem in (
        (tmp_path / "missing" / "threads.db", "folder"),
        (tmp_path / "text.txt", "not a SQLite database"),
        (tmp_path, "cannot be opened"),
    ):
        with SqliteSaver(path) as saver, pytest.raises(ThreadmarkError, match=problem):
            saver.has_tables()
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as connection:
        connection.execute("PRAGMA application_id = 7")
    with SqliteSaver(tmp_path / "theirs.db") as saver, pytest.raises(SchemaError, match="another application"):
        saver.has_tables()


def _noted(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """Every connection that is opened from now on."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def noting(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", noting)
    return opened


def test_whoever_reads_once_and_then_stores_needs_one_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        config = saver.put(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})
    opened = _noted(monkeypatch)
    with SqliteSaver(path) as saver:
        assert saver.get(at("thread")) is not None
        saver.put_writes(config, [("a", 2)], "task")
        saver.put(config, checkpoint({"a": 2}), {}, {"a": 2})
        assert len(opened) == 1
        assert len(list(saver.list(None))) == 2  # the writer keeps that one, so readers need another
        saver.put_writes(config, [("a", 3)], "other task")
        assert len(opened) == 2


def test_a_connection_to_a_file_that_was_protected_is_not_written_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as other:  # its log keeps the file from being read as one that does not change
        other.put(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})
        with SqliteSaver(path) as saver:
            with monkeypatch.context() as protected:
                protected.setattr(os, "access", lambda *_: False)
                assert saver.get(at("thread")) is not None
            saver.put(at("thread"), checkpoint({"a": 2}), {}, {"a": 2})
            found = saver.get(at("thread"))
    assert found is not None
    assert found["channel_values"] == {"a": 2}
