"""Runs of a LangGraph graph at once, by asyncio tasks and by threads, some of which are cancelled at any moment.

Each client holds a few streams of `graph.astream` or `graph.stream` open and advances them in turns, so that many more
runs are under way than there are clients. A cancelled run is resumed or followed by another, as its thread's state
says. After a few runs the thread is deleted, so that the amount of data stays the same.
"""

import asyncio
import operator
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Annotated, Any, NamedTuple, TypedDict

from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, StateGraph

from soaking.latencies import Latencies
from threadmark_langgraph import Checkpointer

_CANCELLED = 0.05
"""The share of steps that may be cancelled."""
_SOON = 0.05
"""Seconds within which such a step is cancelled."""
_RUNS = 5
"""Runs of a thread before it is deleted."""
_TEXT = "some words of a conversation, never the same: "
_OPERATIONS = ("get_tuple", "put", "put_writes", "delete_thread")
_DURABILITY: Any = "async"  # LangGraph's default


class Size(NamedTuple):
    """How many runs are under way at once, and who advances them."""

    runs: int = 200
    tasks: int = 50
    threads: int = 8


class State(TypedDict):
    """The state: a number of each run, and a text of each node that is never the same."""

    numbers: Annotated[list[int], operator.add]
    texts: Annotated[list[str], operator.add]


class _Run:
    """A thread of the database, and the stream of its run that is under way."""

    def __init__(self) -> None:
        self.stream: Any = None
        self.begun = 0.0
        self.number = 0
        self.renew()

    def renew(self) -> None:
        """Take another thread."""
        self.name = f"soak {random.getrandbits(64):016x}"
        self.config: Any = {"configurable": {"thread_id": self.name}}
        self.finished: list[int] = []
        self.values: dict[str, Any] = {}


class Crowd:
    """The clients, and the number of runs that they have finished and cancelled."""

    def __init__(self, checkpointer: Checkpointer, size: Size, latencies: Latencies) -> None:
        _time_calls(checkpointer, latencies)
        self._checkpointer = checkpointer
        self._graph = _graph(checkpointer)
        self._latencies = latencies
        self._numbers = count()
        self._lock = threading.Lock()
        self.finished = 0
        self.cancelled = 0
        self.lost = 0
        """Finished runs that the state of their thread does not hold."""
        each, more = divmod(size.runs, size.tasks + size.threads)
        clients = [[_Run() for _ in range(each + (client < more))] for client in range(size.tasks + size.threads)]
        self._of_tasks, self._of_threads = clients[: size.tasks], clients[size.tasks :]

    async def round(self, seconds: float) -> None:
        """Let all clients work so long, in tasks and threads of this round only, and finish the runs under way."""
        until = time.monotonic() + seconds
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(len(self._of_threads), "soak") as pool:
            threads = [loop.run_in_executor(pool, self._in_thread, runs, until) for runs in self._of_threads]
            tasks = [asyncio.create_task(self._in_task(runs, until)) for runs in self._of_tasks]
            await asyncio.gather(*threads, *tasks)

    async def _in_task(self, runs: list[_Run], until: float) -> None:
        under_way = runs
        while under_way:
            for run in under_way:
                await self._advance(run)
            if time.monotonic() > until:
                under_way = [run for run in under_way if run.stream is not None]

    def _in_thread(self, runs: list[_Run], until: float) -> None:
        under_way = runs
        while under_way:
            for run in under_way:
                self._advance_blocking(run)
            if time.monotonic() > until:
                under_way = [run for run in under_way if run.stream is not None]

    async def _advance(self, run: _Run) -> None:
        """Go to the next step of the run, or begin one. The task may be cancelled in any of its waits."""
        begun = time.perf_counter()
        within = random.uniform(0, _SOON) if random.random() < _CANCELLED else None
        try:
            async with asyncio.timeout(within):
                if run.stream is None:
                    self._begin(run, (await self._graph.aget_state(run.config)).next)
                    run.stream = self._graph.astream(*self._arguments(run), **_streaming())
                run.values = await anext(run.stream)
        except StopAsyncIteration:
            run.stream = None
            if self._finish(run):
                await self._checkpointer.adelete_thread(run.name)
                run.renew()
        except TimeoutError:
            self._count_cancelled()
            stream, run.stream = run.stream, None
            if stream is not None:
                await stream.aclose()
        else:
            self._latencies.add("step of a task", time.perf_counter() - begun)

    def _advance_blocking(self, run: _Run) -> None:
        """Do the same in a thread, whose runs can only be left between two steps."""
        begun = time.perf_counter()
        try:
            if run.stream is None:
                self._begin(run, self._graph.get_state(run.config).next)
                run.stream = self._graph.stream(*self._arguments(run), **_streaming())
            run.values = next(run.stream)
        except StopIteration:
            run.stream = None
            if self._finish(run):
                self._checkpointer.delete_thread(run.name)
                run.renew()
            return
        self._latencies.add("step of a thread", time.perf_counter() - begun)
        if random.random() < _CANCELLED:
            self._count_cancelled()
            run.stream.close()
            run.stream = None

    def _begin(self, run: _Run, left: tuple[str, ...]) -> None:
        """Resume the run that was cancelled if nodes of it are left, or take the next number."""
        run.begun = time.perf_counter()
        run.number = -1 if left else next(self._numbers)

    def _arguments(self, run: _Run) -> tuple[Any, Any]:
        given = None if run.number == -1 else {"numbers": [run.number], "texts": []}
        return given, run.config

    def _finish(self, run: _Run) -> bool:
        """Note the run, compare the state with those before, and return whether the thread has had enough."""
        self._latencies.add("run", time.perf_counter() - run.begun)
        if run.number != -1:
            run.finished.append(run.number)
        with self._lock:
            self.finished += 1
            self.lost += len(set(run.finished) - set(run.values["numbers"]))
        return len(run.finished) >= _RUNS

    def _count_cancelled(self) -> None:
        with self._lock:
            self.cancelled += 1


