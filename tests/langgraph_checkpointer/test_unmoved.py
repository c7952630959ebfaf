"""A new database next to LangGraph's tables warns that their threads begin again, and names the move."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver as TheirMemory
from langgraph.checkpoint.postgres import PostgresSaver as TheirPostgres
from langgraph.checkpoint.sqlite import SqliteSaver as TheirSqlite
from langgraph.graph import START, MessagesState, StateGraph

from langgraph_checkpointer.theirs import channels, checkpoint, location, new_database, store
from threadmark import ConfigError, MemorySaver
from threadmark_langgraph import (
    AsyncPostgresSaver,
    AsyncSqliteSaver,
    InMemorySaver,
    PostgresSaver,
    SqliteSaver,
    UnmovedThreadsError,
    UnmovedThreadsWarning,
    migrate,
    wrap,
)

PLACE, OTHER = location("one"), location("two")


class Database(NamedTuple):
    """A database that LangGraph's saver and ours share."""

    name: str
    """Its path or URL."""
    theirs: Any
    ours: Any
    ours_for_asyncio: Any


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        yield Database(str(tmp_path / "chats.db"), TheirSqlite, SqliteSaver, AsyncSqliteSaver)
    else:
        yield Database(new_database(tmp_path), TheirPostgres, PostgresSaver, AsyncPostgresSaver)


def filled(database: Database) -> Any:
    """Put a thread into LangGraph's tables; its config."""
    with database.theirs.from_conn_string(database.name) as saver:
        saver.setup()
        return store(saver, PLACE, checkpoint({"m": "theirs"}))


def moved_in_place(database: Database) -> Any:
    with (
        database.theirs.from_conn_string(database.name) as source,
        database.ours.from_conn_string(database.name) as target,
    ):
        return migrate(source, target)


