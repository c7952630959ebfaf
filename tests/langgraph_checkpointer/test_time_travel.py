"""Real graphs that go on from forks and restored checkpoints: the questions and the nodes that run again."""

from operator import add
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from threadmark import CheckpointNotFoundError, ConfigError, Saver
from threadmark_langgraph import InMemorySaver

THREAD: Any = {"configurable": {"thread_id": "thread"}}


class _State(TypedDict):
    log: Annotated[list[str], add]
    answer: str


class _Graph:
    """A graph that asks a question in one node, while another one runs; and the nodes that have run."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        builder: Any = StateGraph(_State)
        builder.add_node("plan", self._node("plan")).add_node("beside", self._node("beside"))
        builder.add_node("ask", self._ask).add_node("end", self._node("end"))
        builder.add_edge(START, "plan").add_edge("plan", "ask").add_edge("plan", "beside")
        builder.add_edge(["ask", "beside"], "end")
        self.graph = builder.compile(checkpointer=InMemorySaver())
        self.saver: Any = self.graph.checkpointer.saver

    def invoke(self, given: Any, config: Any = THREAD) -> tuple[dict[str, Any], list[str]]:
        """Return the result of a run, and the nodes that ran, in no order."""
        self.ran.clear()
        return self.graph.invoke(given, config), sorted(self.ran)

    def questions(self, config: Any = THREAD) -> list[Any]:
        return [question.value for question in self.graph.get_state(config).interrupts]

    def _node(self, name: str) -> Any:
        def run(_: _State) -> dict[str, Any]:
            self.ran.append(name)
            return {"log": [name]}

        return run

    def _ask(self, _: _State) -> dict[str, Any]:
        self.ran.append("ask")
        answer = interrupt("go on?")
        return {"log": [f"ask: {answer}"], "answer": answer}


@pytest.fixture
def graph() -> _Graph:
    """A graph that waits for an answer."""
    graph = _Graph()
    graph.invoke({"log": ["given"]})
    return graph


def test_a_fork_asks_the_open_question_again(graph: _Graph) -> None:
    made = graph.saver.fork(THREAD)
    assert graph.graph.get_state(made).next == graph.graph.get_state(THREAD).next == ("beside", "ask")
    assert graph.questions() == []
    found, ran = graph.invoke(None)
    assert (found["__interrupt__"][0].value, ran) == ("go on?", ["ask", "beside"])
    assert graph.questions() == ["go on?"]
    found, ran = graph.invoke(Command(resume="yes"))
    assert found == {"log": ["given", "plan", "ask: yes", "beside", "end"], "answer": "yes"}
    assert ran == ["ask", "end"]  # the node that had finished does not run again


def test_an_answered_question_is_answered_otherwise_after_a_restore(graph: _Graph) -> None:
    waiting = graph.graph.get_state(THREAD).config
    first, _ = graph.invoke(Command(resume="yes"))
    assert first["answer"] == "yes"
    restored = graph.saver.restore(waiting)
    assert graph.graph.get_state(THREAD).config == restored
    assert graph.graph.get_state(THREAD).values == graph.graph.get_state(waiting).values
    second, ran = graph.invoke(Command(resume="no"))  # before it is asked: LangGraph keeps the answer for the question
    assert second == {"log": ["given", "plan", "ask: no", "beside", "end"], "answer": "no"}
    assert ran == ["ask", "beside", "end"]
    heads = [branch.head for branch in graph.saver.tree("thread").branches]
    ends = [graph.graph.get_state({"configurable": {"thread_id": "thread", "checkpoint_id": each}}) for each in heads]
    assert [end.values["answer"] for end in ends] == ["no", "yes"]


def test_restoring_the_newest_leaves_the_question_open(graph: _Graph) -> None:
    waiting = graph.graph.get_state(THREAD).config
    assert graph.saver.restore(THREAD) == graph.saver.restore(waiting) == waiting
    assert graph.questions() == ["go on?"]
    assert graph.invoke(Command(resume="yes"))[1] == ["ask", "end"]


def test_the_waiting_head_of_an_old_branch_repeats_nothing_in_a_thread_of_its_own(graph: _Graph) -> None:
    waiting = graph.graph.get_state(THREAD).config
    graph.saver.fork(list(graph.graph.get_state_history(THREAD))[1].config)
    graph.saver.fork(waiting, as_thread="other")
    found, ran = graph.invoke(Command(resume="yes"), {"configurable": {"thread_id": "other"}})
    assert (found["answer"], ran) == ("yes", ["ask", "end"])
    found, ran = graph.invoke(Command(resume="yes"), waiting)  # LangGraph runs the step again, as in a fork
    assert (found["answer"], ran) == ("yes", ["ask", "beside", "end"])


def test_new_values_are_in_the_fork_and_nowhere_else(graph: _Graph) -> None:
    waiting = graph.graph.get_state(graph.graph.get_state(THREAD).config)
    made = graph.saver.fork(waiting.config, {"log": ["other"]})
    assert graph.graph.get_state(made).values == {"log": ["other"]}
    assert graph.graph.get_state(waiting.config).values == waiting.values
    graph.invoke(None, made)
    assert graph.invoke(Command(resume="yes"))[0]["log"] == ["other", "ask: yes", "beside", "end"]
    made = graph.saver.fork(waiting.config, {"answer": "the newest has this channel"})
    assert graph.graph.get_state(made).values == {**waiting.values, "answer": "the newest has this channel"}
    (entry,) = graph.saver.history("thread", limit=1).entries
    assert (entry.changed, entry.source, entry.nodes, entry.step) == (
        ["answer"],
        "fork",
        [],
        waiting.metadata["step"] + 1,
    )
    with pytest.raises(ConfigError, match=r"has no channel 'anwser'.*'answer'.*update_state"):
        graph.saver.fork(waiting.config, {"anwser": "misspelt"})


def test_a_thread_that_begins_at_a_waiting_checkpoint_waits_as_well(graph: _Graph) -> None:
    waiting = graph.graph.get_state(THREAD).config
    fork = graph.saver.fork(waiting)
    graph.saver.fork(waiting, as_thread="beside a fork")
    assert graph.questions({"configurable": {"thread_id": "beside a fork"}}) == ["go on?"]
    graph.saver.delete_checkpoint(fork)
    made = graph.saver.fork(THREAD, as_thread="other")
    other: Any = {"configurable": {"thread_id": "other"}}
    assert graph.graph.get_state(made).values == {"log": ["given", "plan"]}
    assert graph.questions(other) == ["go on?"]
    found, ran = graph.invoke(Command(resume="in the other"), other)
    assert (found["answer"], ran) == ("in the other", ["ask", "end"])
    assert graph.questions() == ["go on?"]
    assert graph.invoke(Command(resume="here"))[0]["answer"] == "here"
    assert len(graph.saver.history("other").entries) == len(graph.saver.history("thread").entries)


def test_a_thread_that_begins_at_an_old_checkpoint_runs_the_step_anew(graph: _Graph) -> None:
    waiting = graph.graph.get_state(THREAD).config
    graph.invoke(Command(resume="yes"))
    other: Any = {"configurable": {"thread_id": "other"}}
    graph.saver.fork(waiting, {"log": []}, as_thread="other")
    found, ran = graph.invoke(None, other)
    assert (found["log"], found["__interrupt__"][0].value, ran) == (["beside"], "go on?", ["ask", "beside"])
    assert graph.invoke(Command(resume="no"), other)[0]["log"] == ["ask: no", "beside", "end"]
    assert graph.graph.get_state(THREAD).values["answer"] == "yes"


def _calls() -> Any:
    """A graph that sends packets, calls a subgraph with a memory, and one that asks a question after its first node."""

    def said(text: str) -> Any:
        return lambda _: {"log": [text]}

    asking: Any = StateGraph(_State)
    asking.add_node("first", said("first")).add_node("ask", lambda _: {"log": [interrupt("go on?")]})
    asking.add_edge(START, "first").add_edge("first", "ask")
    memory: Any = StateGraph(_State)
    memory.add_node("count", lambda state: {"log": [f"turn {len(state['log'])}"]}).add_edge(START, "count")
    remembering = memory.compile(checkpointer=True)
    builder: Any = StateGraph(_State)
    builder.add_node("fan", said("fan")).add_node("asking", asking.compile())
    builder.add_node("remember", lambda _: {"log": [str(len(remembering.invoke({"log": ["x"]})["log"]))]})
    builder.add_conditional_edges(START, lambda _: [Send("fan", {}), Send("fan", {})], ["fan"])
    builder.add_edge("fan", "remember").add_edge("remember", "asking")
    return builder.compile(checkpointer=InMemorySaver())


def test_subgraphs_go_on_in_a_thread_of_its_own() -> None:
    graph = _calls()
    saver: Saver = graph.checkpointer.saver
    for number in range(2):
        graph.invoke({"log": [f"given {number}"]}, THREAD)
        if number == 0:
            graph.invoke(Command(resume="first answer"), THREAD)
    saver.fork(THREAD, as_thread="other")
    other: Any = {"configurable": {"thread_id": "other"}}
    ends = [graph.invoke(Command(resume="second answer"), config)["log"] for config in (other, THREAD)]
    assert ends[0] == ends[1]
    again = [graph.invoke({"log": ["given 2"]}, config)["log"] for config in (other, THREAD)]
    assert again[0] == again[1]  # the memory of the subgraph is the same
    assert saver.verify(decode=True).problems == []


@pytest.mark.parametrize("nodes", [("fan",), ("remember",)])
def test_packets_are_sent_again_by_a_fork(nodes: tuple[str, ...]) -> None:
    graph = _calls()
    graph.invoke({"log": ["given"]}, THREAD)
    states = list(graph.get_state_history(THREAD))
    found = next(state for state in states if set(state.next) == set(nodes))
    before = graph.get_state(found.config)
    made = graph.checkpointer.fork(found.config)
    assert graph.get_state(made).next == before.next
    log = graph.invoke(None, made)["log"]
    assert log.count("fan") >= 2
    assert log[0] == "given"


def test_there_must_be_a_checkpoint() -> None:
    saver = InMemorySaver().saver
    with pytest.raises(CheckpointNotFoundError, match="thread 'thread', namespace '': there is no checkpoint"):
        saver.fork(THREAD)
    with pytest.raises(CheckpointNotFoundError, match="checkpoint 'x'"):
        saver.restore({"configurable": {"thread_id": "thread", "checkpoint_id": "x"}})


def test_a_fan_out_is_named_by_its_node_in_every_turn() -> None:
    builder: Any = StateGraph(_State)
    builder.add_node("plan", lambda _: {}).add_node("work", lambda _: {"log": ["done"]}).add_edge(START, "plan")
    builder.add_conditional_edges("plan", lambda _: [Send("work", {}) for _ in range(3)], ["work"])
    graph = builder.compile(checkpointer=InMemorySaver())
    for turn in range(3):
        graph.invoke({"answer": str(turn)}, THREAD)
    entries = graph.checkpointer.saver.history("thread").entries
    assert [list(each.nodes) for each in entries] == 3 * [["work"], ["plan"], [], []]
