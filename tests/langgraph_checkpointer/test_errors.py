"""The snapshot of a failed task has its error: as raised if it can be stored, otherwise as LangGraph describes it."""

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver as TheirMemory
from langgraph.checkpoint.serde.types import ERROR
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import ValidationError

from langgraph_parity.states import Order
from threadmark import MemorySaver, Serde, SerializationError
from threadmark_langgraph import InMemorySaver, SqliteSaver, wrap

THREAD: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}


class ApiError(Exception):
    """As clients of services have it: with the response it came from."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.response = object()


class Pickling:
    """A serializer with its own error for values that it cannot store."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "pickle", pickle.dumps(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return pickle.loads(data[1])  # noqa: S301 - this test stored it


def invalid() -> Exception:
    """The error that pydantic raises."""
    with pytest.raises(ValidationError) as raised:
        Order.model_validate({})
    return raised.value


def caused(error: Exception, cause: Exception) -> Exception:
    """The error as if it had been raised from the cause."""
    error.__cause__ = cause
    return error


def local() -> Exception:
    """An error whose class cannot be found again."""

    class LocalError(Exception):
        pass

    return LocalError("inside")


ERRORS = [
    invalid(),
    caused(ValueError("no order"), invalid()),
    ApiError("too many requests"),
    ExceptionGroup("several", [ValueError("a"), ApiError("b")]),
]


def kept(saver: BaseCheckpointSaver[Any], error: Any) -> Any:
    """The pending writes of a task that this error ended, whichever API stored it."""
    location = saver.put(THREAD, empty_checkpoint(), {}, {})
    writes = [("x", 1), (ERROR, error), ("y", (2,))]
    saver.put_writes(location, writes, "blocking")
    asyncio.run(saver.aput_writes(location, writes, "asyncio"))
    found = saver.get_tuple(location)
    assert found is not None
    pending = {(task, channel): value for task, channel, value in found.pending_writes or ()}
    assert {pending[task, "x"] for task in ("blocking", "asyncio")} == {1}
    assert type(pending["blocking", ERROR]) is type(pending["asyncio", ERROR])
    return pending["blocking", ERROR]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_that_cannot_be_stored_is_kept_as_langgraph_keeps_it(error: Exception) -> None:
    with wrap(MemorySaver()) as saver:
        assert kept(saver, error) == kept(TheirMemory(), error) == repr(error)


def test_an_error_of_a_class_that_is_found_nowhere_is_kept_as_langgraph_keeps_it_in_a_file(tmp_path: Path) -> None:
    assert kept(TheirMemory(), local()) == "LocalError('inside')"
    with SqliteSaver(tmp_path / "errors.db") as saver:
        assert kept(saver, local()) == "LocalError('inside')"
    with wrap(MemorySaver()) as saver:
        assert str(kept(saver, local())) == "inside"  # this process has the class


def test_an_error_that_is_kept_as_its_text_is_logged_by_its_class(caplog: pytest.LogCaptureFixture) -> None:
    with wrap(MemorySaver()) as saver, caplog.at_level("DEBUG", "threadmark.langgraph"):
        kept(saver, ValueError("stored as it is"))
        assert caplog.messages == []
        kept(saver, ApiError("too many requests"))
    assert "cannot be stored as it is (ApiError)" in caplog.messages[0]
    assert "too many" not in caplog.text


def test_an_error_that_can_be_stored_is_kept_as_it_is() -> None:
    with wrap(MemorySaver()) as saver:
        found = kept(saver, caused(ValueError("a", 1), KeyError("k")))
    assert (type(found), found.args, found.__cause__.args) == (ValueError, ("a", 1), ("k",))


def test_an_error_that_the_policy_forbids_is_kept_as_its_text() -> None:
    with wrap(MemorySaver(serde=Serde(allow=[]))) as saver:
        assert kept(saver, ApiError("a")) == "ApiError('a')"


def test_an_error_that_another_serializer_refuses_is_kept_as_its_text() -> None:
    with wrap(MemorySaver()) as saver:
        saver.serde = Pickling()
        assert type(kept(saver, ValueError("a"))) is ValueError
        assert kept(saver, local()) == "LocalError('inside')"


@pytest.mark.parametrize("failure", [ValueError("of the repr"), RecursionError()])
def test_an_error_that_cannot_even_be_shown_is_kept_as_its_class(failure: Exception) -> None:
    class BrokenError(ApiError):
        def __repr__(self) -> str:
            raise failure

    broken = BrokenError("a")
    with wrap(MemorySaver()) as saver:
        assert "BrokenError" in kept(saver, broken)
        assert "ExceptionGroup" in kept(saver, ExceptionGroup("several", [broken]))


def test_only_a_tasks_error_becomes_text() -> None:
    """A value of the user's that cannot be stored is an error, an exception among them."""
    with wrap(MemorySaver()) as saver:
        location = saver.put(THREAD, empty_checkpoint(), {}, {})
        for writes in [("x", ApiError("a"))], [(ERROR, object())], [(ERROR, ApiError("a")), ("x", object())]:
            with pytest.raises(SerializationError):
                saver.put_writes(location, writes, "task")


class Refusing:
    """A user's serializer with its own error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if obj == "refused":
            raise self.error
        return Pickling().dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:  # noqa: ARG002 - the serializer's signature
        raise self.error


@pytest.mark.parametrize("error", [ValueError("mine"), LookupError("mine")], ids=repr)
def test_what_a_serializer_raises_is_the_cause_of_ours(error: Exception) -> None:
    """LangGraph's savers let it through; docs/how-to/switching.md describes the difference."""

    def use(saver: BaseCheckpointSaver[Any]) -> list[BaseException]:
        raised = []
        made: Any = {**empty_checkpoint(), "channel_values": {"x": "refused"}, "channel_versions": {"x": "1"}}
        kept: Any = {**made, "channel_values": {"x": "kept"}}
        with pytest.raises(Exception, match="mine") as caught:
            saver.put(THREAD, made, {}, {"x": "1"})
        raised.append(caught.value)
        location = saver.put(THREAD, kept, {}, {"x": "1"})
        with pytest.raises(Exception, match="mine") as caught:
            saver.put_writes(location, [("x", "refused")], "task")
        raised.append(caught.value)
        with pytest.raises(Exception, match="mine") as caught:
            saver.get_tuple(location)
        return [*raised, caught.value]

    assert use(TheirMemory(serde=Refusing(error))) == [error] * 3
    ours = use(InMemorySaver(serde=Refusing(error)))
    assert [type(each) for each in ours] == [SerializationError] * 3
    assert [each.__cause__ for each in ours] == [error] * 3


def test_two_reads_of_a_tasks_error_are_two_exceptions() -> None:
    """Which are never equal; LangGraph's savers keep the text. docs/how-to/switching.md names the way out."""

    def fail(state: MessagesState) -> None:  # noqa: ARG001 - the engine's name for it
        raise ValueError("no order", 1)

    builder = StateGraph(MessagesState).add_node("fail", fail).add_edge(START, "fail")
    errors: dict[type[Any], list[Any]] = {}
    for saver in (InMemorySaver(), TheirMemory()):
        graph = builder.compile(checkpointer=saver)
        with pytest.raises(ValueError, match="no order"):
            graph.invoke({"messages": []}, THREAD)
        errors[type(saver)] = [graph.get_state(THREAD).tasks[0].error for _ in range(2)]
    one, other = errors[InMemorySaver]
    assert one != other
    assert [repr(one), repr(other)] == errors[TheirMemory]
