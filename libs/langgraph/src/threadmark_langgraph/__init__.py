"""Threadmark as LangGraph's checkpointer: import a saver from here instead, or `wrap` one."""

from threadmark_langgraph.checkpointer import Checkpointer, wrap
from threadmark_langgraph.moving import Moved, NotMoved, export, migrate
from threadmark_langgraph.postgres import AsyncPostgresSaver, PostgresSaver
from threadmark_langgraph.savers import AsyncSqliteSaver, InMemorySaver, MemorySaver, SqliteSaver
from threadmark_langgraph.values import register_values

register_values()

__all__ = [
    "AsyncPostgresSaver",
    "AsyncSqliteSaver",
    "Checkpointer",
    "InMemorySaver",
    "MemorySaver",
    "Moved",
    "NotMoved",
    "PostgresSaver",
    "SqliteSaver",
    "export",
    "migrate",
    "register_values",
    "wrap",
]