def test_threads_that_begin_anew_are_warned_of_once(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    filled(database)
    with database.ours.from_conn_string(database.name) as saver, caplog.at_level(logging.WARNING, "threadmark"):
        with pytest.warns(UnmovedThreadsWarning, match=r"threadmark_langgraph\.migrate\(database, database\)"):
            assert saver.get_tuple(PLACE) is None
        assert saver.get_tuple(OTHER) is None
    with database.ours.from_conn_string(database.name) as another:
        assert another.get_tuple(PLACE) is None
    (line,) = caplog.records
    assert (line.name, line.levelname) == ("threadmark.langgraph", "WARNING")
    assert "start empty" in line.getMessage()


def test_they_are_warned_of_in_asyncio(database: Database) -> None:
    filled(database)

    async def body() -> None:
        async with database.ours_for_asyncio.from_conn_string(database.name) as saver:
            with pytest.warns(UnmovedThreadsWarning):
                assert await saver.aget_tuple(PLACE) is None

    asyncio.run(body())


def test_a_graph_is_warned_before_it_stores_anything(tmp_path: Path) -> None:
    path = str(tmp_path / "chats.db")
    filled(Database(path, TheirSqlite, SqliteSaver, AsyncSqliteSaver))
    builder: Any = StateGraph(MessagesState).add_node("answer", lambda _: {}).add_edge(START, "answer")
    with SqliteSaver(path) as saver:
        graph = builder.compile(checkpointer=saver)
        with pytest.raises(UnmovedThreadsWarning):  # in these tests every warning is an error
            graph.invoke({"messages": []}, PLACE)
        assert saver.list_checkpoint_refs() == []


def test_there_is_no_warning_where_nothing_is_to_be_moved(database: Database, tmp_path: Path) -> None:
    with database.theirs.from_conn_string(database.name) as theirs:
        theirs.setup()
    with database.ours.from_conn_string(database.name) as saver:
        assert saver.get_tuple(PLACE) is None
    with sqlite3.connect(tmp_path / "of another application.db") as other:
        other.execute("CREATE TABLE checkpoints (number)")
        other.execute("INSERT INTO checkpoints VALUES (1)")
    other.close()
    with SqliteSaver(tmp_path / "of another application.db") as saver:
        assert saver.get_tuple(PLACE) is None


def test_there_is_no_warning_where_the_threads_were_moved(database: Database) -> None:
    there = filled(database)
    assert (moved_in_place(database).checkpoints, moved_in_place(database).already_there) == (1, 1)
    with database.ours.from_conn_string(database.name) as saver:
        assert saver.get_tuple(OTHER) is None
        assert channels(saver, there) == {"m": "theirs"}
    with database.theirs.from_conn_string(database.name) as saver:
        assert channels(saver, there) == {"m": "theirs"}


def test_there_is_no_warning_where_threads_were_begun_here(database: Database) -> None:
    filled(database)
    with database.ours.from_conn_string(database.name) as saver:
        store(saver, OTHER, checkpoint({"m": "ours"}))
        assert saver.get_tuple(PLACE) is None


def line_of(saver: BaseCheckpointSaver[Any], count: int, config: Any = PLACE) -> list[Any]:
    """Put some checkpoints, each the child of the one before; their configs."""
    configs = []
    for number in range(count):
        config = store(saver, config, checkpoint({"m": number}, number + 1))
        saver.put_writes(config, [("m", number)], f"task {number}")
        configs.append(config)
    return configs


def history(saver: BaseCheckpointSaver[Any]) -> list[Any]:
    return [found.config["configurable"]["checkpoint_id"] for found in saver.list(PLACE)]


def ids(configs: list[Any]) -> list[Any]:
    return [config["configurable"]["checkpoint_id"] for config in configs]


def test_history_comes_in_under_a_thread_that_was_begun_anew() -> None:
    source, target = TheirMemory(), InMemorySaver()
    older, newer = line_of(source, 3), line_of(target, 2)
    tried = migrate(source, target, dry_run=True)
    moved = migrate(source, target)
    assert moved == tried
    assert (moved.checkpoints, moved.writes, moved.problems) == (3, 3, [])
    assert history(target) == ids([*older, *newer])[::-1]
    found = target.get_tuple(PLACE)
    assert found is not None
    assert found.config == newer[-1]
    assert [channels(target, config) for config in older] == [channels(source, config) for config in older]
    assert migrate(source, target).already_there == 3


def test_history_that_was_brought_in_halfway_is_finished() -> None:
    source, target = TheirMemory(), InMemorySaver()
    older, newer = line_of(source, 3), line_of(target, 1)

    def stop(done: int, _: int) -> None:
        if done == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        migrate(source, target, progress=stop)
    assert migrate(source, target).problems == []
    assert history(target) == ids([*older, *newer])[::-1]


def anew(source: Any, target: Any, _: Callable[[], Any]) -> str:
    """The target begins the thread again while the source goes on."""
    line_of(target, 1)
    line_of(source, 2)
    return "the source has history, the target started the thread again"


def gone_on(source: Any, target: Any, move: Callable[[], Any]) -> str:
    """Both go on with a thread that was moved."""
    (first,) = line_of(source, 1)
    move()
    line_of(target, 1, first)
    line_of(source, 2, first)
    return "the thread went on in the source and in the target"


@pytest.mark.parametrize("happened", [anew, gone_on])
@pytest.mark.parametrize("ours", [InMemorySaver, SqliteSaver])
def test_thread_with_two_ends_keeps_the_targets_until_somebody_decides(
    happened: Callable[[Any, Any, Any], str], ours: Any, tmp_path: Path
) -> None:
    source = TheirMemory()
    with ours(*[tmp_path / "ours.db"] * (ours is SqliteSaver)) as target:
        line_of(target, 1, OTHER)
        reason = happened(source, target, lambda: migrate(source, target))
        before = history(target)
        for dry_run in (True, False):
            moved = migrate(source, target, dry_run=dry_run)
            assert {problem.ref.thread_id for problem in moved.problems} == {"one"}
            assert all(problem.reason.startswith(reason) for problem in moved.problems)
            assert all("delete the thread in the target and move again" in each.reason for each in moved.problems)
        assert history(target) == before
        target.delete_thread("one")
        assert migrate(source, target).problems == []
        assert history(target) == history(source)
        found = target.get_tuple(PLACE)
        assert found is not None
        assert found.pending_writes


def test_they_are_an_error_where_that_is_asked_for(database: Database) -> None:
    filled(database)
    begun = checkpoint({"m": "ours"})
    with database.ours.from_conn_string(database.name, on_unmoved="raise") as saver:
        for _ in range(2):
            with pytest.raises(UnmovedThreadsError, match="start empty"):
                saver.get_tuple(PLACE)
            with pytest.raises(UnmovedThreadsError, match="start empty"):
                saver.put(PLACE, begun, {}, {})

    async def body() -> None:
        async with database.ours_for_asyncio.from_conn_string(database.name, on_unmoved="raise") as saver:
            with pytest.raises(UnmovedThreadsError, match="start empty"):
                await saver.aget_tuple(PLACE)
            with pytest.raises(UnmovedThreadsError, match="start empty"):
                await saver.aput(PLACE, begun, {}, {})

    asyncio.run(body())
    moved_in_place(database)
    with database.ours.from_conn_string(database.name, on_unmoved="raise") as saver:
        assert channels(saver, PLACE) == {"m": "theirs"}
        assert saver.get_tuple(OTHER) is None


def test_a_new_database_is_no_error(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "new.db", on_unmoved="raise") as saver:
        assert saver.get_tuple(PLACE) is None
        saver.put(PLACE, checkpoint({"m": "ours"}), {}, {})
    with wrap(MemorySaver(), on_unmoved="raise") as wrapped:
        assert wrapped.get_tuple(PLACE) is None


def test_what_is_done_about_them_is_one_of_two() -> None:
    with pytest.raises(ConfigError, match="on_unmoved must be 'warn' or 'raise', not 'ignore'"):
        SqliteSaver(":memory:", on_unmoved="ignore")  # type: ignore[arg-type]
