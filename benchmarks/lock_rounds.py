"""Lock rounds: everything at once on one thread of a Postgres database, which must end without a deadlock.

    python benchmarks/lock_rounds.py [--seconds 600] [--processes 4] [--url URL]

Each process has four threads. They put in two namespaces, also under ids of a clock that was set back and over existing
ones; they store pending writes, take leases, prune, delete checkpoints and the thread, copy and rename it, and read.
A conflict, a deleted thread and the like are expected here. The script prints how often it did each operation, and its
median and longest time. It fails if the server had a deadlock, if an operation raised any other error, or if `verify`
finds a problem afterwards. Without a URL it starts a server, with fsync.

A segment without a reference is a problem, too, and is printed with the operations around the one that stored it. Only
where something was stored twice in one place, one of the two may be left behind until the thread is pruned.
"""

import argparse
import multiprocessing
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from queue import SimpleQueue
from typing import Any, NamedTuple

import psycopg

import servers
from threadmark import (
    Checkpoint,
    ConflictError,
    LeaseLostError,
    Saver,
    ThreadBusyError,
    ThreadDeletedError,
    ThreadNotFoundError,
    new_id,
)
from threadmark.format.stored import announced_size, expand
from threadmark.ids import uuid6_text
from threadmark.program import read, run
from threadmark.saver.operations.removing import Rule, removal_of
from threadmark_postgres import PostgresSaver

THREAD, COPY = "thread", "copy"
OUTCOMES = (ConflictError, LeaseLostError, ThreadBusyError, ThreadDeletedError, ThreadNotFoundError)
"""Errors that an operation may raise because another client was quicker."""

_THREADS = 4
_BEGUN = attrgetter("begun")
_SOON = 0.3
"""Seconds after an operation in which others are printed with it."""
_DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


class Outcome(NamedTuple):
    """How one operation ended."""

    operation: str
    begun: float
    """By a clock that all processes share."""
    seconds: float
    failure: str
    """Empty if it was done, or refused as it may be."""
    place: str = ""
    """The checkpoint, or the task's writes, that it stored."""
    mark: str = ""
    """A number that is in all texts that it stored."""

    def __str__(self) -> str:
        """Name its time, its kind and its place."""
        return f"{self.begun:.3f} to {self.begun + self.seconds:.3f} s: {self.operation} {self.place}".rstrip()


