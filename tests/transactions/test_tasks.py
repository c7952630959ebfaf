"""A node's puts into a store are stored in one transaction with the node's writes, or not at all."""

import asyncio
import gc
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
from langgraph.store.base import PutOp
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, interrupt

import threadmark
from threadmark import ConfigError
from threadmark_langgraph import wrap
from threadmark_store import Store
from transactions.databases import APIS, OF_USERS, opened

NOTES = ("notes",)
DURABILITIES: Any = ("sync", "async", "exit")


class State(TypedDict):
    text: str


class FailedError(Exception):
    """Raised by nodes."""


RETRIES = RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=3, retry_on=FailedError)


class World:
    """A checkpointer, a store that stores with its tasks, and one that reads the stored items."""

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

    def resume(self, graph: Any, thread: str, durability: Any) -> Any:
        """Run a graph from its newest checkpoint."""
        config: Any = {"configurable": {"thread_id": thread}}
        if self.is_blocking:
            return graph.invoke(None, config, durability=durability)
        return asyncio.run(graph.ainvoke(None, config, durability=durability))

    def clear(self) -> None:
        """Remove all items."""
        self.others.batch([PutOp(NOTES, key, None) for key in self.stored()])

    def text(self, thread: str) -> Any:
        """The stored state of a thread."""
        found = self.saver.get({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})
        return found and found["channel_values"].get("text")

    def written(self, thread: str) -> list[Any]:
        """The values that tasks wrote since the newest checkpoint."""
        found = self.saver.get_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})
        return [value for _, _, value in found.pending_writes or ()] if found else []


@pytest.fixture(params=["memory", *OF_USERS])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with opened(request.param, tmp_path) as saver:
        yield World(saver, "blocking")


@pytest.fixture
def on_file(tmp_path: Path) -> Iterator[World]:
    with opened("sqlite file", tmp_path) as saver:
        yield World(saver, "blocking")


@pytest.mark.parametrize("api", APIS)
def test_the_run_sees_its_puts_at_once_and_others_when_their_task_is_stored(world: World, api: str) -> None:
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

    for durability in DURABILITIES:
        assert world.run(world.compiled(first, second), thread=durability, durability=durability) == {"text": "second"}
        assert world.stored() == world.seen() == ["a", "c"]
        world.clear()
    assert world.saver.verify().problems == []


@pytest.mark.parametrize("api", APIS)
def test_a_put_that_cannot_be_stored_keeps_the_state_from_being_stored(world: World, api: str) -> None:
    world.is_blocking = api == "blocking"
    Store(world.saver.for_owner("ada")).put(NOTES, "hers", {"text": "of Ada"})
    bobs = wrap(world.saver.for_owner("bob"))
    world.store = Store(bobs, with_tasks=True)

    def node(_: State) -> State:
        world.put("his")
        world.put("hers")  # refused when it is stored
        return {"text": "done"}

    for durability in DURABILITIES:
        with pytest.raises(PermissionError, match="another owner"):
            world.run(
                world.graph(node).compile(checkpointer=bobs, store=world.store),
                thread=durability,
                durability=durability,
            )
        assert world.stored() == ["hers"]
        assert "done" not in world.written(durability)
        assert world.text(durability) != "done"


@pytest.mark.parametrize("api", APIS)
def test_a_task_that_fails_leaves_nothing(on_file: World, api: str) -> None:
    on_file.is_blocking = api == "blocking"

    def done(_: State) -> State:
        on_file.put("done")
        return {"text": "done"}

    def failing(_: State) -> State:
        on_file.put("failed")
        if not healed:
            raise FailedError
        return {"text": "healed"}

    for durability in DURABILITIES:
        healed: list[bool] = []
        graph = on_file.compiled(done, failing)
        with pytest.raises(FailedError):
            on_file.run(graph, thread=durability, durability=durability)
        assert on_file.stored() == ["done"]
        healed.append(True)
        assert on_file.resume(graph, thread=durability, durability=durability)["text"] == "healed"
        assert on_file.stored() == ["done", "failed"]
        on_file.clear()


