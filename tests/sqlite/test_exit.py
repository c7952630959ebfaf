"""A program that ends without closing its saver leaves a file that is complete by itself."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from children import child
from sqlite_file import looking_at
from threadmark_conformance.engine import at, checkpoint
from threadmark_sqlite import SqliteSaver

_STEPS = 3

_BEGINNING = """
import asyncio, os, sqlite3, sys, threading, time
import threadmark
from threadmark_sqlite import SqliteSaver

path = sys.argv[1]

def at(name):
    return {"configurable": {"thread_id": name, "checkpoint_ns": ""}}

def step(number):
    return {"v": 4, "id": threadmark.new_id(), "ts": "", "channel_values": {"n": number},
            "channel_versions": {"n": number}, "versions_seen": {}}

def play(saver, name="thread"):
    config = at(name)
    for number in (1, 2, 3):
        config = saver.put(config, step(number), {}, {"n": number})

async def aplay(saver, name="thread"):
    config = at(name)
    for number in (1, 2, 3):
        config = await saver.aput(config, step(number), {}, {"n": number})
    await saver.aget_tuple(at(name))
"""

_ENDINGS = {
    "a path": "saver = SqliteSaver(path); play(saver)",
    "a connection that stays open": """
        connection = sqlite3.connect(path, check_same_thread=False)
        saver = SqliteSaver(connection)
        play(saver)""",
    "langgraph's idiom": """
        from threadmark_langgraph import SqliteSaver as LangGraphs
        saver = LangGraphs(sqlite3.connect(path, check_same_thread=False))
        play(saver.saver)""",
    "a clone with another serializer": """
        saver = SqliteSaver(path).with_serde(threadmark.Serde())
        play(saver)""",
    "asyncio": "saver = SqliteSaver(path); asyncio.run(aplay(saver))",
    "asyncio through langgraph's name": """
        from threadmark_langgraph import AsyncSqliteSaver
        saver = AsyncSqliteSaver(path)
        asyncio.run(aplay(saver.saver))""",
    "both APIs": "saver = SqliteSaver(path); asyncio.run(aplay(saver)); list(saver.list(None))",
    "several savers": """
        savers = [SqliteSaver(path) for _ in range(3)]
        for saver in savers:
            list(saver.list(None))
        play(savers[1])""",
    "a reader of its own that is in the middle": """
        saver = SqliteSaver(path)
        play(saver)
        listing = saver.list(None)
        next(listing)""",
    "one that nobody holds any more": """
        def work():
            play(SqliteSaver(path))
        work()""",
    "sys.exit": "saver = SqliteSaver(path); play(saver); sys.exit(0)",
    "a thread that goes on after the program's end": """
        saver = SqliteSaver(path)
        def later():
            threading.main_thread().join(0.3)
            play(saver)
        threading.Thread(target=later).start()""",
    "a daemon thread that stores for ever": """
        saver = SqliteSaver(path)
        play(saver)
        def forever():
            try:
                while True:
                    play(saver, "of the daemon")
            except threadmark.ClosedError:
                pass
        threading.Thread(target=forever, daemon=True).start()
        while not list(saver.list(at("of the daemon"), limit=1)):
            time.sleep(0.01)""",
    "a fork whose child ends first": """
        saver = SqliteSaver(path)
        list(saver.list(None))
        if not os.fork():
            play(saver)
            sys.exit(0)
        assert os.wait()[1] == 0""",
    "a fork whose child never used it": """
        saver = SqliteSaver(path)
        play(saver)
        if not os.fork():
            sys.exit(0)
        assert os.wait()[1] == 0
        list(saver.list(None))""",
    "a file that is read through as well": """
        saver = SqliteSaver(path)
        play(saver)
        reader = SqliteSaver(f"sqlite:///{path}?mode=ro")
        list(reader.list(None))""",
    "what an earlier registered function stores": """
        import atexit
        saver = SqliteSaver(path)
        atexit.register(lambda: play(saver))""",
}


def _indented(program: str) -> str:
    return _BEGINNING + "\n".join(line.removeprefix(" " * 8) for line in program.splitlines())


def _assert_complete(path: Path) -> None:
    log = Path(f"{path}-wal")
    assert not log.exists() or log.stat().st_size == 0
    alone = path.parent / "alone" / path.name
    alone.parent.mkdir()
    shutil.copy(path, alone)
    with SqliteSaver(alone) as saver:
        assert len(list(saver.list(at("thread")))) == _STEPS
        assert saver.verify().problems == []


@pytest.mark.parametrize("ending", _ENDINGS)
def test_a_program_that_never_closed_its_saver_leaves_a_complete_file(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "threads.db"
    process = child(_indented(_ENDINGS[ending]), path)
    _, complaints = process.communicate(timeout=120)
    assert process.returncode == 0, complaints
    assert complaints == ""
    _assert_complete(path)


def test_an_uncaught_error_ends_a_program_in_the_same_way(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    process = child(_indented("saver = SqliteSaver(path); play(saver); raise LookupError('mine')"), path)
    _, complaints = process.communicate(timeout=120)
    assert process.returncode == 1
    assert complaints.endswith("LookupError: mine\n")
    _assert_complete(path)


def test_closing_leaves_a_complete_file_beside_a_connection_that_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        with SqliteSaver(connection) as saver:
            for number in range(_STEPS):
                saver.put(at("thread", ""), checkpoint({"n": number}), {}, {"n": 1})
        _assert_complete(path)


def test_another_process_that_is_reading_delays_no_end(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        saver.setup()
        with looking_at(path) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_master").fetchall()
            process = child(_indented("saver = SqliteSaver(path, timeout=3600); play(saver)"), path)
            _, complaints = process.communicate(timeout=120)
            assert (process.returncode, complaints) == (0, "")
        assert len(list(saver.list(at("thread")))) == _STEPS
