"""Calls in LangGraph's nodes, tools, tasks, subgraphs and parallel branches, blocking and with asyncio."""

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy, Send, interrupt

from effects.graphs import CrashError
from effects.places import Receiver, opened
from threadmark import EffectFailedError, Effects, EffectUnknownError, Saver
from threadmark_langgraph import Checkpointer

THREAD: Any = {"configurable": {"thread_id": "order"}}


class State(TypedDict, total=False):
    """Amounts, and the receipts of their charges."""

    amount: int
    receipts: Annotated[list[Any], add]


@pytest.fixture(params=["sqlite", "postgres"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Saver]:
    with opened(request.param, tmp_path) as saver:
        yield saver


@pytest.fixture
def effects(saver: Saver) -> Effects:
    return Effects(saver)


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


class Crash:
    """Raises once, when it is called."""

    def __init__(self) -> None:
        self.is_due = True

    def __call__(self) -> None:
        if self.is_due:
            self.is_due = False
            raise CrashError


def graph_of(saver: Saver, **nodes: Any) -> Any:
    """A graph whose nodes run one after the other."""
    graph = StateGraph(State)
    names = [START, *nodes, END]
    for name, node in nodes.items():
        graph.add_node(name, node)
    for before, after in pairwise(names):
        graph.add_edge(before, after)
    return graph.compile(checkpointer=Checkpointer(saver))


def crashed(graph: Any, given: Any, config: Any = THREAD) -> Any:
    """Run it until it crashes, and go on."""
    with pytest.raises(CrashError):
        graph.invoke(given, config)
    return graph.invoke(None, config)


async def acrashed(graph: Any, given: Any) -> Any:
    """Like `crashed`, for asyncio."""
    with pytest.raises(CrashError):
        await graph.ainvoke(given, THREAD)
    return await graph.ainvoke(None, THREAD)


def test_nodes_with_asyncio(saver: Saver, effects: Effects, receiver: Receiver) -> None:
    crash = Crash()

    async def charge(state: State) -> State:
        receipts = [await effects.aonce("charge", receiver.acharge, state["amount"]) for _ in range(2)]
        crash()
        return {"receipts": [receipt["receipt"] for receipt in receipts]}

    assert asyncio.run(acrashed(graph_of(saver, charge=charge), {"amount": 5}))["receipts"] == [1, 2]
    assert receiver.calls == [5, 5]


def test_calls_of_one_node_at_once(saver: Saver, effects: Effects, receiver: Receiver) -> None:
    crash = Crash()

    async def charge(_: State) -> State:
        calls = (effects.aonce("charge", receiver.acharge, amount) for amount in (5, 5, 6))
        receipts = await asyncio.gather(*calls)
        crash()
        return {"receipts": sorted(receipt["receipt"] for receipt in receipts)}

    assert asyncio.run(acrashed(graph_of(saver, charge=charge), {"amount": 5}))["receipts"] == [1, 2, 3]
    assert sorted(receiver.calls) == [5, 5, 6]


def test_each_attempt_of_a_retry_policy_counts_from_the_beginning(
    saver: Saver, effects: Effects, receiver: Receiver
) -> None:
    crash = Crash()

    def charge(state: State) -> State:
        receipts = [effects.once("charge", receiver.charge, state["amount"])["receipt"] for _ in range(2)]
        crash()
        return {"receipts": receipts}

    graph = StateGraph(State)
    policy = RetryPolicy(retry_on=CrashError, initial_interval=0.01, jitter=False)
    graph.add_node("charge", charge, retry_policy=policy)
    graph.add_edge(START, "charge")
    compiled = graph.compile(checkpointer=Checkpointer(saver))
    assert compiled.invoke({"amount": 5}, THREAD)["receipts"] == [1, 2]
    assert receiver.calls == [5, 5]


def test_a_tool_node_with_two_calls_of_the_same_arguments(saver: Saver, effects: Effects, receiver: Receiver) -> None:
    crash = Crash()

    @tool
    @effects.effect("charge")
    def charge(amount: int, idempotency_key: str) -> str:
        """Charge a card."""
        return str(receiver.charge(amount, idempotency_key)["receipt"])

    @tool
    def check() -> str:
        """Look at the card."""
        crash()
        return "fine"

    assert set(charge.args) == {"amount"}
    calls = [
        {"name": "charge", "args": {"amount": 5}, "id": "a"},
        {"name": "charge", "args": {"amount": 5}, "id": "b"},
        {"name": "check", "args": {}, "id": "c"},
    ]
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([charge, check], handle_tool_errors=False))
    graph.add_edge(START, "tools")
    compiled = graph.compile(checkpointer=Checkpointer(saver))
    state = crashed(compiled, {"messages": [AIMessage("", tool_calls=calls)]})
    found = [message.content for message in state["messages"] if isinstance(message, ToolMessage)]
    assert sorted(found) == ["1", "2", "fine"]
    assert receiver.calls == [5, 5]
    assert len(set(receiver.keys)) == 2


