"""Threadmark as LangGraph's checkpointer: import a saver from here in place of LangGraph's, or `wrap` your own."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from threadmark_langgraph.checkpointer import Checkpointer, wrap
from threadmark_langgraph.postgres import (
    AsyncPostgresSaver,
    AsyncShallowPostgresSaver,
    PostgresSaver,
    ShallowPostgresSaver,
)
from threadmark_langgraph.redis import AsyncRedisSaver, RedisSaver
from threadmark_langgraph.savers import AsyncSqliteSaver, InMemorySaver, MemorySaver, SqliteSaver
from threadmark_langgraph.unmoved import UnmovedThreadsError, UnmovedThreadsWarning
from threadmark_langgraph.values import register_values

if TYPE_CHECKING:
    from threadmark_langgraph.moving import Changed, Moved, NotMoved, export, migrate

__all__ = [
    "AsyncPostgresSaver",
    "AsyncRedisSaver",
    "AsyncShallowPostgresSaver",
    "AsyncSqliteSaver",
    "Changed",
    "Checkpointer",
    "InMemorySaver",
    "MemorySaver",
    "Moved",
    "NotMoved",
    "PostgresSaver",
    "RedisSaver",
    "ShallowPostgresSaver",
    "SqliteSaver",
    "UnmovedThreadsError",
    "UnmovedThreadsWarning",
    "export",
    "migrate",
    "register_values",
    "wrap",
]


def __dir__() -> list[str]:
    """Return the public names, including those that are imported only when you use them."""
    return __all__


def __getattr__(name: str) -> Any:
    """Import `migrate` and `export` when you use them: they read tables and events of LangGraph that may change."""
    if name in ("Changed", "Moved", "NotMoved", "export", "migrate"):
        return getattr(import_module("threadmark_langgraph.moving"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