class Worker:
    """A client that does everything."""

    def __init__(self, saver: Saver, chance: random.Random) -> None:
        self._saver = saver
        self._chance = chance
        self._config = _place("")
        self._made: list[Checkpoint] = []
        self.stored = "", ""
        """The place and the mark of the last operation that stored something."""

    def operations(self) -> dict[Callable[[], object], int]:
        """Every operation, and how often it is chosen."""
        return {
            self.put: 30,
            self.put_writes: 30,
            self.put_in_child: 8,
            self.put_expecting_the_newest: 5,
            self.put_earlier: 3,
            self.put_again: 3,
            self.put_under_a_lease: 3,
            self.prune: 5,
            self.delete_checkpoint: 3,
            self.update_thread: 3,
            self.copy_thread: 1,
            self.rename_thread: 1,
            self.delete_thread: 1,
            self.get: 8,
            self.history: 3,
        }

    def put(self) -> None:
        """Continue the last checkpoint of this worker."""
        self._config = self._put(self._config)

    def put_in_child(self) -> None:
        """Begin another namespace, or put to it."""
        self._put(_place("child"))

    def put_expecting_the_newest(self) -> None:
        """Put unless another client was quicker."""
        newest = self._saver.get_tuple(_place(""))
        self._config = self._put(newest.config if newest else _place(""), expect_newest=True)

    def put_earlier(self) -> None:
        """Put under an id of an hour ago."""
        ticks = int(time.time() - 3600) * 10_000_000 + 0x01B21DD213814000
        self._put(self._config, uuid6_text(ticks, self._chance.getrandbits(48)))

    def put_again(self) -> None:
        """Put a checkpoint again, with other values."""
        if self._made:
            self._put(_place(""), self._chance.choice(self._made)["id"])

    def put_writes(self) -> None:
        """Store a task's writes: sometimes to a special channel too, and sometimes again."""
        special = [("__error__", self._chance.random())] if self._chance.random() < 0.3 else []
        config, task = self._config_of_a_checkpoint(), f"task {self._chance.randrange(3)}"
        mark = self._mark(f"writes of {task} after {config['configurable']['checkpoint_id']}")
        self._saver.put_writes(config, [("messages", f"{mark} " * 200), *special], task)

    def put_under_a_lease(self) -> None:
        """Take the thread's lease and put under it."""
        with self._saver.lease(THREAD, ttl=2, timeout=0.5) as lease:
            self._config = self._put(lease.config | {})

    def prune(self) -> None:
        """Keep the last three checkpoints."""
        self._saver.prune([THREAD], keep_last=3)

    def delete_checkpoint(self) -> None:
        """Delete one that this worker made, if it is there."""
        self._saver.delete_checkpoint(self._config_of_a_checkpoint())

    def update_thread(self) -> None:
        """Give the thread another title."""
        self._saver.update_thread(THREAD, title=f"title {self._chance.random()}")

    def copy_thread(self) -> None:
        """Copy the thread over the one before."""
        self._saver.delete_thread(COPY)
        self._saver.copy_thread(THREAD, COPY)

    def rename_thread(self) -> None:
        """Rename the copy to the thread, if that is gone."""
        self._saver.delete_thread(THREAD)
        self._saver.rename_thread(COPY, THREAD)

    def delete_thread(self) -> None:
        """Delete the thread."""
        self._saver.delete_thread(THREAD)

    def get(self) -> None:
        """Read the newest checkpoint."""
        self._saver.get_tuple(_place(""))

    def history(self) -> None:
        """Read the last checkpoints."""
        list(self._saver.list(_place(""), limit=5))

    def _put(self, config: dict[str, Any], checkpoint_id: str | None = None, **options: Any) -> dict[str, Any]:
        checkpoint_id = checkpoint_id or new_id()
        mark = self._mark(f"checkpoint {checkpoint_id}")
        messages = [f"message {number} of {mark} " * 20 for number in range(self._chance.randrange(9))]
        checkpoint: Checkpoint = {
            "id": checkpoint_id,
            "channel_values": {"messages": messages},
            "channel_versions": {"messages": self._chance.randrange(1 << 30)},
        }
        versions = checkpoint["channel_versions"]
        stored = self._saver.put(config, checkpoint, {"step": 1}, versions, **options)
        self._made = [*self._made[-5:], checkpoint]
        return stored

    def _mark(self, place: str) -> str:
        """Return a number for all texts that are stored in this place now."""
        self.stored = place, str(self._chance.random())
        return self.stored[1]

    def _config_of_a_checkpoint(self) -> dict[str, Any]:
        if not self._made:
            return self._put(_place(""))
        return _place("", self._chance.choice(self._made)["id"])


def _place(ns: str, checkpoint_id: str | None = None) -> dict[str, Any]:
    place = {"thread_id": THREAD, "checkpoint_ns": ns}
    return {"configurable": place | ({} if checkpoint_id is None else {"checkpoint_id": checkpoint_id})}


def work(saver: Saver, until: float, seed: str) -> Iterator[Outcome]:
    """Do operations by chance until the time is over, and tell how each ended."""
    chance = random.Random(seed)
    worker = Worker(saver, chance)
    operations = worker.operations()
    while time.monotonic() < until:
        (operation,) = chance.choices(list(operations), list(operations.values()))
        worker.stored = "", ""
        failure, begun = "", time.monotonic()
        try:
            operation()
        except OUTCOMES:
            pass
        except Exception as error:  # noqa: BLE001 - all are reported
            failure = f"{type(error).__name__}: {error}"
        yield Outcome(operation.__name__, begun, time.monotonic() - begun, failure, *worker.stored)


