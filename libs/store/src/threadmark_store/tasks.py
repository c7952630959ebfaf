"""Puts that are stored with the tasks of a graph: memory and state cannot disagree after a crash.

A put that a task makes is kept in this process until the task's writes or the step's checkpoint are stored, and is
stored in their transaction. LangGraph stores both on background threads, in either order: the first one takes the puts
along, and the other one waits for it (`Run.turn`). What is kept for a run ends with the run.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from operator import methodcaller
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.runnables.config import var_child_runnable_config

from threadmark.backends import ConfigError, Program, TransientStoreError
from threadmark.program import Operation, arun, read, run, write
from threadmark_store.batches import Answers, Batch, Put

if TYPE_CHECKING:
    from threadmark_store.store import Store

_UNFINISHED = {"__error__", "__interrupt__"}
"""LangGraph's channels for the writes of a task that failed, was cancelled or was interrupted."""
_LONGEST_TURN = 60.0
_PAUSE = 0.002
_HELD_HERE = 2
"""The references to the control of a run that is over: `Run.control`, and the argument of the call that counts them."""


class Task(NamedTuple):
    """The task that the running code belongs to."""

    run: "Run"
    id: str
    parents: frozenset[str]
    """Its id, and those of the tasks whose subgraphs it is in."""
    steps: Mapping[str, str]
    """For each namespace around it the checkpoint that the step began with."""
    attempt: tuple[float, int]
    """When it began, and how often it was tried since."""


class Kept(NamedTuple):
    """A put that waits for its task."""

    store: "Store"
    put: Put
    task: Task


Puts = Callable[[], list[Kept]]
"""Finds out which puts are to be stored now."""


class Run:
    """One run of a graph on one thread."""

    def __init__(self, control: object) -> None:
        self.control = control
        self.kept: list[Kept] = []
        """In the order of the calls."""
        self.turn = Lock()
        """Held while puts are stored, so that they are stored in their order."""
        self._lock = Lock()
        self._attempts: dict[str, tuple[float, int]] = {}
        self._over: dict[str, float] = {}
        """When the writes of each task came."""
        self._passed: dict[str, tuple[str | None, str]] = {}
        """The newest checkpoint of each namespace, behind its parent."""

    @property
    def is_over(self) -> bool:
        """Whether nothing of LangGraph refers to the run any more."""
        return sys.getrefcount(self.control) <= _HELD_HERE

    def begin(self, task: Task) -> bool:
        """Note a call by a task, and drop what earlier attempts have put. Returns False if the task is over."""
        with self._lock:
            former = self._attempts.get(task.id)
            if former != task.attempt:
                self._attempts[task.id] = task.attempt
                if former is not None:
                    self._drop(task.id)
            if self._over.get(task.id, 0) < task.attempt[0]:
                self._over.pop(task.id, None)
            return task.id not in self._over and not any(_led_to(task, ns, *each) for ns, each in self._passed.items())

    def keep(self, puts: Sequence[Kept]) -> None:
        """Keep puts until their task ends."""
        with self._lock:
            self.kept.extend(puts)

    def end(self, task_id: str, *, finished: bool) -> None:
        """Note the end of a task, and drop its puts if it has not finished."""
        with self._lock:
            self._over[task_id] = time.time()
            if not finished:
                self._drop(task_id)

    def of_task(self, task_id: str) -> list[Kept]:
        """Return the puts of a task that has ended, of its subgraphs, and of all other tasks that have ended."""
        with self._lock:
            return [each for each in self.kept if task_id in each.task.parents or each.task.id in self._over]

    def passed(self, ns: str, parent: str | None, checkpoint_id: str) -> list[Kept]:
        """Return the puts that led to a checkpoint."""
        with self._lock:
            self._passed[ns] = parent, checkpoint_id
            return [each for each in self.kept if _led_to(each.task, ns, parent, checkpoint_id)]

    def remove(self, stored: Collection[Kept]) -> None:
        """Keep these puts no longer."""
        ids = set(map(id, stored))
        with self._lock:
            self.kept = [each for each in self.kept if id(each) not in ids]

    def _drop(self, task_id: str) -> None:
        self.kept = [each for each in self.kept if task_id not in each.task.parents]


