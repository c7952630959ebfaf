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
from threading import Condition, Lock
from typing import Any, NamedTuple

from langchain_core.runnables.config import var_child_runnable_config

from threadmark.backends import ConfigError, Program, TransientStoreError
from threadmark.program import Flow, Operation, aplay, arun, play, read, run, write
from threadmark_store.batches import Answers, Batch, Put, Request
from threadmark_store.calls import Call
from threadmark_store.contract import ItemStore

_UNFINISHED = {"__error__", "__interrupt__"}
"""LangGraph's channels for the writes of a task that failed, was cancelled or was interrupted."""
_LONGEST_TURN = 60.0
_PAUSE = 0.002
_HELD_HERE = 2
"""The references to the control of a run that is over: `Run.control`, and the argument of the call that counts them."""


Level = tuple[str, str]
"""A namespace, and the checkpoint with which the step of its graph began."""


class Task(NamedTuple):
    """The task that the running code belongs to."""

    run: "Run"
    id: str
    levels: Sequence[Level]
    """Those of the graphs that it is in, outermost first."""
    parents: Mapping[str, int]
    """Its id, and those of the tasks whose subgraphs it is in, each with the number of levels that it is in itself."""
    attempt: tuple[float, int]
    """When it began, and how often it was tried since."""


class Target(NamedTuple):
    """The store that puts are for."""

    items: ItemStore
    batch_of: Callable[[Sequence[Request]], Batch]
    """Makes a transaction of requests."""


class Kept(NamedTuple):
    """A put that waits for its task."""

    target: Target
    put: Put
    task: Task


class Event(NamedTuple):
    """A call of the saver."""

    call: Callable[[Any], Any]
    """Calls it, with a saver."""
    task_id: str = ""
    """The task whose writes it stores."""
    checkpoint: tuple[str, str | None, str] | None = None
    """The namespace, parent and id of the checkpoint that it stores."""


class Turn:
    """Lets the calls of one run be stored one by one, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: list[object] = []
        self._changed = Condition()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the others, and let those that come later wait until the end of the block."""
        turn = object()
        with self._queued(turn):
            with self._changed:
                if not self._changed.wait_for(lambda: self._waiting[0] is turn, _LONGEST_TURN):
                    raise _too_long()
            yield

    @asynccontextmanager
    async def ataken(self) -> AsyncIterator[None]:
        """Like `taken`, for asyncio."""
        turn, ends = object(), time.monotonic() + _LONGEST_TURN
        with self._queued(turn):
            while self._waiting[0] is not turn:
                if time.monotonic() > ends:
                    raise _too_long()
                await asyncio.sleep(_PAUSE)
            yield

    @contextmanager
    def _queued(self, turn: object) -> Iterator[None]:
        with self._changed:
            self._waiting.append(turn)
        try:
            yield
        finally:
            with self._changed:
                self._waiting.remove(turn)
                self._changed.notify_all()


class Run:
    """One run of a graph on one thread."""

    def __init__(self, control: object, thread_id: str) -> None:
        self.control = control
        self.thread_id = thread_id
        self.kept: list[Kept] = []
        """In the order of the calls."""
        self.turn = Turn()
        self.checkpoints: set[Level] = set()
        """Those that are known to be stored."""
        self._lock = Lock()
        self._attempts: dict[str, tuple[float, int]] = {}
        self._over: dict[str, float] = {}
        """When the writes of each task came."""
        self._written: set[str] = set()
        """The tasks whose writes are stored."""
        self._newest: dict[str, tuple[str | None, str]] = {}
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
            if self._over.get(task.id, 0) < task.attempt[0]:  # it runs once more
                self._over.pop(task.id, None)
                self._written.discard(task.id)
            return not self._ways(task, self._over)

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

    def ended(self, event: "Event") -> list[tuple[Kept, Sequence[Sequence[Level]]]]:
        """Return the puts whose tasks are over when an event is stored, and for each put the ways that lead to it.

        All checkpoints of one way must be stored.
        """
        with self._lock:
            written = self._written | {event.task_id}
            return [(each, ways) for each in self.kept if (ways := self._ways(each.task, written, event.checkpoint))]

    def note(self, event: "Event", stored: Collection[Kept]) -> None:
        """Note that an event is stored, and with it these puts."""
        ids = set(map(id, stored))
        with self._lock:
            self.kept = [each for each in self.kept if id(each) not in ids]
            self._written.add(event.task_id)
            if event.checkpoint:
                ns, parent, checkpoint_id = event.checkpoint
                self._newest[ns] = parent, checkpoint_id
                self.checkpoints.add((ns, checkpoint_id))

    def _ways(
        self, task: Task, over: Collection[str], checkpoint: tuple[str, str | None, str] | None = None
    ) -> list[Sequence[Level]]:
        """Return the checkpoints that lead to a task's writes, or to the checkpoint behind it. None if it goes on."""
        ways = [task.levels[:count] for parent, count in task.parents.items() if parent in over]
        newest = self._newest if checkpoint is None else {**self._newest, checkpoint[0]: checkpoint[1:]}
        for place, (ns, began_with) in enumerate(task.levels):
            parent, following = newest.get(ns, (None, ""))
            # LangGraph's ids grow within a process, so only the one that it loaded needs another comparison.
            if began_with == parent or began_with < following:
                ways.append(task.levels[:place])
        return ways

    def _drop(self, task_id: str) -> None:
        self.kept = [each for each in self.kept if task_id not in each.task.parents]