def test_another_attempt_begins_without_the_puts_of_the_one_before(on_file: World) -> None:
    attempts: list[list[str]] = []

    def node(_: State) -> State:
        attempts.append(on_file.seen())
        on_file.put(f"attempt {len(attempts)}")
        if len(attempts) < 3:
            raise FailedError
        return {"text": "done"}

    for durability in DURABILITIES:
        on_file.run(on_file.compiled(node, retry_policy=RETRIES), thread=durability, durability=durability)
        assert attempts == [[], [], []]
        assert on_file.stored() == ["attempt 3"]
        on_file.clear()
        attempts.clear()


def test_an_interrupted_task_puts_again_when_it_is_resumed(on_file: World) -> None:
    def asks(_: State) -> State:
        on_file.put("before")
        answer = interrupt("?")
        on_file.put("after")
        return {"text": answer}

    for durability in DURABILITIES:
        graph = on_file.compiled(asks)
        assert "__interrupt__" in on_file.run(graph, thread=durability, durability=durability)
        assert on_file.stored() == []
        assert on_file.run(graph, Command(resume="yes"), durability, durability)["text"] == "yes"
        assert on_file.stored() == ["after", "before"]
        on_file.clear()


def test_tasks_of_one_step_store_their_puts_separately(on_file: World) -> None:
    def fan(state: State) -> Command[Any]:  # noqa: ARG001 - LangGraph's name
        return Command(goto=[Send("work", {"text": str(number)}) for number in range(12)])

    def work(state: State) -> None:
        on_file.put(state["text"])
        if state["text"] == "7":
            time.sleep(0.2)  # the others have finished
            raise FailedError

    builder = StateGraph(State).add_node("fan", fan, destinations=("work",)).add_node("work", work)
    graph = builder.add_edge(START, "fan").compile(checkpointer=on_file.checkpointer, store=on_file.store)
    for durability in DURABILITIES:
        with pytest.raises(FailedError):
            on_file.run(graph, thread=durability, durability=durability)
        assert on_file.stored() == sorted(str(number) for number in range(12) if number != 7)
        on_file.clear()


@pytest.mark.parametrize("mode", [None, True])
def test_tasks_of_a_subgraph_store_their_puts_themselves(on_file: World, mode: Any) -> None:
    def inner(_: State) -> State:
        on_file.put("inner")
        return {"text": "inner"}

    def failing(_: State) -> State:
        on_file.put("failing")
        raise FailedError

    subgraph = on_file.graph(inner, failing).compile(checkpointer=mode)

    def outer(state: State) -> State:
        on_file.put("outer")
        with suppress(FailedError):
            subgraph.invoke(state)
        assert on_file.seen() == ["inner", "outer"]
        return {"text": "outer"}

    for durability in DURABILITIES:
        on_file.run(on_file.compiled(outer), thread=durability, durability=durability)
        assert on_file.stored() == ["inner", "outer"]
        on_file.clear()


@pytest.mark.parametrize("mode", [None, True, False])
def test_a_task_that_hands_over_to_the_parent_graph_is_stored_with_the_node_that_called_the_subgraph(
    on_file: World, mode: Any
) -> None:
    def leaves(_: State) -> Command[Any]:
        on_file.put("left")
        return Command(graph=Command.PARENT, update={"text": "left"}, goto="last")

    def last(state: State) -> State:
        assert on_file.seen() == ["left"]
        return state

    subgraph = on_file.graph(leaves).compile(checkpointer=mode)
    builder = StateGraph(State).add_node("subgraph", subgraph).add_node("last", last).add_edge(START, "subgraph")
    graph = builder.compile(checkpointer=on_file.checkpointer, store=on_file.store)
    for durability in ("async", "exit"):  # LangGraph's "sync" fails with a subgraph that stores nothing
        assert on_file.run(graph, thread=durability, durability=durability)["text"] == "left"
        assert on_file.stored() == ["left"]
        on_file.clear()