def test_tasks_of_the_functional_interface(saver: Saver, effects: Effects, receiver: Receiver) -> None:
    crash = Crash()

    @task
    @effects.effect("charge")
    def charge(amount: int) -> int:
        return int(receiver.charge(amount)["receipt"])

    @task
    def fail() -> None:
        crash()

    @entrypoint(checkpointer=Checkpointer(saver))
    def order(amount: int) -> list[int]:
        direct = effects.once("charge", receiver.charge, amount)["receipt"]
        futures = [charge(amount), charge(amount)]
        receipts = [future.result() for future in futures]
        fail().result()
        return [direct, *sorted(receipts)]

    assert crashed(order, 5) == [1, 2, 3]
    assert receiver.calls == [5, 5, 5]


@pytest.mark.parametrize("remembers", [None, True])
def test_subgraphs_that_loop(saver: Saver, effects: Effects, receiver: Receiver, *, remembers: bool | None) -> None:
    crash = Crash()

    def charge(state: State) -> State:
        receipt = effects.once("charge", receiver.charge, 5)["receipt"]
        if len(state["receipts"]) == 1:
            crash()
        return {"receipts": [receipt]}

    inner = StateGraph(State)
    inner.add_node("charge", charge)
    inner.add_edge(START, "charge")
    inner.add_conditional_edges(
        "charge", lambda state: END if len(state["receipts"]) % 3 == 0 else "charge", ["charge", END]
    )
    subgraph = inner.compile(checkpointer=remembers)

    class Outer(TypedDict, total=False):
        receipts: list[int]

    graph = StateGraph(Outer)
    graph.add_node("inner", subgraph)
    graph.add_edge(START, "inner")
    compiled = graph.compile(checkpointer=Checkpointer(saver))
    assert crashed(compiled, {"receipts": []})["receipts"] == [1, 2, 3]
    assert receiver.calls == [5] * 3
    compiled.invoke({"receipts": []}, THREAD)
    assert receiver.calls == [5] * 6
    first = [each.config for each in compiled.get_state_history(THREAD)][-1]
    compiled.invoke(None, first)
    assert receiver.calls == [5] * 6


def test_packets_to_one_node_and_parallel_branches(saver: Saver, effects: Effects, receiver: Receiver) -> None:
    crash = Crash()

    def charge(state: State) -> State:
        return {"receipts": [effects.once("charge", receiver.charge, state["amount"])["receipt"]]}

    def fail(_: State) -> State:
        crash()
        return {}

    graph: Any = StateGraph(State)
    graph.add_node("charge", charge)
    graph.add_node("other", charge)
    graph.add_node("fail", fail)
    graph.add_conditional_edges(
        START,
        lambda _: [Send("charge", {"amount": 5}), Send("charge", {"amount": 5}), "other", "fail"],
        ["charge", "other", "fail"],
    )
    compiled = graph.compile(checkpointer=Checkpointer(saver))
    assert sorted(crashed(compiled, {"amount": 5})["receipts"]) == [1, 2, 3]
    assert receiver.calls == [5, 5, 5]


def test_a_question_to_a_person_before_the_call(saver: Saver, effects: Effects, receiver: Receiver) -> None:
    def asks_first(amount: int) -> Any:
        return receiver.charge(amount) if interrupt("Charge?") else "no"

    def charge(state: State) -> State:
        effects.once("log", receiver.charge, 0)
        return {"receipts": [effects.once("charge", asks_first, state["amount"])]}

    graph = graph_of(saver, charge=charge)
    assert graph.invoke({"amount": 5}, THREAD)["__interrupt__"][0].value == "Charge?"
    assert graph.invoke(Command(resume=True), THREAD)["receipts"] == [{"receipt": 2, "amount": 5}]
    assert receiver.calls == [0, 5]


