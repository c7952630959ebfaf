"""Crash rounds: LangGraph runs killed with SIGKILL at random moments, resumed, and compared with an undisturbed one.

    python benchmarks/crash_rounds.py sqlite --rounds 1000
    python benchmarks/crash_rounds.py postgresql://... --rounds 1000
    python benchmarks/crash_rounds.py sqlite --maker LangGraph    the same with LangGraph's savers

A child process runs a graph that fans out, and is killed. The next one resumes the thread and is killed again, and
so on until one may reach the end. Lost is a thread that ends with another state than an undisturbed run; repeated
is a task that ran again although its writes had been acknowledged.
"""

import argparse
import asyncio
import json
import operator
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres import PostgresSaver as TheirPostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver as TheirSqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send

from threadmark import Saver
from threadmark_langgraph import Checkpointer
from threadmark_postgres import PostgresSaver
from threadmark_sqlite import SqliteSaver

OURS, THEIRS = "Threadmark", "LangGraph"
LOOPS, WIDTH, KILLS_PER_THREAD = 3, 4, 4


class Work(TypedDict):
    """The state that the graph gathers."""

    done: Annotated[list[str], operator.add]
    loop: int


class Rounds(NamedTuple):
    """The outcome of the rounds."""

    killed: int
    finished_before_the_kill: int
    threads: int
    tasks_run: int
    lost: int
    repeated: int


class Journal:
    """The actions of a thread's processes, line by line; it survives them, because each line is one write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)

    def note(self, what: str, task_id: str) -> None:
        """Add a line."""
        os.write(self._file, f"{what} {task_id}\n".encode())

    def close(self) -> None:
        """Let the file go."""
        os.close(self._file)

    def repeated(self) -> tuple[int, int]:
        """How many tasks ran again after their writes had been acknowledged, and how many ran at all."""
        acknowledged: set[str] = set()
        repeated = ran = 0
        for line in self._path.read_text().splitlines():
            what, task_id = line.split(" ")
            if what == "acknowledged":
                acknowledged.add(task_id)
            else:
                ran += 1
                repeated += task_id in acknowledged
        return repeated, ran


def watched(checkpointer: Any, journal: Journal) -> Any:
    """The checkpointer, which notes the tasks whose writes it has acknowledged."""
    put_writes, aput_writes = checkpointer.put_writes, checkpointer.aput_writes

    def noting(config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        put_writes(config, writes, task_id, task_path)
        journal.note("acknowledged", task_id)

    async def anoting(
        config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await aput_writes(config, writes, task_id, task_path)
        journal.note("acknowledged", task_id)

    checkpointer.put_writes, checkpointer.aput_writes = noting, anoting
    return checkpointer


def work_graph(checkpointer: Any, journal: Journal) -> Any:
    """A plan, as many items as it says, and again."""

    def noted(config: RunnableConfig) -> None:
        journal.note("ran", str(config["configurable"]["checkpoint_ns"]).rpartition(":")[2])

    def plan(state: Work, config: RunnableConfig) -> dict[str, Any]:
        noted(config)
        return {"done": [f"plan {state['loop']}"], "loop": state["loop"] + 1}

    def item(packet: Any, config: RunnableConfig) -> dict[str, Any]:
        noted(config)
        return {"done": [f"item {packet['number']} of {packet['loop']}" + "." * 500]}

    def spread(state: Work) -> list[Send]:
        return [Send("item", {"number": number, "loop": state["loop"]}) for number in range(WIDTH)]

    def join(state: Work, config: RunnableConfig) -> dict[str, Any]:
        noted(config)
        return {"done": [f"joined {len(state['done'])}"]}

    builder: Any = StateGraph(Work)
    builder.add_node("plan", plan).add_node("item", item).add_node("join", join).add_edge(START, "plan")
    builder.add_conditional_edges("plan", spread, ["item"]).add_edge("item", "join")
    builder.add_conditional_edges("join", lambda state: "plan" if state["loop"] < LOOPS else "__end__")
    return builder.compile(checkpointer=checkpointer)


def open_saver(database: str) -> Saver:
    """Threadmark's saver for a path or a Postgres URL."""
    return PostgresSaver(database) if database.startswith("postgres") else SqliteSaver(database)


