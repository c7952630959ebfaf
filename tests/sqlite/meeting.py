"""Threads with separate savers or a common one, an event loop, another process and the main thread, on one file.

All store and read at once, the main thread is interrupted anywhere, and some of their calls fail. It is a
program, because an interrupt could harm whatever else runs in the same process. It ends with an error if a caller reads
less than was acknowledged before, or gets no answer. By hand: `cd tests; python -m sqlite.meeting FILE --help`.
"""

import argparse
import asyncio
import faulthandler
import json
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from children import child, finished, line_from
from sqlite_file import looking_at
from threadmark.program import Program, Transaction
from threadmark_conformance.engine import at, checkpoint, early_id
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.steps import execute, execute_alone

THREADS = 8
TASKS = 3

OTHER_PROCESS = """
import sys, time
from threadmark_sqlite import SqliteSaver
from threadmark_conformance.engine import at, checkpoint, early_id
path, durability, steps, seconds = sys.argv[1:]
with SqliteSaver(path, durability=durability) as saver:
    config, number, end = at("process"), 0, time.monotonic() + float(seconds)
    while number < int(steps) and time.monotonic() < end:
        made = checkpoint({"n": number}, {"n": number}, checkpoint_id=early_id(number))
        config = saver.put(config, made, {}, {"n": number})
        saver.put_writes(config, [("n", number)], "task")
        print(number, flush=True)
        number += 1
"""


class Length(NamedTuple):
    """The number of steps, or the time, after which all stop."""

    steps: int
    end: float

    def lasts(self, number: int) -> bool:
        """Whether there is a step of this number. There is a first one."""
        return number < self.steps and (number == 0 or time.monotonic() < self.end)


class WrongError(Exception):
    """The error of some transactions."""