class TestAskingAPerson:
    """A call of which it is not known whether it happened interrupts the graph."""

    @pytest.fixture
    def graph(self, saver: Saver, effects: Effects, receiver: Receiver) -> Any:
        receiver.errors = [TimeoutError()]

        def charge(state: State) -> State:
            return {"receipts": [effects.once("charge", receiver.charge, state["amount"], on_unknown="ask")]}

        graph = graph_of(saver, charge=charge)
        with pytest.raises(TimeoutError):
            graph.invoke({"amount": 5}, THREAD)
        question = graph.invoke(None, THREAD)["__interrupt__"][0].value
        assert question["question"].startswith("Did this call happen?")
        assert (question["effect"], question["thread_id"], question["key"]) == ("charge", "order", receiver.keys[0])
        return graph

    def test_it_happened(self, graph: Any, receiver: Receiver) -> None:
        answer = {"state": "done", "value": {"receipt": "found"}}
        assert graph.invoke(Command(resume=answer), THREAD)["receipts"] == [{"receipt": "found"}]
        assert receiver.calls == [5]

    def test_it_did_not_happen(self, graph: Any, receiver: Receiver) -> None:
        assert graph.invoke(Command(resume="not done"), THREAD)["receipts"][0]["receipt"] == 2
        assert receiver.keys[0] == receiver.keys[1]

    def test_it_failed(self, graph: Any, receiver: Receiver) -> None:
        with pytest.raises(EffectFailedError, match="the card is blocked"):
            graph.invoke(Command(resume={"state": "failed", "error": "the card is blocked"}), THREAD)
        assert receiver.calls == [5]


def test_a_cancelled_call_is_unknown(saver: Saver, effects: Effects, receiver: Receiver) -> None:
    begun = asyncio.Event()

    async def slow(amount: int) -> None:
        receiver.charge(amount)
        begun.set()
        await asyncio.sleep(60)

    async def charge(state: State) -> State:
        return {"receipts": [await effects.aonce("charge", slow, state["amount"])]}

    async def body() -> None:
        graph = graph_of(saver, charge=charge)
        run = asyncio.create_task(graph.ainvoke({"amount": 5}, THREAD))
        await begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        with pytest.raises(EffectUnknownError):
            await graph.ainvoke(None, THREAD)
        assert [effect.state for effect in await effects.alist(THREAD)] == ["unknown"]

    asyncio.run(body())
    assert receiver.calls == [5]


def test_decorated_nodes_do_not_take_the_engines_objects_for_inputs(
    saver: Saver, effects: Effects, receiver: Receiver
) -> None:
    crash = Crash()

    @effects.effect(key=lambda state: f"order {state['amount']}")
    def charge(state: State, config: RunnableConfig) -> State:
        assert config["configurable"]["thread_id"] == "order"
        return {"receipts": [receiver.charge(state["amount"])["receipt"]]}

    def fail(_: State) -> State:
        crash()
        return {}

    @effects.effect()
    async def other(amount: int) -> int:
        return int((await receiver.acharge(amount))["receipt"])

    async def call(_: State) -> State:
        return {"receipts": [await other(6)]}

    graph = graph_of(saver, charge=charge, fail=fail, call=call)
    assert asyncio.run(acrashed(graph, {"amount": 5}))["receipts"] == [1, 2]
    assert receiver.calls == [5, 6]
    assert {effect.name.rpartition(".")[2] for effect in effects.list(THREAD)} == {"charge", "other"}


def test_a_step_of_history_has_its_effects(saver: Saver, effects: Effects, receiver: Receiver) -> None:
    def charge(state: State) -> State:
        return {"receipts": [effects.once("charge", receiver.charge, state["amount"])["receipt"]]}

    graph = graph_of(saver, first=charge, second=charge)
    graph.invoke({"amount": 5}, THREAD)
    found = {effect.node: effect for effect in effects.list(THREAD)}
    assert set(found) == {"first", "second"}
    checkpoints = {each.next: each.config["configurable"]["checkpoint_id"] for each in graph.get_state_history(THREAD)}
    assert found["second"].checkpoint_ids == [checkpoints["second",]]
    assert found["first"].step == 1
