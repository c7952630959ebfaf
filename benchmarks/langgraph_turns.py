"""End to end through LangGraph: the same runs on its savers and on ours, in one process, in alternation.

    python benchmarks/langgraph_turns.py [postgresql://... for the Postgres rows]

`chat` adds a question and an answer of random text (a base64 of random bytes, so it compresses to three quarters at
most) in each turn. `fan-out` sends 16 packets in each turn. Times are the best of the rounds; bytes are those of
SQLite's files, and on Postgres what the database has grown by since the tables were made, which takes 300 KB on
either side.
"""

import argparse
import asyncio
import base64
import contextlib
import operator
import random
import secrets
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

import aiosqlite
import psycopg
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver as TheirPostgres
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver as TheirAsyncPostgres
from langgraph.checkpoint.sqlite import SqliteSaver as TheirSqlite
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver as TheirAsyncSqlite
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send

from threadmark_langgraph import AsyncPostgresSaver, AsyncSqliteSaver, PostgresSaver, SqliteSaver

WIDTH = 16
PROMPT_WORDS = ("you", "are", "given", "one", "item", "of", "a", "plan", "say", "what", "it", "needs", "and", "why")


class Chat(TypedDict):
    """The state of the chat."""

    messages: Annotated[list[AnyMessage], add_messages]


class Fan(TypedDict):
    """The state of the fan-out."""

    results: Annotated[list[str], operator.add]
    turn: int


class Workload(NamedTuple):
    """A graph, its turns, and the input of each."""

    name: str
    graph: Callable[[BaseCheckpointSaver[Any]], Any]
    turns: int
    value: Callable[[int, random.Random], dict[str, Any]]


class Measured(NamedTuple):
    """One run."""

    seconds: float
    bytes: int


