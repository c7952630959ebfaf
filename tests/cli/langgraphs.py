"""Databases that LangGraph's own savers have filled, and rows in them that are not to be trusted."""

import hashlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from operator import add
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

import msgpack
import psycopg
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt

from postgres.cluster import shared


class State(TypedDict, total=False):
    """Objects, a builtin kind, a number that decides about the next node, a list."""

    messages: Annotated[list[AnyMessage], add_messages]
    when: datetime
    count: int
    log: Annotated[list[str], add]


def _talk(state: State) -> State:
    count = state.get("count", 0)
    return {"messages": [AIMessage(f"answer {count}")], "count": count + 1, "when": datetime(2026, 1, 2, 3, 4)}  # noqa: DTZ001


def _check(state: State) -> State:
    if state["count"] == 2:
        interrupt("Really?")
    if state["count"] == 3:
        raise ValueError("the third time")
    return {"log": ["checked"]}


def _inner(state: State) -> State:  # noqa: ARG001 - a node's signature
    return {"log": ["inner"]}


def graph(saver: BaseCheckpointSaver[Any]) -> Any:
    """A graph with a subgraph that has its own namespace."""
    inner = StateGraph(State).add_node("inner", _inner).add_edge(START, "inner").compile(checkpointer=True)
    outer = StateGraph(State).add_node("talk", _talk).add_node("sub", inner).add_node("check", _check)
    outer.add_edge(START, "talk").add_edge("talk", "sub").add_edge("sub", "check").add_edge("check", END)
    return outer.compile(checkpointer=saver)


def config(thread_id: str) -> Any:
    """The configuration that names a thread."""
    return {"configurable": {"thread_id": thread_id}}


def say(app: Any, thread_id: str, text: str) -> None:
    """A turn of a conversation."""
    app.invoke({"messages": [HumanMessage(text)]}, config(thread_id))


class Place(NamedTuple):
    """A database that LangGraph's saver filled."""

    url: str
    open: Callable[[], Any]
    """Opens LangGraph's saver on it."""
    content: Callable[[], Any]
    """Everything that is there, to be compared."""
    replace: Callable[[str, str, bytes], None]
    """Puts another kind and other bytes into every value of a thread."""
    copy: Callable[[Path], "Place"]
    """Makes a copy of it, in a folder or named by one."""


def sqlite_place(folder: Path) -> Place:
    """A file in this folder. Its content is its bytes, and the names of the files next to it."""
    path = folder / "old.db"

    def replace(thread_id: str, kind: str, data: bytes) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE writes SET type = ?, value = ? WHERE thread_id = ?", (kind, data, thread_id))
            connection.execute(
                "UPDATE checkpoints SET type = ?, checkpoint = ? WHERE thread_id = ?", (kind, data, thread_id)
            )

    def content() -> Any:
        return hashlib.sha256(path.read_bytes()).hexdigest(), sorted(each.name for each in folder.iterdir())

    def copy(folder: Path) -> Place:
        shutil.copy(path, folder)
        return sqlite_place(folder)

    return Place(str(path), lambda: SqliteSaver.from_conn_string(str(path)), content, replace, copy)


def postgres_place(folder: Path) -> Place:
    """A new database, named by the folder. Its content is every row of every table, and the list of tables."""
    return _postgres_place(shared().database(_name_of(folder)))


def _postgres_place(url: str) -> Place:
    def replace(thread_id: str, kind: str, data: bytes) -> None:
        with psycopg.connect(url) as connection:
            for table in (b"checkpoint_writes", b"checkpoint_blobs"):
                connection.execute(
                    b"UPDATE " + table + b" SET type = %s, blob = %s WHERE thread_id = %s", (kind, data, thread_id)
                )

    def content() -> Any:
        with psycopg.connect(url) as connection:
            tables = connection.execute("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
            return sorted(tables.fetchall()), [
                sorted(map(repr, connection.execute(b"SELECT * FROM " + table).fetchall()))
                for table in (b"checkpoints", b"checkpoint_blobs", b"checkpoint_writes")
            ]

    @contextmanager
    def opened() -> Iterator[Any]:
        with PostgresSaver.from_conn_string(url) as saver:
            saver.setup()
            yield saver

    def copy(folder: Path) -> Place:
        name = _name_of(folder)
        shared().execute(f'CREATE DATABASE "{name}" TEMPLATE "{url.rpartition("/")[2]}"')
        return _postgres_place(f"{url.rpartition('/')[0]}/{name}")

    return Place(url, opened, content, replace, copy)


def _name_of(folder: Path) -> str:
    return "foreign" + hashlib.sha256(str(folder).encode()).hexdigest()[:16]


PLACES = [sqlite_place, postgres_place]


def extension(code: int, content: Any) -> bytes:
    """The bytes that LangGraph's serializer stores of an object, as an attacker would write it."""
    return msgpack.packb(msgpack.ExtType(code, msgpack.packb(content)))  # type: ignore[no-any-return]
