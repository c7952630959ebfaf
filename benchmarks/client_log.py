"""Writers that note acknowledged writes, and the comparison of their notes with the stored rows afterwards.

The rows of a step follow from its thread and its number, so that a note is a number, and each stored row
can be compared with the right one.
"""

import asyncio
import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from threadmark import Checkpoint, Saver, new_id

_KEPT = 6
"""So many of the latest texts a state has; a step brings a new one, and the oldest goes."""

_LONG = 120.0
"""Seconds after which a writer that got no further has failed."""


class ClientLog:
    """One thread as its only writer knows it: each step is a put and a put_writes."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        self.ids: list[str] = []
        """The ids of all checkpoints passed to the saver."""
        self.put = 0
        """How many of them were acknowledged."""
        self.written = 0
        """How many batches of writes were acknowledged."""
        self._config: Any = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}

    def step(self, saver: Saver) -> None:
        """Store the next step."""
        self._config = saver.put(self._config, *self._next())
        self.put += 1
        saver.put_writes(self._config, writes(self.thread_id, self.put - 1), "task")
        self.written += 1

    async def astep(self, saver: Saver) -> None:
        """Like `step`, for asyncio."""
        self._config = await saver.aput(self._config, *self._next())
        self.put += 1
        await saver.aput_writes(self._config, writes(self.thread_id, self.put - 1), "task")
        self.written += 1

    def faults(self, saver: Saver, *, may_lack: int = 0) -> Iterator[str]:
        """Rows that differ from the acknowledged ones; `may_lack` of the last steps may be missing."""
        stored = list(saver.list({"configurable": {"thread_id": self.thread_id}}))[::-1]
        found = [item.checkpoint["id"] for item in stored]
        if found != self.ids[: len(found)]:
            yield f"{self.thread_id}: checkpoints are missing in the middle, or nobody has put them"
            return
        if len(found) < self.put - may_lack:
            yield f"{self.thread_id}: {self.put} puts were acknowledged, {len(found)} are there"
        for number, item in enumerate(stored):
            if item.checkpoint["channel_values"] != values(self.thread_id, number) or item.metadata["step"] != number:
                yield f"{self.thread_id}: step {number} has other values than were put"
            pending = [(channel, value) for _, channel, value in item.pending_writes or []]
            must_be_there = number < self.written - may_lack
            if pending != writes(self.thread_id, number) and (pending or must_be_there):
                yield f"{self.thread_id}: the writes of step {number} are not what was put, or not all"

    def _next(self) -> tuple[Checkpoint, dict[str, Any], dict[str, int]]:
        number = self.put
        versions = {"texts": number + 1, "number": number + 1}
        checkpoint = Checkpoint(
            v=4,
            id=new_id(),
            ts="2026-01-01T00:00:00+00:00",
            channel_values=values(self.thread_id, number),
            channel_versions={**versions},
            versions_seen={},
            updated_channels=None,
        )
        self.ids.append(checkpoint["id"])
        return checkpoint, {"source": "loop", "step": number}, versions


def values(thread_id: str, number: int) -> dict[str, Any]:
    """The state after a step."""
    return {"texts": [_text(thread_id, each) for each in range(max(number - _KEPT, 0), number + 1)], "number": number}


def writes(thread_id: str, number: int) -> list[tuple[str, Any]]:
    """The writes of a step's task."""
    return [("texts", _text(thread_id, number)), ("number", number), ("more", _text(thread_id, -number - 1))]


def _text(thread_id: str, number: int) -> str:
    """A text that shares nothing with any other."""
    return "".join(hashlib.sha256(f"{thread_id} {number} {part}".encode()).hexdigest() for part in range(16))


class Load:
    """Writers that go on until the block ends, half of them threads, half tasks of one event loop.

    Each waits `pause` seconds after a step, so that a long wait for a server does not make more rows than it needs.
    """

    def __init__(self, saver: Saver, name: str, writers: int, *, pause: float = 0) -> None:
        self.logs = [ClientLog(f"{name}, writer {number}") for number in range(writers)]
        self._saver = saver
        self._pause = pause
        self._enough = threading.Event()
        self._errors: list[BaseException] = []

    @property
    def acknowledged(self) -> int:
        """How many puts were acknowledged to all of them."""
        return sum(log.put for log in self.logs)

    def wait_for(self, puts: int) -> None:
        """Wait until so many more puts are acknowledged to every writer. Raises the error of a writer."""
        least = [log.put + puts for log in self.logs]
        until = time.monotonic() + _LONG
        while any(log.put < number for log, number in zip(self.logs, least, strict=True)):
            self._raise()
            if time.monotonic() > until:
                raise AssertionError(f"the writers do not get on: {[log.put for log in self.logs]}")
            time.sleep(0.002)

    @contextmanager
    def running(self) -> Iterator["Load"]:
        """Start the writers; at the end wait for their last calls. Raises the error of a writer."""
        half = len(self.logs) // 2
        jobs: list[Callable[[], None]] = [self._writer(log) for log in self.logs[:half]]
        jobs.append(lambda: asyncio.run(self._tasks(self.logs[half:])))
        workers = [threading.Thread(target=self._guarded, args=(job,)) for job in jobs]
        for worker in workers:
            worker.start()
        try:
            yield self
        finally:
            self._enough.set()
            for worker in workers:
                worker.join()
        self._raise()

    def _writer(self, log: ClientLog) -> Callable[[], None]:
        def write() -> None:
            while not self._enough.is_set():
                log.step(self._saver)
                time.sleep(self._pause)

        return write

    async def _tasks(self, logs: Sequence[ClientLog]) -> None:
        async def write(log: ClientLog) -> None:
            while not self._enough.is_set():
                await log.astep(self._saver)
                await asyncio.sleep(self._pause)

        await asyncio.gather(*map(write, logs))

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001 - it is raised in the caller that waits for the writers
            self._errors.append(error)

    def _raise(self) -> None:
        if self._errors:
            raise self._errors[0]


def all_faults(logs: Sequence[ClientLog], saver: Saver, *, may_lack: int = 0) -> list[str]:
    """The faults of all logs, and the saver's own findings in their threads."""
    found = [fault for log in logs for fault in log.faults(saver, may_lack=may_lack)]
    for log in logs:
        found += [f"{problem}" for problem in saver.verify(log.thread_id).problems if problem.kind != "orphan"]
    return found