class TaskItems:
    """The companion of a checkpointer: keeps the puts of tasks, and stores them with writes and checkpoints."""

    def __init__(self) -> None:
        self._runs: dict[tuple[int, str], Run] = {}
        self._lock = Lock()

    def current(self) -> Task | None:
        """Return the task that the running code belongs to, or None outside of tasks.

        Raises ConfigError in a graph with another checkpointer.
        """
        config = var_child_runnable_config.get() or {}
        configurable = config.get("configurable") or {}
        checkpointer = configurable.get("__pregel_checkpointer")
        if checkpointer is None or "__pregel_task_id" not in configurable:
            return None
        run = self._run(configurable) if getattr(checkpointer, "companion", None) is self else None
        info = getattr(configurable.get("__pregel_runtime"), "execution_info", None)
        if run is None or info is None:
            raise ConfigError(
                "this task belongs to a graph with another checkpointer than the store, so its items cannot be stored "
                "with it: compile the graph with the checkpointer that the store was opened on, or open a store "
                "without `with_tasks`"
            )
        task_id, steps = configurable["__pregel_task_id"], configurable.get("checkpoint_map") or {}
        attempt = info.node_first_attempt_time or 0.0, info.node_attempt
        return Task(run, task_id, frozenset([task_id, *_callers(steps)]), steps, attempt)

    def put(self, saver: Any, config: Any, *checkpoint: Any) -> Any:
        """Store a checkpoint, with the puts that led to it."""
        run, puts = self._before_checkpoint(config, checkpoint[0]["id"])
        return _stored(saver, run, puts, methodcaller("put", config, *checkpoint))

    async def aput(self, saver: Any, config: Any, *checkpoint: Any) -> Any:
        """Like `put`, for asyncio."""
        run, puts = self._before_checkpoint(config, checkpoint[0]["id"])
        return await _astored(saver, run, puts, methodcaller("aput", config, *checkpoint))

    def put_writes(self, saver: Any, config: Any, writes: Any, task_id: str, task_path: str) -> None:
        """Store a task's writes, with its puts if it has finished."""
        run, puts = self._ended(config, writes, task_id)
        _stored(saver, run, puts, methodcaller("put_writes", config, writes, task_id, task_path))

    async def aput_writes(self, saver: Any, config: Any, writes: Any, task_id: str, task_path: str) -> None:
        """Like `put_writes`, for asyncio."""
        run, puts = self._ended(config, writes, task_id)
        await _astored(saver, run, puts, methodcaller("aput_writes", config, writes, task_id, task_path))

    def _before_checkpoint(self, config: Any, checkpoint_id: str) -> "tuple[Run | None, Puts]":
        configurable = config["configurable"]
        run = self._run(configurable)
        if run is None:
            return None, list
        return run, partial(
            run.passed, configurable.get("checkpoint_ns", ""), configurable.get("checkpoint_id"), checkpoint_id
        )

    def _ended(self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str) -> "tuple[Run | None, Puts]":
        run = self._run(config["configurable"])
        if run is None:
            return None, list
        run.end(task_id, finished=all(channel not in _UNFINISHED for channel, _ in writes))
        return run, partial(run.of_task, task_id)

    def _run(self, configurable: Mapping[str, Any]) -> Run | None:
        """Return the run of a configuration, or None outside of runs."""
        control = getattr(configurable.get("__pregel_runtime"), "control", None)
        if control is None:
            return None
        key = id(control), str(configurable.get("thread_id"))
        with self._lock:
            found = self._runs.get(key)
            if found is None:
                # LangGraph does not say when a run is over, and a control cannot be referred to weakly.
                self._runs = {key: run for key, run in self._runs.items() if not run.is_over}
                found = self._runs[key] = Run(control)
            return found


def companion_of(checkpointer: Any) -> TaskItems:
    """Return the companion of a checkpointer. Raises ConfigError if items cannot be stored together with its tasks."""
    if not hasattr(type(checkpointer), "companion"):
        raise ConfigError(
            "with_tasks=True needs the checkpointer that your graphs are compiled with, not "
            f"{type(checkpointer).__name__}: threadmark_langgraph.wrap(saver) makes one"
        )
    checkpointer.transaction()  # raises an error if there are none
    if checkpointer.companion is None:
        checkpointer.companion = TaskItems()
    companion: TaskItems = checkpointer.companion
    return companion


