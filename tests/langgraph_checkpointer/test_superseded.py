"""Runs that name a checkpoint: the engine's question for the newest one is answered without its state."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from threadmark import CorruptDataError, MemorySaver
from threadmark_conformance.engine import at, checkpoint
from threadmark_langgraph import AsyncSqliteSaver, Checkpointer, SqliteSaver, wrap

THREAD: Any = at("thread")


class _State(TypedDict):
    text: str
    answer: str


def _graph(saver: Any) -> Any:
    builder: Any = StateGraph(_State)
    builder.add_node("reply", lambda state: {"answer": f"{len(state['text'])} characters"}).add_edge(START, "reply")
    return builder.compile(checkpointer=saver)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A thread of two turns, which lacks all bytes of the second one but the rows of its checkpoints."""
    path = tmp_path / "threads.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with SqliteSaver(path) as saver:
            graph = _graph(saver)
            graph.invoke({"text": "first " * 1000}, THREAD)
            kept = {key for (key,) in connection.execute("SELECT key FROM threadmark_segment")}
            graph.invoke({"text": "".join(map(str, range(9000)))}, THREAD)
        after = {key for (key,) in connection.execute("SELECT key FROM threadmark_segment")}
        assert after > kept
        connection.executemany("DELETE FROM threadmark_segment WHERE key = ?", [(key,) for key in after - kept])
        yield connection


def test_the_newest_state_is_not_read(database: sqlite3.Connection, tmp_path: Path) -> None:  # noqa: ARG001 - its file
    with SqliteSaver(tmp_path / "threads.db") as saver:
        with pytest.raises(CorruptDataError):
            saver.get_tuple(THREAD)
        first = saver.list_checkpoint_refs()[-1]
        found = _graph(saver).invoke({"text": "another"}, at("thread", "", first.id))
        assert found == {"text": "another", "answer": "7 characters"}
        assert [ref.parent for ref in saver.list_checkpoint_refs()].count(first.id) == 2


async def _run_from_the_first(path: Path) -> Any:
    async with AsyncSqliteSaver(path) as saver:
        with pytest.raises(CorruptDataError):
            await saver.aget_tuple(THREAD)
        first = (await saver.alist_checkpoint_refs())[-1]
        return await _graph(saver).ainvoke({"text": "another"}, at("thread", "", first.id))


def test_the_newest_state_is_not_read_in_asyncio(
    database: sqlite3.Connection,  # noqa: ARG001 - its file
    tmp_path: Path,
) -> None:
    found = asyncio.run(_run_from_the_first(tmp_path / "threads.db"))
    assert found == {"text": "another", "answer": "7 characters"}


def test_a_newest_checkpoint_that_is_missing_is_noticed(database: sqlite3.Connection, tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db") as saver:
        first, newest = saver.list_checkpoint_refs()[-1], saver.list_checkpoint_refs()[0]
        database.execute("DELETE FROM threadmark_checkpoint WHERE rank = ?", (newest.id,))
        assert saver.saver.get_tuple(at("thread", "", first.id)) is not None
        with pytest.raises(CorruptDataError, match="checkpoints are there"):
            saver.get_checkpoint_ref("thread")


class _Noting(MemorySaver):
    """Notes which of its methods the checkpointer calls."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def get_tuple(self, config: Any) -> Any:
        self.asked.append("get_tuple")
        return super().get_tuple(config)

    def get_checkpoint_ref(self, config: Any) -> Any:
        self.asked.append("get_checkpoint_ref")
        return super().get_checkpoint_ref(config)


class _Overriding(Checkpointer):
    """A user's subclass, which sees each checkpoint that is read."""

    def get_tuple(self, config: Any) -> Any:
        found = super().get_tuple(config)
        assert found is None or found.checkpoint["channel_values"]
        return found


ENGINE = "langgraph.pregel._checkpoint"
ID = 'found.checkpoint["id"]'


def _asked(kind: type[Checkpointer], module: str, function: str, looked_at: str) -> tuple[list[str], Any]:
    """A function of the engine with its call, and the result; it looks at a part of the newest checkpoint."""
    saver = _Noting()
    made = checkpoint({"a": 1})
    saver.put(THREAD, made, {"step": 1}, made["channel_versions"])
    names: dict[str, Any] = {"__name__": module}
    text = f"def {function}(saver, config):\n found = saver.get_tuple(config)\n return found and {looked_at}"
    exec(text, names)  # noqa: S102 - a function is recognised by its code, so it is made from text of the test
    found = names[function](kind(saver), THREAD)
    assert names[function](kind(saver), at("another thread")) is None
    return saver.asked[::2], found if found != made["id"] else ID


@pytest.mark.parametrize(
    ("kind", "module", "function", "looked_at", "called", "result"),
    [
        (Checkpointer, ENGINE, "checkpoint_superseded", ID, "get_checkpoint_ref", ID),
        (Checkpointer, ENGINE, "checkpoint_superseded", "found.metadata", "get_tuple", {"step": 1}),
        (Checkpointer, ENGINE, "checkpoint_superseded", 'found.checkpoint["channel_values"]', "get_tuple", {"a": 1}),
        (Checkpointer, ENGINE, "checkpoint_superseded", 'found.checkpoint.get("v")', "get_tuple", 4),
        (Checkpointer, ENGINE, "another_function", ID, "get_tuple", ID),
        (Checkpointer, "yours", "checkpoint_superseded", ID, "get_tuple", ID),
        (_Overriding, ENGINE, "checkpoint_superseded", ID, "get_tuple", ID),
    ],
)
def test_only_a_call_that_looks_at_nothing_but_the_id_gets_nothing_else(
    kind: type[Checkpointer], module: str, function: str, looked_at: str, called: str, result: Any
) -> None:
    assert _asked(kind, module, function, looked_at) == ([called], result)


def test_a_call_of_yours_gets_everything() -> None:
    saver = _Noting()
    made = checkpoint({"a": 1})
    saver.put(THREAD, made, {"step": 1}, made["channel_versions"])
    assert wrap(saver).get_tuple(THREAD | {"configurable": {"thread_id": "thread", "checkpoint_id": None}}) is not None
    assert saver.asked == ["get_tuple"]
