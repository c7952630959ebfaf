"""A graph that is started with a lease's configuration stores everything under it: subgraphs and updates, too."""

import asyncio
import operator
from typing import Annotated, Any, Literal, TypedDict, cast

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from threadmark import LeaseLostError, MemorySaver, ThreadBusyError, ThreadNotFoundError
from threadmark.memory.store import MemoryStore
from threadmark.program import Program
from threadmark.store.contract import Added, Change
from threadmark.types import Lease
from threadmark_langgraph import Checkpointer, InMemorySaver, SqliteSaver

Durability = Literal["sync", "async", "exit"]
DURABILITIES: list[Durability] = ["sync", "async", "exit"]
APIS = ["blocking", "asyncio"]


class State(TypedDict):
    """The state that the graph gathers."""

    seen: Annotated[list[str], operator.add]


class Watching(MemoryStore):
    """Keeps the token of every change."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens: list[tuple[str, int | None]] = []

    def add(self, change: Change) -> Program[Added]:
        """Like the parent's, and a note of it."""
        self.tokens.append(("checkpoint" if change.checkpoints else "writes", change.token))
        return super().add(change)


def watched() -> tuple[Checkpointer, Watching]:
    """A checkpointer in memory, and its store."""
    saver, store = MemorySaver(), Watching()
    saver._context = saver._context._replace(store=store)
    return Checkpointer(saver), store


def asking_graph(checkpointer: Checkpointer) -> Any:
    """A step, a subgraph that asks a question, and a subgraph that has its own memory."""

    def ask(_: State) -> State:
        return {"seen": [interrupt("a question")]}

    def note(name: str) -> Any:
        return lambda _: {"seen": [name]}

    asking: Any = StateGraph(State)
    asking.add_node("before", note("before")).add_node("ask", ask).add_edge(START, "before").add_edge("before", "ask")
    remembering: Any = StateGraph(State)
    remembering.add_node("remember", note("remembered")).add_edge(START, "remember")
    graph: Any = StateGraph(State)
    graph.add_node("first", note("first")).add_node("asking", asking.compile())
    graph.add_node("remembering", remembering.compile(checkpointer=True))
    graph.add_edge(START, "first").add_edge("first", "asking").add_edge("asking", "remembering")
    return graph.compile(checkpointer=checkpointer)


def run(api: str, graph: Any, given: Any, config: Any, durability: Durability) -> None:
    """Invoke the graph with an API."""
    if api == "blocking":
        graph.invoke(given, config, durability=durability)
    else:
        asyncio.run(graph.ainvoke(given, config, durability=durability))


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("durability", DURABILITIES)
def test_everything_that_a_run_stores_carries_the_token(api: str, durability: Durability) -> None:
    checkpointer, store = watched()
    graph = asking_graph(checkpointer)
    with checkpointer.lease("thread", ttl=60) as lease:
        run(api, graph, {"seen": []}, lease.config, durability)
        graph.update_state(lease.config, {"seen": ["updated"]}, as_node="first")
        asyncio.run(graph.aupdate_state(lease.config, {"seen": ["updated too"]}, as_node="first"))
        run(api, graph, None, lease.config, durability)
        run(api, graph, Command(resume="an answer"), lease.config, durability)
        assert {kind for kind, _ in store.tokens} == {"checkpoint", "writes"}
        assert {token for _, token in store.tokens} == {lease.token}
        namespaces = {found.config["configurable"]["checkpoint_ns"] for found in checkpointer.list(_anywhere())}
        assert {name.partition(":")[0] for name in namespaces} == {"", "asking", "remembering"}
        for found in checkpointer.list(_anywhere()):
            assert "lease_token" not in found.metadata
    state = graph.get_state({"configurable": {"thread_id": "thread"}})
    assert "an answer" in state.values["seen"]
    assert state.next == ()


def _anywhere() -> RunnableConfig:
    return {"configurable": {"thread_id": "thread"}}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_run_whose_lease_was_taken_over_ends_with_an_error(api: str, durability: Durability) -> None:
    checkpointer = InMemorySaver()
    second: Lease = checkpointer.lease("thread", on_busy="interrupt", ttl=60)

    def slow(_: State) -> State:
        second.__enter__()
        return {"seen": ["too late"]}

    builder: Any = StateGraph(State)
    graph = builder.add_node("slow", slow).add_edge(START, "slow").compile(checkpointer=checkpointer)
    with checkpointer.lease("thread", ttl=60) as lease:
        with pytest.raises(LeaseLostError):
            run(api, graph, {"seen": []}, lease.config, durability)
        values = graph.get_state({"configurable": {"thread_id": "thread"}}).values
        assert values.get("seen", []) == []
    second.release()