class Progress:
    """The last acknowledged step of each thread's writer: a later reader must see that much."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, int] = {}
        self.errors: list[BaseException] = []

    def read(self, saver: SqliteSaver, thread_id: str) -> None:
        """Read a thread, in one of several ways, and compare."""
        expected = self.acknowledged.get(thread_id, -1)
        way = random.randrange(3)
        if way == 0:
            found = saver.get_tuple(at(thread_id))
        elif way == 1 and expected >= 0:
            found = saver.get_tuple(at(thread_id, "", early_id(expected)))
        else:
            found = next(iter(saver.list(at(thread_id), limit=2)), None)
        self.compare(found, expected)

    def compare(self, found: Any, expected: int) -> None:
        """Fail unless a checkpoint is that number, or a later one."""
        seen = -1 if found is None else found.checkpoint["channel_values"]["n"]
        assert seen >= expected, (seen, expected)

    def keep_errors(self, work: Callable[[], Any]) -> None:
        """Work on a thread, whose errors would be lost."""
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the program ends with it
            self.errors.append(error)


def _made(number: int) -> Any:
    return checkpoint({"n": number, "text": f"{number} " * 100}, {"n": number}, checkpoint_id=early_id(number))


def _put(saver: SqliteSaver, progress: Progress, name: str, number: int) -> None:
    config = at(name, "", early_id(number - 1) if number else None)
    saver.put(config, _made(number), {}, {"n": number})
    progress.acknowledged[name] = number
    saver.put_writes(at(name, "", early_id(number)), [("n", number)], "task")


def _failing(error: BaseException) -> Program[None]:
    yield from execute("UPDATE threadmark_thread SET epoch = epoch + 1")
    raise error


def _looks_twice() -> Program[bool]:
    """Whether all that a program reads is of one snapshot, which begins with a statement without a transaction."""
    count = "SELECT count(*) FROM threadmark_checkpoint"
    first = yield from execute_alone(count)
    second = yield from execute(count)
    third = yield from execute(count)
    return first == second == third


def _fail(saver: SqliteSaver, expected: BaseException) -> None:
    """Run a transaction that raises."""
    try:
        saver._driver.run(Transaction(_failing, (expected,), writes=True))
    except BaseException as error:
        if error is not expected:
            raise
    else:
        raise AssertionError("a transaction that raises must not end well")


def _on_a_thread(saver: SqliteSaver, progress: Progress, length: Length, name: str) -> None:
    """The work of each of the threads."""
    chance, number = random.Random(name), 0
    while length.lasts(number):
        _put(saver, progress, name, number)
        progress.read(saver, name)
        progress.read(saver, chance.choice([*list(progress.acknowledged), "process"]))
        kind = chance.randrange(8)
        if kind == 0:
            _fail(saver, chance.choice([WrongError(), KeyboardInterrupt()]))
        elif kind == 1:
            assert saver._driver.run(Transaction(_looks_twice, writes=False))
        number += 1


async def _on_a_loop(saver: SqliteSaver, progress: Progress, length: Length) -> None:
    """The work of the tasks of an event loop, some of which are cancelled."""

    async def work(name: str) -> None:
        number = 0
        while length.lasts(number):
            parent = at(name, "", early_id(number - 1) if number else None)
            await saver.aput(parent, _made(number), {}, {"n": number})
            progress.acknowledged[name] = number
            progress.compare(await saver.aget_tuple(at(name)), number)
            cancelled = asyncio.ensure_future(saver.aput(at("cancelled"), _made(number), {}, {"n": number}))
            await asyncio.sleep(0)
            cancelled.cancel()
            with suppress(asyncio.CancelledError):
                await cancelled
            number += 1

    await asyncio.gather(*(work(f"task {number}") for number in range(TASKS)))


def _beside_a_process(saver: SqliteSaver, progress: Progress, process: Any) -> None:
    """Read the writes of another process, as soon as it reports them."""
    while line := line_from(process.stdout):
        assert int(line) == progress.acknowledged.get("process", -1) + 1
        progress.acknowledged["process"] = int(line)
        progress.read(saver, "process")
    finished(process)  # or its error appears here


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _interrupted(saver: SqliteSaver, progress: Progress, others: Sequence[threading.Thread]) -> tuple[int, int]:
    """Put and read on the main thread, which is interrupted anywhere, as long as others work.

    Returns how many checkpoints are stored for certain, and how often it was interrupted.
    """
    signal.signal(signal.SIGALRM, _interrupt)
    chance, number, interrupts = random.Random(1), 0, 0
    while any(each.is_alive() for each in others):
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0001, 0.02))
            _put(saver, progress, "main", number)
            progress.read(saver, "main")
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            interrupts += 1
        stored = saver.get_tuple(at("main"))
        progress.compare(stored, progress.acknowledged.get("main", -1))
        number = 0 if stored is None else stored.checkpoint["channel_values"]["n"] + 1
    return number, interrupts


def meet(path: Path, durability: Any, length: Length) -> dict[str, int]:
    """Have all of them work. Returns figures of it."""
    progress = Progress()
    with SqliteSaver(path, durability=durability) as one, SqliteSaver(path, durability=durability) as another:
        process = child(OTHER_PROCESS, path, durability, length.steps, max(0.0, length.end - time.monotonic()))
        savers = [another if index % 3 == 2 else one for index in range(THREADS)]
        work: list[Callable[[], Any]] = [
            *(partial(_on_a_thread, each, progress, length, f"thread {index}") for index, each in enumerate(savers)),
            lambda: asyncio.run(_on_a_loop(one, progress, length)),
            partial(_beside_a_process, one, progress, process),
        ]
        threads = [threading.Thread(target=progress.keep_errors, args=(each,)) for each in work]
        for each in threads:
            each.start()
        stored, interrupts = _interrupted(one, progress, threads)
        for error in progress.errors:
            traceback.print_exception(error)
        assert not progress.errors
        assert stored > progress.acknowledged.get("main", -1)
        for name, last in progress.acknowledged.items():
            found = [item.checkpoint["channel_values"]["n"] for item in another.list(at(name))]
            assert found == list(range(len(found)))[::-1], name
            # A write that was interrupted before its answer may be stored a little later.
            assert len(found) >= stored if name == "main" else len(found) == last + 1, name
        assert one.verify().problems == []
    with looking_at(path) as connection:
        connection.execute("BEGIN IMMEDIATE")  # the lock is free
        connection.execute("ROLLBACK")
    return {"writers": len(progress.acknowledged), "interrupts": interrupts, "stored": stored}


def main() -> None:
    """Do so, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--durability", default="full")
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=5.0, help="no step begins later")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds after which somebody hangs")
    given = parser.parse_args()
    faulthandler.dump_traceback_later(given.patience, exit=True)
    # Threads take turns a hundred times as often as they would, so that they meet in more places.
    sys.setswitchinterval(sys.getswitchinterval() / 100)
    length = Length(given.steps, time.monotonic() + given.seconds)
    json.dump(meet(given.path, given.durability, length), sys.stdout)


if __name__ == "__main__":
    main()
