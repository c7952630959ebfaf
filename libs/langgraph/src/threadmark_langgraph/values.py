"""The value types of LangGraph and LangChain, registered with the serializer.

Most of them are dataclasses, named tuples and models, which the serializer stores anyway. Registering them allows them
under every policy, and importing them lets a program that only looks at checkpoints load them.

They are imported when the first checkpointer is made. Types that your release of LangGraph does not have are skipped,
so nothing here can keep a program from being imported.
"""

from collections.abc import Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any

from threadmark.serde import Registry
from threadmark.serde.registry import DEFAULT

CLASSES: Mapping[str, tuple[str, ...]] = {
    "langchain_core.messages": (
        "AIMessage",
        "AIMessageChunk",
        "ChatMessage",
        "ChatMessageChunk",
        "FunctionMessage",
        "FunctionMessageChunk",
        "HumanMessage",
        "HumanMessageChunk",
        "RemoveMessage",
        "SystemMessage",
        "SystemMessageChunk",
        "ToolMessage",
        "ToolMessageChunk",
    ),
    "langchain_core.documents": ("Document",),
    "langgraph.checkpoint.serde.types": ("_DeltaSnapshot",),
    "langgraph.errors": ("GraphInterrupt",),
    "langgraph.types": (
        "Command",
        "Interrupt",
        "Overwrite",
        "PregelTask",
        "StateSnapshot",
        "StateUpdate",
        "TimeoutPolicy",
    ),
}
"""Classes that a family of the serializer stores, by their module."""

SLOTTED: Mapping[str, tuple[str, ...]] = {
    "langgraph.store.base": ("Item", "SearchItem"),
    "langgraph.types": ("Send",),
}
"""Classes of plain slots, which are stored here."""


def register_values(registry: Registry = DEFAULT) -> None:
    """Register the value types of LangGraph and LangChain. You may call it again.

    Making a checkpointer registers them for all serializers that share the default registry. Call this first if your
    program reads checkpoints with a `threadmark.Saver` alone.
    """
    for cls in _existing(CLASSES):
        registry.register(cls)
    for cls in _existing(SLOTTED):
        registry.register(cls, encode=_slots, decode=partial(_with_slots, cls))


@cache
def register_values_once() -> None:
    """Like `register_values`, in the default registry. Only the first call has an effect."""
    register_values()


def _existing(names: Mapping[str, tuple[str, ...]]) -> Iterator[type[Any]]:
    for module, classes in names.items():
        try:
            there = import_module(module)
        except ImportError:
            continue
        yield from (cls for name in classes if isinstance(cls := getattr(there, name, None), type))


def _slots(value: Any) -> dict[str, Any]:
    names = [name for owner in reversed(type(value).__mro__) for name in vars(owner).get("__slots__", ())]
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _with_slots(cls: type[Any], state: dict[str, Any]) -> Any:
    """Return the value as it was, without calling `__init__`, which would normalize it a second time."""
    value = object.__new__(cls)
    for name, item in state.items():
        setattr(value, name, item)
    return value