class Database(NamedTuple):
    """A path or a Postgres URL, and the maker of its savers."""

    url: str
    maker: str

    def opened(self) -> AbstractContextManager[Any]:
        """The blocking saver; Threadmark's has the asyncio methods, too."""
        if self.maker == OURS:
            return Checkpointer(open_saver(self.url))
        theirs = TheirPostgresSaver if self.url.startswith("postgres") else TheirSqliteSaver
        return theirs.from_conn_string(self.url)

    @asynccontextmanager
    async def aopened(self) -> AsyncIterator[Any]:
        """The saver for asyncio."""
        if self.maker == THEIRS:
            postgres = self.url.startswith("postgres")
            theirs: Any = AsyncPostgresSaver if postgres else AsyncSqliteSaver  # the two have no class in common
            async with theirs.from_conn_string(self.url) as saver:
                yield saver
        else:
            with self.opened() as saver:
                yield saver

    def setup(self) -> None:
        """Make the tables, if the saver does not when it is used."""
        if self.maker == THEIRS:
            with self.opened() as saver:
                saver.setup()


def child(database: Database, thread_id: str, journal: Journal, *, blocking: bool) -> None:
    """Start the thread, or resume it."""
    if blocking:
        _run(database, thread_id, journal)
    else:
        asyncio.run(_arun(database, thread_id, journal))


def _run(database: Database, thread_id: str, journal: Journal) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    with database.opened() as saver:
        value = None if saver.get_tuple(config) else {"done": [], "loop": 0}
        work_graph(watched(saver, journal), journal).invoke(value, config, durability="sync")


async def _arun(database: Database, thread_id: str, journal: Journal) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    async with database.aopened() as saver:
        value = None if await saver.aget_tuple(config) else {"done": [], "loop": 0}
        await work_graph(watched(saver, journal), journal).ainvoke(value, config, durability="sync")


def final_state(database: Database, thread_id: str, journal: Journal) -> Any:
    """The state of the thread; None unless it is at its end."""
    with database.opened() as checkpointer:
        state = work_graph(checkpointer, journal).get_state({"configurable": {"thread_id": thread_id}})
    return None if state.next else state.values


def in_child(work: Callable[[], object]) -> int:
    """A forked process that does the work; everything is imported already, so it starts at once."""
    process = os.fork()
    if process:
        return process
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - it ends this process, and its exit code tells
        print(f"child failed: {error!r}", file=sys.stderr)
        os._exit(1)
    os._exit(0)


def killed_after(process: int, seconds: float) -> bool:
    """Whether the process was still at work when its time was up."""
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit("a child failed before it was killed")
    return os.WIFSIGNALED(status)


def finished(process: int) -> None:
    """Wait for a process that must succeed."""
    _, status = os.waitpid(process, 0)
    if status:
        raise SystemExit("a child failed")


def crash_rounds(database: Database, rounds: int, folder: Path, seed: int) -> Rounds:
    """Kill as many times as asked; every thread is brought to its end in between."""
    chance = random.Random(seed)
    prefix = f"crash-{os.getpid()}"
    journal = Journal(folder / "undisturbed")
    finished(in_child(database.setup))
    began = time.monotonic()
    finished(in_child(partial(child, database, f"{prefix}-undisturbed", journal, blocking=True)))
    typical = time.monotonic() - began
    expected = in_process(folder, partial(final_state, database, f"{prefix}-undisturbed", journal))
    if expected is None:
        raise SystemExit("the undisturbed run did not reach its end")
    killed = late = threads = lost = repeated = ran = 0
    while killed < rounds:
        thread_id = f"{prefix}-{threads}"
        journal = Journal(folder / thread_id)
        work = partial(child, database, thread_id, journal, blocking=threads % 2 == 0)
        for _ in range(min(KILLS_PER_THREAD, rounds - killed)):
            was_killed = killed_after(in_child(work), chance.uniform(0, typical))
            killed += was_killed
            late += not was_killed
        finished(in_child(work))
        reached = in_process(folder, partial(final_state, database, thread_id, journal))
        lost += reached != expected
        again, tasks = journal.repeated()
        repeated, ran, threads = repeated + again, ran + tasks, threads + 1
        journal.close()
    return Rounds(killed, late, threads, ran, lost, repeated)


def in_process(folder: Path, ask: Callable[[], Any]) -> Any:
    """The result of a child; this process itself opens no saver, so that it can go on forking."""
    answer = folder / "answer"
    finished(in_child(lambda: answer.write_text(json.dumps(ask()))))
    return json.loads(answer.read_text())


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("database", help="'sqlite' for a fresh file, or a Postgres URL")
    parser.add_argument("--maker", choices=[OURS, THEIRS], default=OURS)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "crash.db") if asked.database == "sqlite" else asked.database
        result = crash_rounds(Database(database, asked.maker), asked.rounds, Path(folder), asked.seed)
    print(json.dumps({"backend": asked.database.partition(":")[0], "maker": asked.maker, **result._asdict()}))
    sys.exit(asked.maker == OURS and bool(result.lost or result.repeated))


if __name__ == "__main__":
    main()
