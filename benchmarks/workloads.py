"""The workloads of measurements: runs of a graph, as the steps that a Pregel loop would store.

A workload yields `Step`s and does no I/O; `drive` and `adrive` store them with any saver that has LangGraph's
methods. Everything in it is made from a seed, so that a second run of a workload gives the values to read back; only
channel versions are the saver's own (`get_next_version`), as in a graph.

Messages are random base64 text: they do not compress below three quarters of their length, so saved bytes are
not stored twice, and not squeezed. Files and prompts are made of words, as real ones are.
"""

import base64
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from langchain_core.messages import AIMessage, HumanMessage

from threadmark.ids import uuid6_text

Version = Any
NextVersion = Callable[[Any, None], Version]


class Task(NamedTuple):
    """The writes of one task of a step."""

    id: str
    path: str
    writes: Sequence[tuple[str, Any]]


class Step(NamedTuple):
    """The tasks that ran after the checkpoint before, and the checkpoint they led to."""

    tasks: Sequence[Task]
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    new_versions: dict[str, Version]


class Saver(Protocol):
    """The part of LangGraph's interface that stores a run."""

    def get_next_version(self, current: Any, channel: None) -> Version:
        """The version after `current`."""

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Store a checkpoint; the configuration that names it."""

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        """Store a task's writes."""

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Like `put`, for asyncio."""

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        """Like `put_writes`, for asyncio."""


def thread(name: str) -> dict[str, Any]:
    """The configuration of a thread that has no checkpoint yet."""
    thread_id = str(UUID(int=random.Random(name).getrandbits(128), version=4))
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def newest(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration that names the newest checkpoint of the same thread."""
    kept = {key: value for key, value in config["configurable"].items() if key != "checkpoint_id"}
    return {"configurable": kept}


def drive(saver: Saver, config: Mapping[str, Any], steps: Iterable[Step]) -> Mapping[str, Any]:
    """Store a run; the configuration of its last checkpoint."""
    for step in steps:
        for task in step.tasks:
            saver.put_writes(config, task.writes, task.id, task.path)
        config = saver.put(config, step.checkpoint, step.metadata, step.new_versions)
    return config


async def adrive(saver: Saver, config: Mapping[str, Any], steps: Iterable[Step]) -> Mapping[str, Any]:
    """Like `drive`, for asyncio."""
    for step in steps:
        for task in step.tasks:
            await saver.aput_writes(config, task.writes, task.id, task.path)
        config = await saver.aput(config, step.checkpoint, step.metadata, step.new_versions)
    return config


def chat(next_version: NextVersion, steps: int = 500, size: int = 600) -> Iterator[Step]:
    """A conversation: one message a step, which the task writes and the channel then holds."""
    run = _Run(next_version, "chat")
    messages: list[Any] = []
    yield run.step({"messages": messages}, ())
    for number in range(steps):
        message = run.message(number, size)
        messages = [*messages, message]
        yield run.step({"messages": messages}, [run.task("agent", [("messages", [message])])])


def langchain_chat(next_version: NextVersion, steps: int = 500, size: int = 600) -> Iterator[Step]:
    """The same conversation, its messages LangChain's objects and not plain dictionaries."""
    kinds = {"ai": AIMessage, "human": HumanMessage}
    messages: list[Any] = []
    for step in chat(next_version, steps, size):
        tasks = []
        for task in step.tasks:
            ((channel, written),) = task.writes
            new = [kinds[each["type"]](content=each["content"], id=each["id"]) for each in written]
            messages = [*messages, *new]
            tasks.append(task._replace(writes=[(channel, new)]))
        yield step._replace(tasks=tasks, checkpoint={**step.checkpoint, "channel_values": {"messages": messages}})


def nested(next_version: NextVersion, steps: int = 500, size: int = 600) -> Iterator[Step]:
    """The same conversation inside one channel that holds the whole state, next to a turn counter."""
    run = _Run(next_version, "nested")
    notes = {f"note {number}": run.text(30) for number in range(5)}
    state: dict[str, Any] = {"messages": [], "turn": 0, "notes": notes}
    yield run.step({"state": state}, ())
    for number in range(steps):
        message = run.message(number, size)
        state = {"messages": [*state["messages"], message], "turn": number + 1, "notes": notes}
        update = {"messages": [message], "turn": number + 1}
        yield run.step({"state": state}, [run.task("agent", [("state", update)])])


def doc(next_version: NextVersion, steps: int = 150) -> Iterator[Step]:
    """Thirty files of 10 KB; a step replaces some words of one, and the task writes that file whole."""
    run = _Run(next_version, "doc")
    files = {f"src/module_{number:02d}.py": run.prose(10_000) for number in range(30)}
    yield run.step({"files": files}, ())
    for _ in range(steps):
        path = run.random.choice(list(files))
        old = files[path]
        at = run.random.randrange(len(old) - 60)
        edited = old[:at] + run.prose(run.random.randint(10, 60)) + old[at + run.random.randint(0, 60) :]
        files = {**files, path: edited}
        yield run.step({"files": files}, [run.task("editor", [("files", {path: edited})])])


