"""Workers of a chaos round, each a process that can be killed at any moment.

    python tests/replication/workers.py

A process without threads, in which everything is imported, forks one for each line that it is given: a worker takes
steps until SIGTERM, and notes the answers in a file.
"""

import asyncio
import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Self

from replication.actor import Actor, atake_step, take_step
from replication.journal import Journal
from replication.links import Way, linked
from replication.servers import open_side
from threadmark import Saver
from threadmark.replication import ReplicatedSaver, replicated

_LONGEST_PAUSE = 0.01


class Task(NamedTuple):
    """The work of a worker."""

    name: str
    seed: str
    api: str
    sides: tuple[str, str]
    """The URLs of both databases."""
    ways: tuple[str, str]
    """For each side the file that says how a database in a file can be reached; "" for a server, which has a gate."""
    journal: str
    shared: tuple[str, ...]
    options: dict[str, Any]


class Workers:
    """Starts workers, from a separate process."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._parent = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def start(self, task: Task) -> int:
        """Start one. Returns its process id."""
        assert self._parent.stdin
        assert self._parent.stdout
        self._parent.stdin.write(json.dumps(task) + "\n")
        self._parent.stdin.flush()
        return int(self._parent.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._parent.communicate(timeout=60)


def is_running(process: int) -> bool:
    """Whether a worker is there. The process that forked them lets the kernel forget those that ended."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def open_pair(sides: tuple[str, str], ways: tuple[str, str], options: dict[str, Any]) -> ReplicatedSaver:
    """Open the pair, each side as it is reached."""
    primary, secondary = (_opened(url, way) for url, way in zip(sides, ways, strict=True))
    return replicated(primary, secondary, **options)


def _opened(url: str, way: str) -> Saver | str:
    return linked(open_side(url), lambda: way_in(way))[0] if way else url


def way_in(file: str) -> Way:
    """The way that a file names; it is open without one."""
    try:
        way: Way = Path(file).read_text()  # type: ignore[assignment]  # nothing else is written there
    except FileNotFoundError:
        return "open"
    return way


class _Worker:
    def __init__(self, task: Task) -> None:
        self._file = os.open(task.journal, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        self._journal = Journal(task.name, lambda line: os.write(self._file, line.encode()))
        self._task = task
        self._actor = Actor(task.seed, self._journal, task.shared)
        self._chance = random.Random(task.seed)
        self._over = False

    def stop(self, _: int, __: FrameType | None) -> None:
        self._over = True

    def run(self) -> None:
        task = self._task
        pair = open_pair(task.sides, task.ways, task.options)
        if task.api == "asyncio":
            asyncio.run(self._arun(pair))
        else:
            while not self._over:
                take_step(self._actor, pair)
                time.sleep(self._chance.uniform(0, _LONGEST_PAUSE))
            pair.close()
        self._journal.over()

    async def _arun(self, pair: ReplicatedSaver) -> None:
        while not self._over:
            await atake_step(self._actor, pair)
            await asyncio.sleep(self._chance.uniform(0, _LONGEST_PAUSE))
        await pair.aclose()


def _be_one(task: Task) -> None:
    worker = _Worker(task)
    signal.signal(signal.SIGTERM, worker.stop)
    worker.run()


def _in_child(work: Callable[[], object], errors: Path) -> int:
    process = os.fork()
    if process:
        return process
    try:
        work()
    except BaseException:  # noqa: BLE001 - it ends this process, and its parent reads the reason
        errors.write_text(traceback.format_exc())
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Fork a worker for each line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    logging.getLogger("threadmark").setLevel(logging.CRITICAL)
    for line in sys.stdin:
        task = Task(**dict(zip(Task._fields, json.loads(line), strict=True)))
        process = _in_child(lambda: _be_one(task), Path(f"{task.journal}.error"))  # noqa: B023 - called at once
        sys.stdout.write(f"{process}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
