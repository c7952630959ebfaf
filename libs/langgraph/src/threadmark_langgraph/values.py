"""The values that LangGraph and LangChain put into checkpoints, made known to the serializer.

Most of them are dataclasses, named tuples and models, which it stores anyway; registering them here allows
them under every policy, and importing them here lets a program that only looks at checkpoints load them.
"""

from typing import Any, TypeVar

from langchain_core import messages
from langchain_core.documents import Document
from langgraph import types
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.errors import GraphInterrupt
from langgraph.store.base import Item
from langgraph.types import Send

from threadmark.serde import Registry
from threadmark.serde.registry import DEFAULT

T = TypeVar("T")

_MESSAGES = (
    messages.AIMessage,
    messages.AIMessageChunk,
    messages.ChatMessage,
    messages.ChatMessageChunk,
    messages.FunctionMessage,
    messages.FunctionMessageChunk,
    messages.HumanMessage,
    messages.HumanMessageChunk,
    messages.RemoveMessage,
    messages.SystemMessage,
    messages.SystemMessageChunk,
    messages.ToolMessage,
    messages.ToolMessageChunk,
)
# Names that some releases of LangGraph do not have.
_TYPES = ("Command", "Interrupt", "Overwrite", "PregelTask", "StateSnapshot", "StateUpdate", "TimeoutPolicy")


def register_values(registry: Registry = DEFAULT) -> None:
    """Register LangGraph's and LangChain's values. May be called again."""
    known = [getattr(types, name) for name in _TYPES if hasattr(types, name)]
    for cls in (*_MESSAGES, Document, GraphInterrupt, _DeltaSnapshot, *known):
        registry.register(cls)
    registry.register(Send, encode=_slots, decode=_send)
    registry.register(Item, encode=_slots, decode=_item)


def _slots(value: Send | Item) -> dict[str, Any]:
    return {name: getattr(value, name) for name in type(value).__slots__ if hasattr(value, name)}


def _send(state: dict[str, Any]) -> Send:
    return _with_attributes(Send.__new__(Send), state)


def _item(state: dict[str, Any]) -> Item:
    return _with_attributes(Item.__new__(Item), state)


def _with_attributes(value: T, state: dict[str, Any]) -> T:
    """The value as it was: their `__init__` would normalize what has been normalized before."""
    for name, item in state.items():
        setattr(value, name, item)
    return value