class _AnsweredError(Exception):
    """Ends a transaction that must store nothing, with the answers."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers


def answered(task: Task, store: "Store", batch: Batch) -> Operation[Answers]:
    """Answer the reads of a batch as if all puts of the run were stored, and keep its puts."""
    kept = list(task.run.kept)
    answers = Answers([None] * len(batch.requests), [])
    reads = {place: each for place, each in enumerate(batch.requests) if not isinstance(each, Put)}
    if reads:
        found = yield from _read(kept, replace(batch, requests=list(reads.values())), store)
        for place, answer in zip(reads, found.answers, strict=True):
            answers.answers[place] = answer
        answers.refreshed.extend(found.refreshed)
    task.run.keep([Kept(store, each, task) for each in batch.requests if isinstance(each, Put)])
    return answers


def _read(kept: Sequence[Kept], batch: Batch, store: "Store") -> Operation[Answers]:
    if not kept:
        return (yield from read(batch.answers, store.items))
    try:
        return (yield from write(_previewed, kept, batch, store.items))
    except _AnsweredError as end:
        return end.answers


def _previewed(kept: Sequence[Kept], batch: Batch, items: Any) -> Program[Answers]:
    """Answer reads in a transaction with the puts, which is then rolled back."""
    for each, puts in _by_store(kept):
        yield from replace(each.batch_of(puts), ends=False).answers(each.items)
    raise _AnsweredError((yield from batch.answers(items)))


def _by_store(kept: Sequence[Kept]) -> Iterator[tuple["Store", list[Put]]]:
    stores = {id(each.store): each.store for each in kept}
    for store in stores.values():
        yield store, [each.put for each in kept if each.store is store]


def _puts(kept: Sequence[Kept]) -> Operation[None]:
    for store, puts in _by_store(kept):
        yield from write(store.batch_of(puts).answers, store.items)


def _callers(steps: Mapping[str, str]) -> Iterator[str]:
    """Yield the ids of the tasks whose subgraphs a task is in: the last ones in the namespaces of these graphs.

    A task that another one calls has a namespace within that one's, too, but the same checkpoint.
    """
    known: set[str] = set()
    for ns, checkpoint_id in sorted(steps.items(), key=lambda each: len(each[0])):
        if ns and checkpoint_id not in known:
            yield ns.rpartition(":")[2].partition("|")[0]
        known.add(checkpoint_id)


def _led_to(task: Task, ns: str, parent: str | None, checkpoint_id: str) -> bool:
    """Whether a task is of a step before a checkpoint. LangGraph's ids grow in a process, but for the one it loaded."""
    began_with = task.steps.get(ns)
    return began_with is not None and (began_with == parent or began_with < checkpoint_id)


def _stored(saver: Any, run_of: Run | None, puts: Puts, call: Callable[[Any], Any]) -> Any:
    """Call a method of a saver, in one transaction with puts if there are any."""
    if run_of is None or not run_of.kept:
        puts()
        return call(saver)
    with _turn(run_of):
        kept = puts()
        if not kept:
            return call(saver)
        with saver.transaction() as tx:
            result = call(tx.saver)
            run(tx.saver._driver, _puts(kept))  # noqa: SLF001 - as a store on this saver would
        run_of.remove(kept)
        return result


async def _astored(saver: Any, run_of: Run | None, puts: Puts, call: Callable[[Any], Any]) -> Any:
    """Like `_stored`, for asyncio."""
    if run_of is None or not run_of.kept:
        puts()
        return await call(saver)
    async with _aturn(run_of):
        kept = puts()
        if not kept:
            return await call(saver)
        async with saver.transaction() as tx:
            result = await call(tx.saver)
            await arun(tx.saver._driver, _puts(kept))  # noqa: SLF001 - as a store on this saver would
        run_of.remove(kept)
        return result


@contextmanager
def _turn(run_of: Run) -> Iterator[None]:
    if not run_of.turn.acquire(timeout=_LONGEST_TURN):
        raise _too_long()
    try:
        yield
    finally:
        run_of.turn.release()


@asynccontextmanager
async def _aturn(run_of: Run) -> AsyncIterator[None]:
    ends = time.monotonic() + _LONGEST_TURN
    while not run_of.turn.acquire(blocking=False):
        if time.monotonic() > ends:
            raise _too_long()
        await asyncio.sleep(_PAUSE)
    try:
        yield
    finally:
        run_of.turn.release()


def _too_long() -> TransientStoreError:
    return TransientStoreError(
        f"the items of another task of this run were not stored within {_LONGEST_TURN:g} s: is the event loop blocked?"
    )