def _streaming() -> dict[str, Any]:
    return {"stream_mode": "values", "durability": _DURABILITY}


def _graph(checkpointer: Checkpointer) -> Any:
    """A node, two in parallel, and one after them."""

    def work(state: State) -> dict[str, Any]:
        return {"texts": [f"{_TEXT}{len(state['numbers'])} {random.getrandbits(800):0200x}"]}

    async def awork(state: State) -> dict[str, Any]:
        await asyncio.sleep(0)
        return work(state)

    builder = StateGraph(State)
    node: Any = RunnableLambda(work, awork)  # its types name one input
    for name, before in (("ask", START), ("left", "ask"), ("right", "ask")):
        builder.add_node(name, node)
        builder.add_edge(before, name)
    builder.add_node("answer", node)
    builder.add_edge(["left", "right"], "answer")
    return builder.compile(checkpointer=checkpointer)


def _time_calls(checkpointer: Checkpointer, latencies: Latencies) -> None:
    """Measure how long each call of the checkpointer takes that ends well, in tasks and in threads."""
    for name in _OPERATIONS:
        setattr(checkpointer, name, _timed(getattr(checkpointer, name), name, latencies))
        setattr(checkpointer, f"a{name}", _atimed(getattr(checkpointer, f"a{name}"), f"a{name}", latencies))


def _timed(call: Callable[..., Any], name: str, latencies: Latencies) -> Callable[..., Any]:
    def timed(*arguments: Any, **options: Any) -> Any:
        begun = time.perf_counter()
        result = call(*arguments, **options)
        latencies.add(name, time.perf_counter() - begun)
        return result

    return timed


def _atimed(call: Callable[..., Any], name: str, latencies: Latencies) -> Callable[..., Any]:
    async def timed(*arguments: Any, **options: Any) -> Any:
        begun = time.perf_counter()
        result = await call(*arguments, **options)
        latencies.add(name, time.perf_counter() - begun)
        return result

    return timed
