"""Many callers of one file at once: whoever was answered is seen by all who ask later, and everybody is answered.

Threads with savers of their own or a common one, the main thread, which is interrupted, an event loop and another
process store and read. Some of what they ask for fails.
"""

import asyncio
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from children import child, finished, line_from
from length import ALL
from sqlite_file import looking_at
from threadmark.program import Program, Transaction
from threadmark_conformance.engine import at, checkpoint, early_id
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.steps import execute, execute_alone

STEPS = 400 if ALL else 25
THREADS = 8
PATIENCE = 600 if ALL else 120

OTHER_PROCESS = """
import sys, random
from threadmark_sqlite import SqliteSaver
from threadmark_conformance.engine import at, checkpoint, early_id
path, count = sys.argv[1], int(sys.argv[2])
with SqliteSaver(path, durability="normal") as saver:
    config = at("process")
    for number in range(count):
        made = checkpoint({"n": number}, {"n": number}, checkpoint_id=early_id(number))
        config = saver.put(config, made, {}, {"n": number})
        saver.put_writes(config, [("n", number)], "task")
        print(number, flush=True)
"""


class WrongError(Exception):
    """What some transactions raise."""


class Progress:
    """How far the writer of each thread has come, as it was told: whoever asks from now on must see that much."""

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
        """Whether a checkpoint is that number, or a later one."""
        seen = -1 if found is None else found.checkpoint["channel_values"]["n"]
        assert seen >= expected, (seen, expected)


def _made(number: int) -> Any:
    return checkpoint({"n": number, "text": f"{number} " * 100}, {"n": number}, checkpoint_id=early_id(number))


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


def _put(saver: SqliteSaver, progress: Progress, name: str, number: int) -> None:
    config = at(name, "", early_id(number - 1) if number else None)
    saver.put(config, _made(number), {}, {"n": number})
    progress.acknowledged[name] = number
    saver.put_writes(at(name, "", early_id(number)), [("n", number)], "task")


def _work(saver: SqliteSaver, progress: Progress, name: str) -> None:
    """What one thread does."""
    chance = random.Random(name)
    for number in range(STEPS):
        _put(saver, progress, name, number)
        progress.read(saver, name)
        progress.read(saver, chance.choice([*list(progress.acknowledged), "process"]))
        kind = chance.randrange(8)
        if kind == 0:
            error = chance.choice([WrongError(), KeyboardInterrupt()])
            with pytest.raises(type(error)):
                saver._driver.run(Transaction(partial(_failing, error), writes=True))
        elif kind == 1:
            assert saver._driver.run(Transaction(_looks_twice, writes=False))


async def _on_a_loop(saver: SqliteSaver, progress: Progress) -> None:
    """What the tasks of an event loop do, some of which are cancelled."""

    async def work(name: str) -> None:
        for number in range(STEPS):
            parent = at(name, "", early_id(number - 1) if number else None)
            await saver.aput(parent, _made(number), {}, {"n": number})
            progress.acknowledged[name] = number
            progress.compare(await saver.aget_tuple(at(name)), number)
            cancelled = asyncio.ensure_future(saver.aput(at("cancelled"), _made(number), {}, {"n": number}))
            await asyncio.sleep(0)
            cancelled.cancel()
            with suppress(asyncio.CancelledError):
                await cancelled

    await asyncio.gather(*(work(f"task {number}") for number in range(3)))


@pytest.fixture
def hectic() -> Iterator[None]:
    """Threads take turns a hundred times as often as they would, so that they meet in more places."""
    former = sys.getswitchinterval()
    sys.setswitchinterval(former / 100)
    yield
    sys.setswitchinterval(former)


@contextmanager
def _interrupts() -> Iterator[None]:
    """What interrupts the main thread does so with an error."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, interrupt)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def _interrupted(
    saver: SqliteSaver, progress: Progress, chance: random.Random, others: Sequence[threading.Thread]
) -> int:
    """Put and read on the main thread, which is interrupted anywhere. Returns how many were stored for certain."""
    number = 0
    while any(each.is_alive() for each in others):
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0001, 0.02))
            _put(saver, progress, "main", number)
            progress.read(saver, "main")
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
        stored = saver.get_tuple(at("main"))
        progress.compare(stored, progress.acknowledged.get("main", -1))
        number = 0 if stored is None else stored.checkpoint["channel_values"]["n"] + 1
    return number


def _kept(progress: Progress, work: Callable[[], Any]) -> None:
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - raised by the test
        progress.errors.append(error)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no timer there that interrupts")
@pytest.mark.usefixtures("hectic")
def test_everybody_is_answered_and_sees_what_was_acknowledged(tmp_path: Path) -> None:
    path, progress = tmp_path / "threads.db", Progress()
    with SqliteSaver(path, durability="normal") as one, SqliteSaver(path, durability="normal") as another:
        work: list[Callable[[], Any]] = [
            partial(_work, (one, another)[index % 3 == 2], progress, f"thread {index}") for index in range(THREADS)
        ]
        work.append(lambda: asyncio.run(_on_a_loop(one, progress)))
        process = child(OTHER_PROCESS, path, STEPS)

        def follow() -> None:
            for number in range(STEPS):
                assert line_from(process.stdout) == str(number)
                progress.acknowledged["process"] = number
                progress.read(one, "process")

        threads = [threading.Thread(target=partial(_kept, progress, each), daemon=True) for each in (*work, follow)]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        with _interrupts():
            stored = _interrupted(one, progress, random.Random(1), threads)
        for thread in threads:
            thread.join(max(0.0, PATIENCE - time.monotonic() + begun))
            assert not thread.is_alive()
        finished(process)
        assert progress.errors == []
        for name, last in progress.acknowledged.items():
            found = list(another.list(at(name)))
            assert [each.checkpoint["channel_values"]["n"] for each in found] == list(range(len(found)))[::-1]
            assert len(found) == last + 1 or name == "main"
        assert stored >= progress.acknowledged.get("main", -1)
        assert one.verify().problems == []
    with looking_at(path) as connection:
        connection.execute("BEGIN IMMEDIATE")  # nobody holds the lock
        connection.execute("ROLLBACK")