class TaskItems:
    """The companion of a checkpointer: keeps the puts of tasks, and stores them with writes and checkpoints."""

    def __init__(self) -> None:
        self._runs: dict[tuple[int, str], Run] = {}

    def current(self) -> Task | None:
        """Return the task that the running code belongs to, or None outside of tasks.

        Raises ConfigError in a graph with another checkpointer.
        """
        config = var_child_runnable_config.get() or {}
        configurable = config.get("configurable") or {}
        checkpointer = configurable.get("__pregel_checkpointer")
        if checkpointer is None or "__pregel_task_id" not in configurable:
            return None
        run = self._run(configurable) if getattr(checkpointer, "_companion", None) is self else None
        info = getattr(configurable.get("__pregel_runtime"), "execution_info", None)
        if run is None or info is None:
            raise ConfigError(
                "this task belongs to a graph with another checkpointer than the store, so its items cannot be stored "
                "with it: compile the graph with the checkpointer that the store was opened on, or open a store "
                "without `with_tasks`"
            )
        levels, parents = _around(configurable.get("checkpoint_map") or {})
        parents[configurable["__pregel_task_id"]] = len(levels)
        attempt = info.node_first_attempt_time or 0.0, info.node_attempt
        return Task(run, configurable["__pregel_task_id"], levels, parents, attempt)

    def put(self, saver: Any, config: Any, *checkpoint: Any) -> Any:
        """Store a checkpoint, with the puts that led to it."""
        return self._store(saver, *self._checkpoint(config, checkpoint, "put"))

    async def aput(self, saver: Any, config: Any, *checkpoint: Any) -> Any:
        """Like `put`, for asyncio."""
        return await self._astore(saver, *self._checkpoint(config, checkpoint, "aput"))

    def put_writes(self, saver: Any, config: Any, writes: Any, task_id: str, task_path: str) -> None:
        """Store a task's writes, with its puts if it has finished."""
        call = methodcaller("put_writes", config, writes, task_id, task_path)
        self._store(saver, self._ended(config, writes, task_id), Event(call, task_id))

    async def aput_writes(self, saver: Any, config: Any, writes: Any, task_id: str, task_path: str) -> None:
        """Like `put_writes`, for asyncio."""
        call = methodcaller("aput_writes", config, writes, task_id, task_path)
        await self._astore(saver, self._ended(config, writes, task_id), Event(call, task_id))

    def _store(self, saver: Any, run: Run | None, event: Event) -> Any:
        if run is None:
            return event.call(saver)
        with run.turn.taken():
            return play(_together(saver, run, event), Call.answer)

    async def _astore(self, saver: Any, run: Run | None, event: Event) -> Any:
        if run is None:
            return await event.call(saver)
        async with run.turn.ataken():
            return await aplay(_together(saver, run, event), Call.aanswer)

    def _checkpoint(self, config: Any, checkpoint: Sequence[Any], method: str) -> tuple[Run | None, Event]:
        configurable, call = config["configurable"], methodcaller(method, config, *checkpoint)
        ns, parent = configurable.get("checkpoint_ns", ""), configurable.get("checkpoint_id")
        return self._run(configurable), Event(call, checkpoint=(ns, parent, checkpoint[0]["id"]))

    def _ended(self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str) -> Run | None:
        """Return the run of a task that has ended, if it keeps any puts."""
        run = self._run(config["configurable"])
        if run is None:
            return None
        run.end(task_id, finished=all(channel not in _UNFINISHED for channel, _ in writes))
        return run if run.kept else None

    def _run(self, configurable: Mapping[str, Any]) -> Run | None:
        """Return the run of a configuration, or None outside of runs."""
        control = getattr(configurable.get("__pregel_runtime"), "control", None)
        if control is None:
            return None
        key = id(control), str(configurable.get("thread_id"))
        found = self._runs.get(key)
        if found is None:
            # LangGraph does not say when a run is over, and a control cannot be referred to weakly.
            for former, run in list(self._runs.items()):
                if run.is_over:
                    self._runs.pop(former, None)
            found = self._runs.setdefault(key, Run(control, key[1]))
        return found


