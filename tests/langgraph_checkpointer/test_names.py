"""LangGraph's names, constructors and context managers; and, unlike there, both APIs behind each."""

import asyncio
import copy
import inspect
import sqlite3
import threading
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint

from threadmark import ClosedError, MemorySaver, Saver
from threadmark_langgraph import AsyncSqliteSaver, Checkpointer, InMemorySaver, SqliteSaver, wrap
from threadmark_langgraph.forwarding import ForwardingMethods

THREAD: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}


def use_blocking(saver: Checkpointer) -> None:
    """A put and a get."""
    stored = saver.put(THREAD, empty_checkpoint(), {"step": 1}, {})
    found = saver.get_tuple(THREAD)
    assert found is not None
    assert found.config == stored


async def use_asyncio(saver: Checkpointer) -> None:
    """Like `use_blocking`, for asyncio."""
    stored = await saver.aput(THREAD, empty_checkpoint(), {"step": 1}, {})
    found = await saver.aget_tuple(stored)
    assert found is not None
    assert found.config == stored


async def use_both(saver: Checkpointer) -> None:
    """Both APIs, the blocking one inside the running loop and outside of it."""
    assert isinstance(saver, BaseCheckpointSaver)
    await use_asyncio(saver)
    use_blocking(saver)
    await asyncio.to_thread(use_blocking, saver)


@pytest.mark.parametrize("location", [":memory:", "file"])
def test_names_for_sqlite_give_both_apis(tmp_path: Path, location: str) -> None:
    path = str(tmp_path / "checkpoints.db") if location == "file" else location

    async def run() -> None:
        with SqliteSaver.from_conn_string(path) as saver:
            saver.setup()
            await use_both(saver)
        async with AsyncSqliteSaver.from_conn_string(path) as asynchronous:
            await asynchronous.setup()
            await use_both(asynchronous)
        with pytest.raises(ClosedError):
            asynchronous.get_tuple(THREAD)

    asyncio.run(run())


def test_a_saver_under_langgraphs_name_has_every_method_of_a_threadmark_saver() -> None:
    methods = {name for name in dir(Saver) if not name.startswith("_")}
    assert methods - set(dir(Checkpointer)) == {"with_serde"}  # which `serde` is there for
    for name in methods & vars(ForwardingMethods).keys():
        assert inspect.signature(getattr(Checkpointer, name)) == inspect.signature(getattr(Saver, name)), name


def test_what_only_one_kind_of_saver_has_is_reached_by_its_name(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        assert saver.report().sqlite == sqlite3.sqlite_version  # type: ignore[attr-defined]  # no other saver has it
        assert saver.verify().problems == []
        assert saver.without_classes().list_threads().threads == []
        with pytest.raises(AttributeError, match=r"no attribute 'storage'$"):
            _ = saver.storage  # type: ignore[attr-defined]  # LangGraph's has it
        assert not hasattr(saver, "_private")
        assert copy.copy(saver).saver is saver.saver


def test_memory_and_wrapped_savers_give_both_apis() -> None:
    with InMemorySaver() as memory, wrap(MemorySaver()) as wrapped:
        for saver in (memory, wrapped):
            asyncio.run(use_both(saver))
            asyncio.run(use_asyncio(saver))


def test_every_name_sets_its_tables_up(tmp_path: Path) -> None:
    async def run() -> None:
        for saver in (InMemorySaver(), wrap(MemorySaver()), SqliteSaver(tmp_path / "one.db")):
            with saver:
                saver.setup()
                await saver.asetup()
                assert saver.has_tables()
        async with AsyncSqliteSaver(tmp_path / "two.db") as asynchronous:
            assert not asynchronous.has_tables()
            await asynchronous.setup()
            assert asynchronous.has_tables()

    asyncio.run(run())


@pytest.mark.parametrize("kept_in", ["checkpoints.db", ":memory:"])
def test_connection_of_the_user_serves_both_apis_and_stays_open(tmp_path: Path, kept_in: str) -> None:
    path = tmp_path / kept_in if kept_in != ":memory:" else kept_in
    connection = sqlite3.connect(path, check_same_thread=False)
    with SqliteSaver(connection) as saver:
        asyncio.run(use_both(saver))
        assert saver.conn is connection
    assert connection.execute("SELECT 1").fetchone() == (1,)
    connection.close()


def test_aiosqlite_connection_serves_other_threads_too(tmp_path: Path) -> None:
    async def run() -> None:
        async with aiosqlite.connect(tmp_path / "checkpoints.db") as connection:
            saver = AsyncSqliteSaver(connection)
            await saver.setup()
            await asyncio.to_thread(use_blocking, saver)
            await use_asyncio(saver)
            await saver.aclose()

    asyncio.run(run())


def test_one_saver_serves_several_loops_at_once(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "checkpoints.db") as saver:
        threads = [threading.Thread(target=lambda: asyncio.run(use_asyncio(saver))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(list(saver.list(THREAD))) == 4