def test_a_subgraph_that_stores_nothing_is_a_part_of_its_node(on_file: World) -> None:
    attempts: list[int] = []

    def inner(_: State) -> State:
        attempts.append(1)
        on_file.put(f"attempt {len(attempts)}")
        return {"text": "inner"}

    subgraph = on_file.graph(inner).compile(checkpointer=False)

    def outer(state: State) -> State:
        assert on_file.seen() == []
        subgraph.invoke(state)
        if len(attempts) == 1:
            raise FailedError
        return {"text": "outer"}

    on_file.run(on_file.compiled(outer, retry_policy=RETRIES))
    assert on_file.stored() == ["attempt 2"]


def test_tasks_that_a_task_calls_store_their_puts_themselves(on_file: World) -> None:
    tries: list[int] = []

    @task
    def step(number: int) -> int:
        on_file.put(f"step {number}")
        return number

    @entrypoint(
        checkpointer=on_file.checkpointer,
        store=on_file.store,
        retry_policy=RETRIES,
    )
    def work(_: State) -> int:
        on_file.put(f"try {len(tries)}")
        total = sum(each.result() for each in [step(number) for number in range(3)])
        tries.append(total)
        if len(tries) == 1:
            raise FailedError
        return total

    for durability in DURABILITIES:
        assert on_file.run(work, thread=durability, durability=durability) == 3
        assert on_file.stored() == ["step 0", "step 1", "step 2", "try 1"]
        on_file.clear()
        tries.clear()


def test_tools_belong_to_the_task_of_their_node(on_file: World) -> None:
    @tool
    def note(key: str) -> str:
        """Note something."""
        on_file.put(key)
        return str(on_file.stored())

    def model(state: MessagesState) -> Any:  # noqa: ARG001 - LangGraph's name
        calls = [{"name": "note", "args": {"key": key}, "id": key} for key in "abc"]
        return {"messages": [AIMessage("", tool_calls=calls)]}

    builder = StateGraph(MessagesState).add_node("model", model).add_node("tools", ToolNode([note]))
    builder.add_edge(START, "model").add_edge("model", "tools")
    graph = builder.compile(checkpointer=on_file.checkpointer, store=on_file.store)
    for is_blocking in (True, False):
        on_file.is_blocking = is_blocking
        found = on_file.run(graph, {"messages": []}, thread=str(is_blocking))
        assert [message.content for message in found["messages"][1:]] == ["[]"] * 3
        assert on_file.stored() == ["a", "b", "c"]
        on_file.clear()


def test_a_node_whose_result_comes_from_a_cache_puts_nothing(on_file: World) -> None:
    def node(_: State) -> State:
        on_file.put("noted")
        return {"text": "done"}

    graph = on_file.graph(node, cache_policy=CachePolicy()).compile(
        checkpointer=on_file.checkpointer, store=on_file.store, cache=InMemoryCache()
    )
    on_file.run(graph, thread="first")
    assert on_file.stored() == ["noted"]
    on_file.clear()
    assert on_file.run(graph, thread="second")["text"] == "done"
    assert on_file.stored() == []


def test_a_handler_of_an_error_finds_nothing_of_the_task_that_failed(on_file: World) -> None:
    def failing(state: State) -> State:  # noqa: ARG001 - LangGraph's name
        on_file.put("failed")
        raise FailedError

    def handler(state: State) -> State:  # noqa: ARG001 - LangGraph's name
        assert on_file.seen() == []
        on_file.put("handled")
        return {"text": "handled"}

    builder = StateGraph(State).add_node("failing", failing, error_handler=handler).add_edge(START, "failing")
    graph = builder.compile(checkpointer=on_file.checkpointer, store=on_file.store)
    for durability in ("sync", "async"):  # with "exit", LangGraph tells no saver that the task failed
        assert on_file.run(graph, thread=durability, durability=durability)["text"] == "handled"
        assert on_file.stored() == ["handled"]
        on_file.clear()