@pytest.mark.parametrize("api", APIS)
def test_a_run_without_a_token_is_refused_while_a_lease_lives(api: str) -> None:
    checkpointer = InMemorySaver()
    graph = asking_graph(checkpointer)
    with checkpointer.lease("thread", ttl=60):
        with pytest.raises(ThreadBusyError):
            run(api, graph, {"seen": []}, {"configurable": {"thread_id": "thread"}}, "sync")
        assert list(checkpointer.list(None)) == []


@pytest.mark.parametrize("api", APIS)
def test_a_rollback_begins_where_the_other_run_did(api: str) -> None:
    checkpointer = InMemorySaver()
    builder: Any = StateGraph(State)
    graph = builder.add_node("step", lambda _: {"seen": ["step"]}).add_edge(START, "step")
    graph = graph.compile(checkpointer=checkpointer)
    config = {"configurable": {"thread_id": "thread"}}
    run(api, graph, {"seen": ["one"]}, config, "sync")
    with checkpointer.lease("thread", ttl=60) as first:
        run(api, graph, {"seen": ["abandoned"]}, first.config, "sync")
        with checkpointer.lease("thread", on_busy="rollback", ttl=60) as second:
            run(api, graph, {"seen": ["two"]}, second.config, "sync")
    assert graph.get_state(config).values["seen"] == ["one", "step", "two", "step"]


@pytest.mark.parametrize("api", APIS)
def test_a_rollback_asks_a_question_again_that_the_other_run_answered(api: str) -> None:
    checkpointer = InMemorySaver()
    builder: Any = StateGraph(State)
    builder.add_node("ask", lambda _: {"seen": [interrupt("a question")]}).add_edge(START, "ask")
    graph = builder.add_node("after", lambda _: {"seen": ["after"]}).add_edge("ask", "after")
    graph = graph.compile(checkpointer=checkpointer)
    config = {"configurable": {"thread_id": "thread"}}
    run(api, graph, {"seen": []}, config, "sync")
    with checkpointer.lease("thread", ttl=60) as first:
        run(api, graph, Command(resume="abandoned"), first.config, "sync")
        with checkpointer.lease("thread", on_busy="rollback", ttl=60) as second:
            run(api, graph, None, second.config, "sync")  # as whenever LangGraph goes back to a checkpoint
            then = {"configurable": {"thread_id": "thread", "lease_token": second.token}}
            assert [each.value for each in graph.get_state(then).interrupts] == ["a question"]
            run(api, graph, Command(resume="an answer"), then, "sync")
    assert graph.get_state(config).values["seen"] == ["an answer", "after"]


@pytest.mark.parametrize("api", APIS)
def test_a_rollback_of_a_first_run_begins_with_nothing(api: str) -> None:
    checkpointer = InMemorySaver()
    graph = asking_graph(checkpointer)
    with checkpointer.lease("thread", ttl=60) as first:
        run(api, graph, {"seen": ["abandoned"]}, first.config, "sync")
        with checkpointer.lease("thread", on_busy="rollback", ttl=60) as second:
            before = graph.get_state(second.config)
            assert (before.values, before.next) == ({"seen": []}, ())
            run(api, graph, {"seen": ["again"]}, second.config, "sync")
            run(api, graph, Command(resume="an answer"), second.config, "sync")
    seen = graph.get_state({"configurable": {"thread_id": "thread"}}).values["seen"]
    assert seen[0] == "again"
    assert "abandoned" not in seen


def test_a_view_of_an_owner_is_a_checkpointer_of_the_same_class(tmp_path: Any) -> None:
    with SqliteSaver(tmp_path / "threads.db") as checkpointer:
        ada, bob = checkpointer.for_owner("ada"), checkpointer.for_owner("bob")
        assert type(ada) is SqliteSaver
        config: RunnableConfig = {"configurable": {"thread_id": "thread"}}
        with ada.lease("thread", ttl=60) as lease:
            asking_graph(ada).invoke({"seen": []}, lease.config)
        assert ada.get_tuple(config) is not None
        assert bob.get_tuple(config) is None
        assert checkpointer.get_tuple(config) is not None
        with pytest.raises(ThreadNotFoundError):
            asking_graph(bob).invoke({"seen": []}, config)
        with pytest.raises(ThreadNotFoundError), bob.lease("thread"):
            pass


def test_the_user_of_a_run_is_the_owner_of_the_thread_that_it_begins() -> None:
    checkpointer = InMemorySaver()
    config = {"configurable": {"thread_id": "thread", "user_id": "ada"}}
    asking_graph(checkpointer).invoke({"seen": []}, config)
    found = checkpointer.get_thread("thread")
    assert found is not None
    assert found.owner == "ada"
    assert checkpointer.for_owner("bob").get_tuple(cast("RunnableConfig", config)) is None
