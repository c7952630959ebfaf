"""macOS, Windows and odd systems: the suite runs without parts of Linux, which are taken away.

A test for each thing alone runs a share of the behaviours, and one without any of them a larger one. The others look at
the places in which systems differ: syncs, modes, times of files, event loops, paths and encodings.
"""

import asyncio
import codecs
import json
import os
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

import marks
import threadmark
from children import child, finished
from length import ALL
from taken_away import THINGS
from threadmark import ConfigError, PersistentDict
from threadmark.program import Program, Transaction
from threadmark.runtime import files
from threadmark_cli import diagnosis, keyring_file
from threadmark_cli.backup import back_up
from threadmark_cli.page import serving
from threadmark_conformance import CASES
from threadmark_conformance.engine import at, checkpoint
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisSaver
from threadmark_sqlite import Durability, SqliteSaver
from threadmark_sqlite.driver import log_index
from threadmark_sqlite.steps import execute

PROGRAM = Path(__file__).with_name("taken_away.py")
ALONE, TOGETHER = (1, 1) if ALL else (80, 24)
"""Every so many behaviours run with one thing taken away, and with all of them."""

SHARES = [(name, number % ALONE, ALONE) for number, name in enumerate(THINGS)] + [(",".join(THINGS), 0, TOGETHER)]


@pytest.mark.parametrize(("names", "first", "stride"), SHARES, ids=[*THINGS, "any of them"])
def test_behaviours_without(names: str, first: int, stride: int) -> None:
    arguments = [sys.executable, "-W", "error", str(PROGRAM), names, str(first), str(stride)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-5000:]
    assert int(done.stdout) == len(CASES[first::stride]) > 0


# Syncs


def _settings(*names: str) -> Program[list[int]]:
    found = []
    for name in names:
        ((number,),) = yield from execute(f"PRAGMA {name}")
        found.append(number)
    return found


def _settings_of(saver: SqliteSaver) -> list[int]:
    names = ("synchronous", "fullfsync", "checkpoint_fullfsync")
    found: list[int] = saver._driver.run(Transaction(_settings, names, writes=True))
    return found


@pytest.mark.parametrize(("durability", "expected"), [("full", [2, 1, 1]), ("normal", [1, 0, 1])])
def test_commits_and_checkpoints_are_synced_fully(durability: Durability, expected: list[int], tmp_path: Path) -> None:
    """The two settings matter on macOS only, and every SQLite stores them."""
    with SqliteSaver(tmp_path / "threads.db", durability=durability) as saver:
        assert _settings_of(saver) == expected


@pytest.mark.parametrize(("durability", "expected"), [("full", (2, 1, 1)), ("normal", (1, 0, 1))])
def test_your_aiosqlite_connection_is_synced_fully(
    durability: Durability, expected: tuple[int, ...], tmp_path: Path
) -> None:
    async def main() -> None:
        async with aiosqlite.connect(tmp_path / "threads.db") as connection:
            await SqliteSaver(connection, durability=durability).aput(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})
            for name, number in zip(("synchronous", "fullfsync", "checkpoint_fullfsync"), expected, strict=True):
                async with connection.execute(f"PRAGMA {name}") as cursor:
                    assert await cursor.fetchone() == (number,)

    asyncio.run(main())