def companion_of(checkpointer: Any) -> TaskItems:
    """Return the companion of a checkpointer. Raises ConfigError if items cannot be stored together with its tasks."""
    if not hasattr(type(checkpointer), "_companion"):
        raise ConfigError(
            "with_tasks=True needs the checkpointer that your graphs are compiled with, not "
            f"{type(checkpointer).__name__}: threadmark_langgraph.wrap(saver) makes one"
        )
    checkpointer.transaction()  # raises an error if there are none
    companion: TaskItems = vars(checkpointer).setdefault("_companion", TaskItems())
    return companion


class _AnsweredError(Exception):
    """Ends a transaction that must store nothing, with the answers."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers


def answered(task: Task, target: Target, batch: Batch) -> Operation[Answers]:
    """Answer the reads of a batch as if all puts of the run were stored, and keep its puts."""
    kept = list(task.run.kept)
    answers = Answers([None] * len(batch.requests), [])
    reads = {place: each for place, each in enumerate(batch.requests) if not isinstance(each, Put)}
    if reads:
        found = yield from _read(kept, replace(batch, requests=list(reads.values())), target.items)
        for place, answer in zip(reads, found.answers, strict=True):
            answers.answers[place] = answer
        answers.refreshed.extend(found.refreshed)
    task.run.keep([Kept(target, each, task) for each in batch.requests if isinstance(each, Put)])
    return answers


def _read(kept: Sequence[Kept], batch: Batch, items: ItemStore) -> Operation[Answers]:
    if not kept:
        return (yield from read(batch.answers, items))
    try:
        return (yield from write(_previewed, kept, batch, items))
    except _AnsweredError as end:
        return end.answers


def _previewed(kept: Sequence[Kept], batch: Batch, items: ItemStore) -> Program[Answers]:
    """Answer reads in a transaction with the puts, which is then rolled back."""
    for target, puts in _by_target(kept):
        yield from replace(target.batch_of(puts), ends=False).answers(target.items)
    raise _AnsweredError((yield from batch.answers(items)))


def _by_target(kept: Sequence[Kept]) -> Iterator[tuple[Target, list[Put]]]:
    targets = {id(each.target): each.target for each in kept}
    for target in targets.values():
        yield target, [each.put for each in kept if each.target is target]


def _around(steps: Mapping[str, str]) -> tuple[list[Level], dict[str, int]]:
    """Return the levels around a task, and the tasks whose subgraphs it is in, as `Task` has them.

    Such a task is the last one in the namespace of its subgraph. A task that another one calls has a namespace within
    that one's, too, but the same checkpoint.
    """
    levels: list[Level] = []
    parents: dict[str, int] = {}
    for ns, checkpoint_id in sorted(steps.items(), key=lambda each: len(each[0])):
        if all(checkpoint_id != other for _, other in levels):
            if ns:
                parents[ns.rpartition(":")[2].partition("|")[0]] = len(levels)
            levels.append((ns, checkpoint_id))
    return levels, parents


def _together(saver: Any, run: Run, event: Event) -> Flow[Call, Any]:
    """Call a method of the saver, with the puts that can be reached when it has returned.

    LangGraph may store a task's writes before the checkpoint of their step. If that one is lost, the task runs again as
    another one, so its puts wait for the checkpoint.
    """
    puts = []
    found = {*run.checkpoints, event.checkpoint and event.checkpoint[::2]}
    for each, ways in run.ended(event):
        for level in {level for way in ways for level in way} - found:
            config = _config_of(run.thread_id, level)
            if (yield Call(partial(saver.get_checkpoint_ref, config), partial(saver.aget_checkpoint_ref, config))):
                run.checkpoints.add(level)
                found.add(level)
        if any(found.issuperset(way) for way in ways):
            puts.append(each)
    called = Call(partial(_called, saver, event.call, puts), partial(_acalled, saver, event.call, puts))
    try:
        result = yield called
    except TransientStoreError:
        if not puts:
            raise  # the saver has tried again
        result = yield called
    run.note(event, puts)
    return result


def _config_of(thread_id: str, level: Level) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": level[0], "checkpoint_id": level[1]}}


def _called(saver: Any, call: Callable[[Any], Any], puts: Sequence[Kept]) -> Any:
    """Call a method of the saver, in one transaction with puts."""
    if not puts:
        return call(saver)
    with saver.transaction() as tx:
        result = call(tx.saver)
        run(tx.saver._driver, _stored(puts))  # noqa: SLF001 - as a store on this saver would
    return result


async def _acalled(saver: Any, call: Callable[[Any], Any], puts: Sequence[Kept]) -> Any:
    if not puts:
        return await call(saver)
    async with saver.transaction() as tx:
        result = await call(tx.saver)
        await arun(tx.saver._driver, _stored(puts))  # noqa: SLF001 - as a store on this saver would
    return result


def _stored(puts: Sequence[Kept]) -> Operation[None]:
    for target, some in _by_target(puts):
        yield from write(target.batch_of(some).answers, target.items)


def _too_long() -> TransientStoreError:
    return TransientStoreError(
        f"the items of another task of this run were not stored within {_LONGEST_TURN:g} s: is the event loop blocked?"
    )