def test_a_put_after_the_end_of_its_task_is_stored_at_once(on_file: World) -> None:
    async def late(wait: asyncio.Future[None]) -> None:
        await wait
        await on_file.store.aput(NOTES, "late", {"text": "late"})

    async def case(durability: Any) -> None:
        wait: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        started: list[asyncio.Task[None]] = []

        async def node(_: State) -> State:
            started.append(asyncio.create_task(late(wait)))
            return {"text": "done"}

        config: Any = {"configurable": {"thread_id": durability}}
        await on_file.compiled(node).ainvoke({"text": ""}, config, durability=durability)
        wait.set_result(None)
        await started[0]

    for durability in DURABILITIES:
        asyncio.run(case(durability))
        assert on_file.stored() == ["late"]
        on_file.clear()


def test_the_last_put_of_a_key_stays_though_writes_are_stored_late(on_file: World) -> None:
    put_writes = type(on_file.saver).put_writes

    def slow(saver: Any, *arguments: Any) -> None:
        time.sleep(0.05)
        put_writes(saver, *arguments)

    numbers = iter(range(100))

    def one(_: State) -> State:
        on_file.put("key", str(next(numbers)))
        return {"text": ""}

    def two(state: State) -> State:
        return one(state)

    def three(state: State) -> State:
        return one(state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(on_file.saver), "put_writes", slow)
        on_file.run(on_file.compiled(one, two, three))
    item = on_file.others.get(NOTES, "key")
    assert item is not None
    assert item.value == {"text": "2"}


def test_a_graph_that_a_node_runs_on_another_thread_is_a_run_of_its_own(on_file: World) -> None:
    def inner(_: State) -> State:
        on_file.put("inner")
        return {"text": "inner"}

    other = on_file.compiled(inner)

    def outer(_: State) -> State:
        on_file.put("outer")
        on_file.run(other, thread=f"other {durability}", durability=durability)
        assert on_file.stored() == ["inner"]
        return {"text": "outer"}

    for durability in DURABILITIES:
        on_file.run(on_file.compiled(outer), thread=durability, durability=durability)
        assert on_file.text(f"other {durability}") == "inner"
        assert on_file.stored() == ["inner", "outer"]
        on_file.clear()


def test_outside_of_tasks_a_put_is_stored_at_once(on_file: World) -> None:
    on_file.put("outside")
    assert on_file.stored() == ["outside"]

    def node(_: State) -> State:
        on_file.put("without state")
        assert on_file.stored() == ["outside", "without state"]
        return {"text": ""}

    on_file.graph(node).compile(store=on_file.store).invoke({"text": ""})


def test_a_graph_with_another_checkpointer_is_refused(on_file: World) -> None:
    def node(_: State) -> State:
        on_file.put("lost")
        return {"text": ""}

    graph = on_file.graph(node).compile(checkpointer=wrap(on_file.saver), store=on_file.store)
    with pytest.raises(ConfigError, match="compile the graph with the checkpointer"):
        on_file.run(graph)
    with on_file.checkpointer.transaction() as tx, pytest.raises(ConfigError, match=r"transaction\(\) cannot work"):
        Store(tx.saver, with_tasks=True)
    with pytest.raises(ConfigError, match="wrap"):
        Store(on_file.saver, with_tasks=True)
    assert on_file.stored() == []


def test_what_is_kept_ends_with_its_run(on_file: World) -> None:
    def asks(_: State) -> State:
        on_file.put("kept")
        subgraph.invoke({"text": ""})
        return {"text": ""}

    def never(state: State) -> State:
        return state

    subgraph = on_file.graph(never).compile(interrupt_before=["never"])
    graph = on_file.compiled(asks)
    for number in range(5):
        on_file.run(graph, thread=str(number))
        gc.collect()  # LangGraph's objects of a run refer to each other in a circle
    assert on_file.stored() == []
    assert len(vars(on_file.checkpointer._companion)["_runs"]) < 5