def fanout(next_version: NextVersion, steps: int = 150) -> Iterator[Step]:
    """A planner sends sixteen packets a step, each with the same prompt of 20 KB."""
    run = _Run(next_version, "fanout")
    prompt = run.prose(20_000)
    yield run.step({"plan": prompt}, ())
    for _ in range(steps):
        packets = [
            {"node": "worker", "arg": {"prompt": prompt, "index": index, "topic": run.text(12)}} for index in range(16)
        ]
        writes = [("__pregel_tasks", packet) for packet in packets]
        yield run.step({"__pregel_tasks": packets}, [run.task("planner", writes)])


def wide(next_version: NextVersion, steps: int = 150) -> Iterator[Step]:
    """120 channels of 70 bytes, of which a step changes two."""
    run = _Run(next_version, "wide")
    channels = [f"channel_{number:03d}" for number in range(120)]
    yield run.step({channel: run.text(70) for channel in channels}, ())
    for _ in range(steps):
        changed = {channel: run.text(70) for channel in run.random.sample(channels, 2)}
        yield run.step(changed, [run.task("worker", list(changed.items()))])


def tiny(next_version: NextVersion, steps: int = 300) -> Iterator[Step]:
    """Three small channels, all of which a step changes."""
    run = _Run(next_version, "tiny")
    yield run.step({"count": 0, "status": "begun", "total": 0.0}, ())
    for number in range(steps):
        changed = {"count": number, "status": run.text(10), "total": number / 3}
        yield run.step(changed, [run.task("worker", list(changed.items()))])


WORKLOADS: dict[str, Callable[[NextVersion], Iterator[Step]]] = {
    "chat": chat,
    "nested": nested,
    "doc": doc,
    "fanout": fanout,
    "wide": wide,
}
"""The workloads whose bytes are counted, each with the number of steps that the figures are quoted for."""

TIMED: dict[str, Callable[[NextVersion, int], Iterator[Step]]] = {
    "chat": langchain_chat,
    "nested": nested,
    "doc": doc,
    "fanout": fanout,
    "wide": wide,
    "tiny": tiny,
}
"""The workloads whose time is measured, with their steps; a chat holds LangChain's messages, like a graph's."""


class _Run:
    """A loop's memory from step to step: the channels, their versions, and the versions seen by each node."""

    def __init__(self, next_version: NextVersion, seed: str) -> None:
        self.random = random.Random(seed)
        self._next_version = next_version
        self._values: dict[str, Any] = {}
        self._versions: dict[str, Version] = {}
        self._seen: dict[str, dict[str, Version]] = {"__input__": {}}
        self._ticks = 0x1F0_0000_0000_0000
        self._number = -1
        self._vocabulary = ["".join(self._letters()) for _ in range(3000)]

    def step(self, changed: dict[str, Any], tasks: Sequence[Task]) -> Step:
        """The step in which these channels got these values."""
        version = self._next_version(max(self._versions.values(), default=None), None)
        for task in tasks:
            node = task.path.rpartition(" ")[2]
            self._seen = {**self._seen, node: {channel: self._versions[channel] for channel in self._read_by(task)}}
        new_versions = dict.fromkeys(changed, version)
        self._values = {**self._values, **changed}
        self._versions = {**self._versions, **new_versions}
        self._ticks += self.random.randrange(10**7)
        self._number += 1
        checkpoint = {
            "v": 4,
            "ts": f"2025-01-01T{self._number // 3600 % 24:02d}:{self._number // 60 % 60:02d}:{self._number % 60:02d}"
            f".{self.random.randrange(10**6):06d}+00:00",
            "id": uuid6_text(self._ticks, self.random.getrandbits(62)),
            "channel_values": self._values,
            "channel_versions": self._versions,
            "versions_seen": self._seen,
            "updated_channels": sorted(changed),
        }
        metadata: dict[str, Any] = {"source": "loop" if tasks else "input", "step": self._number - 1, "parents": {}}
        return Step(tasks, checkpoint, metadata, new_versions)

    def task(self, node: str, writes: Sequence[tuple[str, Any]]) -> Task:
        """A task of this step."""
        return Task(str(UUID(int=self.random.getrandbits(128), version=5)), f"~__pregel_pull, {node}", writes)

    def message(self, number: int, size: int) -> dict[str, Any]:
        """A message whose text has `size` letters."""
        return {"type": "ai" if number % 2 else "human", "id": self.text(22), "content": self.text(size)}

    def text(self, size: int) -> str:
        """Random letters, six bits each."""
        return base64.b64encode(self.random.randbytes(size)).decode()[:size]

    def prose(self, size: int) -> str:
        """Random words."""
        return " ".join(self.random.choices(self._vocabulary, k=size // 4 + 2))[:size]

    def _letters(self) -> list[str]:
        return self.random.choices("abcdefghijklmnopqrstuvwxyz", k=self.random.randint(2, 10))

    def _read_by(self, task: Task) -> list[str]:
        """A node is woken by the channels it writes, so that everything it reads is seen again."""
        return [channel for channel, _ in dict(task.writes).items() if channel in self._versions]
