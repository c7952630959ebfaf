"""Lock rounds: everything at once on one thread of a Postgres database, which must end without a deadlock.

    python benchmarks/lock_rounds.py [--seconds 600] [--processes 4] [--url URL]

Each process has four threads. They put in two namespaces, also under ids of a clock that was set back and over existing
ones; they store pending writes, take leases, prune, delete checkpoints and the thread, copy and rename it, and read.
A conflict, a deleted thread and the like are expected here. The script prints how often it did each operation, and its
median and longest time. It fails if the server had a deadlock, if an operation raised any other error, or if `verify`
finds a problem afterwards. Without a URL it starts a server, with fsync.
"""

import argparse
import multiprocessing
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
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
from threadmark.ids import uuid6_text
from threadmark_postgres import PostgresSaver

THREAD, COPY = "thread", "copy"
OUTCOMES = (ConflictError, LeaseLostError, ThreadBusyError, ThreadDeletedError, ThreadNotFoundError)
"""Errors that an operation may raise because another client was quicker."""

_THREADS = 4
_DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


class Outcome(NamedTuple):
    """How one operation ended."""

    operation: str
    seconds: float
    failure: str
    """Empty if it was done, or refused as it may be."""


class Worker:
    """A client that does everything."""

    def __init__(self, saver: Saver, chance: random.Random) -> None:
        self._saver = saver
        self._chance = chance
        self._config = _place("")
        self._made: list[Checkpoint] = []

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
        writes = [("messages", f"{self._chance.random()} " * 200), *special]
        self._saver.put_writes(self._config_of_a_checkpoint(), writes, f"task {self._chance.randrange(3)}")

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
        messages = [f"message {number} of {self._chance.random()} " * 20 for number in range(self._chance.randrange(9))]
        checkpoint: Checkpoint = {
            "id": checkpoint_id or new_id(),
            "channel_values": {"messages": messages},
            "channel_versions": {"messages": self._chance.randrange(1 << 30)},
        }
        versions = checkpoint["channel_versions"]
        stored = self._saver.put(config, checkpoint, {"step": 1}, versions, **options)
        self._made = [*self._made[-5:], checkpoint]
        return stored

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
        begun = time.monotonic()
        failure = ""
        try:
            operation()
        except OUTCOMES:
            pass
        except Exception as error:  # noqa: BLE001 - all are reported
            failure = f"{type(error).__name__}: {error}"
        yield Outcome(operation.__name__, time.monotonic() - begun, failure)


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
            problems = saver.verify(decode=True).problems
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
