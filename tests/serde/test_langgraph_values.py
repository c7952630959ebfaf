"""The values that LangGraph stores come back the same, under every policy once they are registered."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.errors import GraphInterrupt
from langgraph.store.base import Item, SearchItem
from langgraph.types import Command, Interrupt, Overwrite, Send, TimeoutPolicy

from serde.sameness import same
from threadmark.serde import Registry, Serde
from threadmark_langgraph import register_values

VALUES: dict[str, Callable[[], Any]] = {
    "Send": lambda: Send("node", {"a": (1,)}),
    "Send with timeout": lambda: Send("node", [1], timeout=TimeoutPolicy(run_timeout=1.5)),
    "Command": lambda: Command(goto=[Send("n", 1), "m"], update={"a": {1}}, resume=1, graph=Command.PARENT),
    "Interrupt": lambda: Interrupt(value={"q": (1,)}, id="abc"),
    "Overwrite": lambda: Overwrite([1]),
    "delta snapshot": lambda: _DeltaSnapshot([HumanMessage("a")]),
    "GraphInterrupt": lambda: GraphInterrupt([Interrupt(1, id="x")]),
    "Item": lambda: Item(
        value={"a": 1},
        key="k",
        namespace=("n",),
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
        updated_at=datetime(2026, 1, 2, tzinfo=UTC),
    ),
    "SearchItem": lambda: SearchItem(
        namespace=("n",),
        key="k",
        value={"a": (1,)},
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
        updated_at=datetime(2026, 1, 2, tzinfo=UTC),
        score=0.5,
    ),
}


@pytest.fixture(params=["default policy", "nothing else allowed"])
def serde(request: pytest.FixtureRequest) -> Serde:
    registry = Registry()
    register_values(registry)
    register_values(registry)
    return Serde(registry=registry, allow=None if request.param == "default policy" else [])


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_comes_back_the_same(kind: str, serde: Serde) -> None:
    value = {"channel": [VALUES[kind](), VALUES[kind]()]}
    loaded = serde.loads_typed(serde.dumps_typed(value))
    assert same(value, loaded)


def test_a_sends_arguments_may_be_any_value(serde: Serde) -> None:
    sent = Send("node", {("a", 1): {HumanMessage("x").content}})
    loaded = serde.loads_typed(serde.dumps_typed(sent))
    assert (loaded.node, loaded.arg, loaded.timeout) == (sent.node, sent.arg, None)