def process(url: str, seconds: float, seed: int, told: "multiprocessing.Queue[list[Outcome]]") -> None:
    """One of the processes."""
    until = time.monotonic() + seconds
    outcomes: SimpleQueue[Outcome] = SimpleQueue()

    def run(number: int) -> None:
        for outcome in work(saver, until, f"{seed} {number}"):
            outcomes.put(outcome)

    with PostgresSaver(url, pool_size=_THREADS) as saver:
        workers = [threading.Thread(target=run, args=(number,)) for number in range(_THREADS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    told.put([outcomes.get() for _ in range(outcomes.qsize())])


def lock_rounds(url: str, seconds: float, processes: int) -> list[Outcome]:
    """Do everything at once, and return how each operation ended."""
    with PostgresSaver(url) as saver:
        saver.setup()
    context = multiprocessing.get_context("spawn")
    told: multiprocessing.Queue[list[Outcome]] = context.Queue()
    children = [context.Process(target=process, args=(url, seconds, seed, told)) for seed in range(processes)]
    for child in children:
        child.start()
    outcomes = [outcome for _ in children for outcome in told.get(timeout=seconds + 120)]
    for child in children:
        child.join()
    return outcomes


def orphans(saver: Saver, thread_id: str) -> dict[bytes, bytes]:
    """The segments of a thread that nothing refers to: their keys and bytes."""
    if saver.get_thread(thread_id) is None:
        return {}
    context, driver = saver._context, saver._driver  # noqa: SLF001 - reports tell how many there are, and not which
    nothing = Rule(everything=False, choose=lambda _: set())
    swept = run(driver, read(removal_of, context, thread_id, nothing)).segments
    found = run(driver, read(context.store.segments, thread_id, swept))
    return {key: expand(data, announced_size(data)) for key, data in found.items()}


def unexplained(saver: Saver, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Describe each segment without a reference, unless its place was stored to again."""
    times = Counter(outcome.place for outcome in outcomes)
    for thread_id in (THREAD, COPY):
        for key, data in orphans(saver, thread_id).items():
            storing = [outcome for outcome in outcomes if outcome.mark and outcome.mark.encode() in data]
            if storing and all(times[outcome.place] > 1 for outcome in storing):
                continue
            named = f"thread {thread_id!r}: nothing refers to segment {key.hex()} of {len(data):,} bytes, {data[:60]!r}"
            lines = [line for stored in storing for line in (f"stored by {stored}", *_around(stored, outcomes))]
            yield "\n    ".join([named, *lines])


def _around(one: Outcome, outcomes: Sequence[Outcome]) -> list[str]:
    """Describe the operations that ran at the same time as this one, or began soon after it."""
    ends = one.begun + one.seconds
    near = [each for each in outcomes if each.begun + each.seconds > one.begun and each.begun < ends + _SOON]
    return [f"near it {each}" for each in sorted(near, key=_BEGUN) if each is not one]


def deadlocks(url: str) -> int:
    """How many the server has counted in this database."""
    with psycopg.connect(url) as connection:
        ((number,),) = connection.execute(_DEADLOCKS).fetchall()
    return int(number)


def main() -> int:
    """Print the counts, and return whether anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--url", help="of an empty Postgres database; by default a server of its own")
    asked = parser.parse_args()
    with servers.postgres(asked.url) as url:
        outcomes = lock_rounds(url, asked.seconds, asked.processes)
        number = deadlocks(url)
        with PostgresSaver(url) as saver:
            found = saver.verify(decode=True).problems
            problems = [str(problem) for problem in found if problem.kind != "orphan"]
            problems += unexplained(saver, outcomes)
    by_name: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_name.setdefault(outcome.operation, []).append(outcome)
    print("| operation | times | median | longest |")
    print("|---|---:|---:|---:|")
    for name, each in sorted(by_name.items()):
        taken = sorted(outcome.seconds for outcome in each)
        print(f"| {name} | {len(each):,} | {1000 * taken[len(taken) // 2]:.1f} ms | {1000 * taken[-1]:.0f} ms |")
    failures = Counter(outcome.failure for outcome in outcomes if outcome.failure)
    print(f"deadlocks: {number}; failures: {sum(failures.values())}; problems found afterwards: {len(problems)}")
    for text, times in failures.most_common(20):
        print(f"{times} times {text}")
    for problem in problems[:20]:
        print(problem)
    return int(bool(number or failures or problems))


if __name__ == "__main__":
    sys.exit(main())
