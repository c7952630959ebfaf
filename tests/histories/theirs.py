"""LangGraph's own savers, opened as its pages say."""

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver


def opened(backend: str, address: str) -> AbstractContextManager[Any]:
    """The saver for the blocking API."""
    if backend == "memory":
        return InMemorySaver()
    return (SqliteSaver if backend == "sqlite" else PostgresSaver).from_conn_string(address)


def aopened(backend: str, address: str) -> AbstractAsyncContextManager[Any]:
    """The saver for asyncio."""
    return (AsyncSqliteSaver if backend == "sqlite" else AsyncPostgresSaver).from_conn_string(address)