def test_a_persistent_dictionary_is_synced_fully(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from threadmark.persistent import connection

    said: list[str] = []
    connect = connection.connect

    def traced(path: str, mode: str, timeout: float = 30.0) -> sqlite3.Connection:
        made = connect(path, mode, timeout)
        made.set_trace_callback(said.append)
        return made

    monkeypatch.setattr(connection, "connect", traced)
    kept: PersistentDict[str, int] = PersistentDict(tmp_path / "cache.db")
    with kept:
        kept["a"] = 1
        said.clear()
        kept.sync()
    assert said.index("PRAGMA fullfsync = ON") < said.index("BEGIN IMMEDIATE")


@pytest.mark.skipif(sys.platform == "win32", reason="it has no fcntl")
@pytest.mark.parametrize("refusal", [None, OSError("of a file system of a network")])
def test_a_file_is_synced_fully_on_macos(
    refusal: OSError | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    done: list[tuple[int, int] | int] = []

    def control(descriptor: int, what: int) -> None:
        done.append((descriptor, what))
        if refusal is not None:
            raise refusal

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", control)
    monkeypatch.setattr(os, "fsync", done.append)
    with (tmp_path / "file").open("wb") as file:
        files.sync_file(file.fileno())
        assert done == [(file.fileno(), 51), *([file.fileno()] if refusal else [])]


@pytest.mark.parametrize("system", ["linux", "win32"])
def test_a_backup_is_synced_by_a_descriptor_that_may_write(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows refuses to sync any other, and opens no folder. A file that is read-only there cannot be removed."""
    synced: list[bool] = []

    def sync(descriptor: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        if not synced[-1]:
            os.write(descriptor, b"")  # fails if it may only read

    source, target = tmp_path / "threads.db", tmp_path / "copy.db"
    with SqliteSaver(source) as saver:
        saver.put(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})
    source.chmod(0o444)
    on_windows = "win32" in (system, sys.platform)
    monkeypatch.setattr(os, "fsync", sync)
    if on_windows:
        monkeypatch.setattr("threadmark_cli.backup.MODES_TELL_WHO_READS", False)
        monkeypatch.setattr(sys, "platform", "win32")
    back_up(source, target, lambda _done, _all: None)
    monkeypatch.undo()
    assert synced == ([False] if on_windows else [False, True])
    assert (stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(source.stat().st_mode)) == (not on_windows)
    with SqliteSaver(f"sqlite:///{target.as_posix()}?mode=ro") as copied:
        assert [thread.id for thread in copied.list_threads().threads] == ["thread"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "threads.db"]


# Modes, times and identities of files


def test_no_mode_is_judged_where_modes_say_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database, keys = tmp_path / "threads.db", tmp_path / "keys.json"
    database.touch()
    database.chmod(0o644)
    keys.write_text(json.dumps({"newest": "k", "keys": {"k": "11" * 32}, "digest_secret": "22" * 32}))
    keys.chmod(0o644)

    def warnings() -> list[str]:
        said = [finding.way_out for finding in diagnosis.of_file(database)]
        keyring_file.read_keyring(str(keys), said.append)
        return said

    if sys.platform != "win32":
        assert len(warnings()) == len([said for said in warnings() if "chmod" in said]) == 2
    for module in (diagnosis, keyring_file):
        monkeypatch.setattr(module, "MODES_TELL_WHO_READS", False)
    assert warnings() == []


LATE = """
import os, shutil, sys
sys.path.insert(0, sys.argv[1])
from taken_away import take_away

path, names, harm = sys.argv[2:]
take_away(names.split(","))
from threadmark import StoreError, new_id
from threadmark_sqlite import SqliteSaver

def put(config, number):
    made = {"v": 1, "id": new_id(), "ts": "2026-01-01T00:00:00+00:00", "channel_values": {"a": number},
            "channel_versions": {"a": number}, "versions_seen": {}}
    return saver.put(config, made, {}, {"a": number})

with SqliteSaver(path) as saver:
    config = put({"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}, 1)
    if harm == "touched":
        os.utime(path, (1, 1))
    elif harm == "truncated":
        os.truncate(path, 0)
    else:
        shutil.copyfile(sys.argv[1] + "/taken_away.py", path)
    try:
        put(config, 2)
    except StoreError as error:
        print(error)
    else:
        print("stored")
"""


@pytest.mark.parametrize(
    ("names", "harm", "expected"),
    [
        ("signals", "touched", "was written to past SQLite"),
        ("posix", "touched", "stored"),
        ("posix", "truncated", "was written to past SQLite"),
        ("posix", "copied over", "was written to past SQLite"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="it gives times late by itself")
def test_a_time_that_changes_late_is_no_sign_of_another_writer(
    names: str, harm: str, expected: str, tmp_path: Path
) -> None:
    """On Windows a write may show in the time of the file at any later moment; the size shows it at once."""
    assert expected in finished(child(LATE, PROGRAM.parent, tmp_path / "threads.db", names, harm))


INDEX = """
import sys
from threadmark_sqlite.driver.log_index import _is_begun_and_not_ended, head_at
print(_is_begun_and_not_ended(head_at(sys.argv[1])))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the two ways are compared where both are there")
def test_the_index_of_a_log_says_the_same_by_its_path(tmp_path: Path) -> None:
    """In a process of its own, because on POSIX closing the file gives up the locks of SQLite."""
    path = tmp_path / "threads.db"
    connect: Callable[[], Any] = lambda: closing(sqlite3.connect(path, isolation_level=None))  # noqa: E731 - three of it
    with SqliteSaver(path) as saver, connect() as reader, connect() as other:
        config = saver.put(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})
        watched = saver._driver._handles.writer._watch._files  # type: ignore[attr-defined]  # of the file's driver
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM threadmark_checkpoint").fetchall()
        saver.put(config, checkpoint({"a": 2}), {}, {"a": 2})
        for expected in (True, False):
            other.execute("PRAGMA wal_checkpoint")
            assert log_index.is_copied_in_part(watched) is expected
            assert finished(child(INDEX, f"{path}-shm")).strip() == str(expected)
            if expected:
                reader.execute("ROLLBACK")


@pytest.mark.parametrize("system", marks.UNSUITED)
def test_what_is_left_out_on_other_systems_is_there(system: str) -> None:
    for begin, why in marks.UNSUITED[system].items():
        path, _, name = begin.partition("::")
        assert f"def {name or 'test_'}" in (PROGRAM.parent / path).read_text(encoding="utf-8"), begin
        assert marks.unsuited(f"{begin}_and_so_on", system) == why
    assert marks.unsuited("test_platforms.py::test_x", system) is None


# Paths, event loops, sockets and encodings


@pytest.mark.skipif(sys.platform == "win32", reason="two slashes name a server there")
def test_a_path_that_begins_with_two_slashes(tmp_path: Path) -> None:
    """SQLite takes the name after two slashes in a URI for a server. A path of a share of Windows begins so."""
    with SqliteSaver(f"/{tmp_path}/threads.db") as saver:
        saver.put(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})
    with threadmark.open(f"sqlite:////{tmp_path}/threads.db?mode=ro") as saver:
        assert [thread.id for thread in saver.list_threads().threads] == ["thread"]
    kept: PersistentDict[str, int] = PersistentDict(f"/{tmp_path}/cache.db")
    with kept:
        kept["a"] = 1
    back_up(Path(f"/{tmp_path}/threads.db"), tmp_path / "copy.db", lambda _done, _all: None)
    assert (tmp_path / "copy.db").stat().st_size > 0


def test_a_drive_is_no_scheme() -> None:
    assert "C:" in str(SqliteSaver("C://folder/threads.db"))
    assert "C:" in str(SqliteSaver("C:\\folder\\threads.db"))
    assert "C:" in str(threadmark.open("sqlite:///C:/folder/threads.db"))
    with pytest.raises(ConfigError, match=r"write 'sqlite:///C:\\threads.db'"):
        threadmark.open("C:\\threads.db")
    with pytest.raises(ConfigError, match="give it to threadmark"):
        SqliteSaver("Co://folder/threads.db")


class _Proactor(asyncio.SelectorEventLoop):
    """Like the default event loop of Windows, it inherits the method that is not implemented."""

    add_reader = asyncio.AbstractEventLoop.add_reader


def test_a_loop_that_psycopg_cannot_use_is_refused_with_the_way_out() -> None:
    saver = PostgresSaver("postgresql://user@127.0.0.1:1/database")
    with asyncio.Runner(loop_factory=_Proactor) as runner:
        for _ in range(2):
            with pytest.raises(ConfigError, match=r"_Proactor, .*loop_factory=asyncio\.SelectorEventLoop"):
                runner.run(saver.aget(at("thread")))
        runner.run(saver.aclose())


def test_the_page_has_a_loop_that_psycopg_can_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert serving._loop_factory() is asyncio.SelectorEventLoop
    monkeypatch.setattr(sys, "platform", "linux")
    assert serving._loop_factory() is None


def test_a_unix_socket_is_refused_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX", raising=False)
    with pytest.raises(ConfigError, match="Python offers none on this system"):
        RedisSaver("redis+unix:///run/redis.sock")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8"])
def test_json_is_json_whatever_the_encoding_of_the_output(encoding: str, tmp_path: Path) -> None:
    """Windows writes files and pipes in the encoding of its language."""
    path, name = tmp_path / "threads.db", "Zoë \N{SNOWMAN}"
    with SqliteSaver(path) as saver:
        saver.put(at(name), checkpoint({"a": 1}), {}, {"a": 1})
    done = subprocess.run(
        [sys.executable, "-m", "threadmark_cli", "threads", str(path), "--json"],
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["id"] == name
    assert done.stdout.isascii() == (codecs.lookup(encoding).name != "utf-8")