def text(chance: random.Random, size: int) -> str:
    """Text that cannot be squeezed below three quarters."""
    return base64.b64encode(chance.randbytes(size * 3 // 4)).decode()


def chat_graph(saver: BaseCheckpointSaver[Any]) -> Any:
    """A chat whose answer is as long as the question."""

    def answer(state: Chat) -> dict[str, Any]:
        return {"messages": [AIMessage(str(state["messages"][-1].content)[::-1])]}

    return StateGraph(Chat).add_node("answer", answer).add_edge(START, "answer").compile(checkpointer=saver)


def fan_graph(prompt: str, saver: BaseCheckpointSaver[Any]) -> Any:
    """A plan and its items."""

    def packets(state: Fan) -> list[Send]:
        return [Send("item", {"prompt": prompt, "turn": state["turn"], "number": number}) for number in range(WIDTH)]

    def item(packet: dict[str, Any]) -> dict[str, Any]:
        return {"results": [text(random.Random(packet["turn"] * WIDTH + packet["number"]), 80)]}

    builder: Any = StateGraph(Fan).add_node("plan", lambda state: {"turn": state["turn"]})
    builder.add_node("item", item)
    builder.add_edge(START, "plan").add_conditional_edges("plan", packets, ["item"])
    return builder.compile(checkpointer=saver)


def workloads(scale: float) -> list[Workload]:
    """The graphs, with so many turns."""

    def question(_: int, chance: random.Random) -> dict[str, Any]:
        return {"messages": [HumanMessage(text(chance, 500))]}

    def plan(turn: int, _: random.Random) -> dict[str, Any]:
        return {"results": [], "turn": turn}

    prompt = " ".join(random.Random("prompt").choices(PROMPT_WORDS, k=20_000))[:20_000]
    turns = round(50 * scale)
    return [
        Workload("chat", chat_graph, round(200 * scale), question),
        Workload("fan-out", partial(fan_graph, prompt), turns, plan),
        Workload("slim", partial(fan_graph, ""), turns, plan),
    ]


async def run(workload: Workload, saver: BaseCheckpointSaver[Any], *, blocking: bool) -> float:
    """All turns of one thread; the seconds they took."""
    graph, chance = workload.graph(saver), random.Random(1)
    thread: Any = {"configurable": {"thread_id": secrets.token_hex(4)}}
    began = time.perf_counter()
    for turn in range(workload.turns):
        value = workload.value(turn, chance)
        if blocking:
            graph.invoke(value, thread)
        else:
            await graph.ainvoke(value, thread)
    return time.perf_counter() - began


@contextlib.asynccontextmanager
async def sqlite_saver(name: str, file: Path, *, blocking: bool) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """A saver on a new file; both sides use a write-ahead log and wait for the disk."""
    if name == "ours":
        async with (SqliteSaver if blocking else AsyncSqliteSaver)(file) as saver:
            yield saver
    elif blocking:
        with contextlib.closing(sqlite3.connect(file, check_same_thread=False)) as connection:
            connection.execute("PRAGMA synchronous=FULL")
            yield TheirSqlite(connection)
    else:
        async with aiosqlite.connect(file) as asynchronous:
            await asynchronous.execute("PRAGMA synchronous=FULL")
            yield TheirAsyncSqlite(asynchronous)


@contextlib.asynccontextmanager
async def postgres_saver(name: str, url: str, *, blocking: bool) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """A saver on a new database."""
    manager: Any
    if blocking:
        with (PostgresSaver if name == "ours" else TheirPostgres).from_conn_string(url) as saver:
            saver.setup()
            yield saver
    else:
        manager = AsyncPostgresSaver if name == "ours" else TheirAsyncPostgres
        async with manager.from_conn_string(url) as asynchronous:
            await asynchronous.setup()
            yield asynchronous


async def on_sqlite(workload: Workload, name: str, *, blocking: bool) -> Measured:
    """One run on a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        async with sqlite_saver(name, Path(folder) / "turns.db", blocking=blocking) as saver:
            seconds = await run(workload, saver, blocking=blocking)
        return Measured(seconds, stored(Path(folder)))


def stored(folder: Path) -> int:
    """The bytes of all files."""
    return sum(file.stat().st_size for file in folder.iterdir())


async def on_postgres(workload: Workload, name: str, *, server: str, blocking: bool) -> Measured:
    """One run on a database of its own."""
    database = f"turns_{secrets.token_hex(4)}"
    url = f"{server.rpartition('/')[0]}/{database}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{database}"')
        async with postgres_saver(name, url, blocking=blocking) as saver:
            empty = _size(admin, database)
            seconds = await run(workload, saver, blocking=blocking)
        grown = _size(admin, database) - empty
        admin.execute(f'DROP DATABASE "{database}" WITH (FORCE)')
    return Measured(seconds, grown)


def _size(admin: psycopg.Connection[Any], database: str) -> int:
    row = admin.execute("SELECT pg_database_size(%s)", (database,)).fetchone()
    return int(row[0]) if row else 0


def compare(where: str, workload: Workload, once: Callable[..., Any], rounds: int) -> None:
    """Both savers in alternation, on each API; one line of the report each."""
    for blocking in (True, False):
        found: dict[str, list[Measured]] = {"theirs": [], "ours": []}
        for _ in range(rounds):
            for name, runs in found.items():
                runs.append(asyncio.run(once(workload, name, blocking=blocking)))
        theirs, ours = (Measured(min(run.seconds for run in runs), runs[0].bytes) for runs in found.values())
        api = "sync" if blocking else "async"
        print(
            f"{workload.name:8} {workload.turns:4} turns  {where:9} {api:6}"
            f" time {theirs.seconds:6.2f} s / {ours.seconds:6.2f} s = {theirs.seconds / ours.seconds:4.2f}"
            f"   bytes {theirs.bytes:>12,} / {ours.bytes:>10,} = {theirs.bytes / ours.bytes:5.1f}"
        )


def main() -> None:
    """Measure and print, theirs / ours = how many times better."""
    parser = argparse.ArgumentParser(description="LangGraph runs on its savers and on ours")
    parser.add_argument("postgres", nargs="?", help="a Postgres URL, whose user may create databases")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of turns")
    asked = parser.parse_args()
    for workload in workloads(asked.scale):
        compare("SQLite", workload, on_sqlite, asked.rounds)
        if asked.postgres:

            async def once(workload: Workload, name: str, *, blocking: bool) -> Measured:
                return await on_postgres(workload, name, server=asked.postgres, blocking=blocking)

            compare("Postgres", workload, once, asked.rounds)


if __name__ == "__main__":
    main()
