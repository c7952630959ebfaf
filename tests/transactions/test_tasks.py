"""What a node puts into a store is stored in one transaction with the node's writes, or not at all."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.cache.memory import InMemoryCache
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, interrupt

import threadmark
from threadmark import ConfigError, StoreError
from threadmark_langgraph import wrap
from threadmark_store import Store
from transactions.databases import APIS, OF_USERS, opened

NOTES = ("notes",)
DURABILITIES: Any = ("sync", "async", "exit")
WITH_EACH_STEP: Any = ("sync", "async")


class State(TypedDict):
    text: str


class FailedError(Exception):
    """Raised by nodes."""


class World:
    """A checkpointer, a store that stores with its tasks, and one that reads what is stored."""

    def __init__(self, saver: threadmark.Saver, api: str) -> None:
        self.saver = saver
        self.is_blocking = api == "blocking"
        self.checkpointer = wrap(saver)
        self.store = Store(self.checkpointer, with_tasks=True)
        self.others = Store(saver)
        self.others.setup()

    def put(self, key: str, text: str = "") -> None:
        self.store.put(NOTES, key, {"text": text or key})

    def stored(self) -> list[str]:
        """The keys that others find, as other processes do."""
        return sorted(item.key for item in self.others.search(NOTES, limit=1000))

    def seen(self) -> list[str]:
        """The keys that the store finds here."""
        return sorted(item.key for item in self.store.search(NOTES, limit=1000))

    def graph(self, *nodes: Callable[..., Any], **options: Any) -> Any:
        """A graph of these nodes in a row."""
        builder = StateGraph(State)
        for node in nodes:
            builder.add_node(node.__name__, node, **options)
        for before, after in zip((START, *[node.__name__ for node in nodes]), nodes, strict=False):
            builder.add_edge(before, after.__name__)
        return builder

    def compiled(self, *nodes: Callable[..., Any], **options: Any) -> Any:
        return self.graph(*nodes, **options).compile(checkpointer=self.checkpointer, store=self.store)

    def run(self, graph: Any, given: Any = None, thread: str = "trip", durability: Any = "async") -> Any:
        """Run a graph with the API of this world."""
        given = {"text": ""} if given is None else given
        config: Any = {"configurable": {"thread_id": thread}}
        if self.is_blocking:
            return graph.invoke(given, config, durability=durability)
        return asyncio.run(graph.ainvoke(given, config, durability=durability))

    def written(self, thread: str = "trip") -> set[str]:
        """The channels that tasks wrote to since the newest checkpoint."""
        found = self.saver.get_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})
        return {channel for _, channel, _ in found.pending_writes or ()} if found else set()


@pytest.fixture(params=["memory", *OF_USERS])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with opened(request.param, tmp_path) as saver:
        yield World(saver, "blocking")


@pytest.fixture
def on_file(tmp_path: Path) -> Iterator[World]:
    with opened("sqlite file", tmp_path) as saver:
        yield World(saver, "blocking")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("durability", DURABILITIES)
def test_the_run_sees_its_puts_at_once_and_others_when_their_task_is_stored(
    world: World, api: str, durability: str
) -> None:
    world.is_blocking = api == "blocking"

    def first(_: State) -> State:
        world.put("a", "old")
        world.put("b")
        world.store.delete(NOTES, "b")
        world.put("a", "new")
        assert world.seen() == ["a"]
        assert world.store.list_namespaces() == [NOTES]
        assert world.store.search(NOTES, filter={"text": "old"}) == []
        item = world.store.get(NOTES, "a")
        assert item is not None
        assert item.value == {"text": "new"}
        assert world.stored() == []
        return {"text": "first"}

    def second(_: State) -> State:
        assert world.seen() == ["a"]
        world.put("c")
        return {"text": "second"}

    assert world.run(world.compiled(first, second), durability=durability) == {"text": "second"}
    assert world.stored() == world.seen() == ["a", "c"]
    assert world.saver.verify().problems == []


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_put_that_cannot_be_stored_keeps_the_state_from_being_stored(
    world: World, api: str, durability: str
) -> None:
    world.is_blocking = api == "blocking"
    Store(world.saver.for_owner("ada")).put(NOTES, "hers", {"text": "of Ada"})
    bobs = wrap(world.saver.for_owner("bob"))
    world.store = Store(bobs, with_tasks=True)

    def node(_: State) -> State:
        world.put("his")
        world.put("hers")  # refused when it is stored
        return {"text": "done"}

    graph = world.graph(node).compile(checkpointer=bobs, store=world.store)
    with pytest.raises(PermissionError, match="another owner"):
        world.run(graph, durability=durability)
    assert world.stored() == ["hers"]
    assert "text" not in world.written()
    found = world.saver.get({"configurable": {"thread_id": "trip", "checkpoint_ns": ""}})
    assert not found or found["channel_values"].get("text") != "done"
