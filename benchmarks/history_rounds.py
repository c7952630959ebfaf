"""History rounds: clients of all kinds share threads, and each thread's journal is searched for an order that fits it.

    python benchmarks/history_rounds.py --seconds 60
    python benchmarks/history_rounds.py --seconds 600 --backends sqlite postgres

Threads of one process and tasks of another one put checkpoints, put writes, get, list, copy and delete, on Threadmark's
savers and on LangGraph's own, in short rounds that take turns. Every call is noted with its begin and its end. A thread
is in order if its calls can have happened one after another, each between its begin and its end (linearizability).

The rounds are of two kinds: without deletions, and with threads that are deleted while others go on with them. A fork
is a second child of one checkpoint, which every saver allows without a lease. A checkpoint without its parent is one
that was put to a thread after that was deleted. Threadmark refuses to continue such a checkpoint. A list on Redis is
read in several steps, so that it may be of no one moment; it is counted, and is no failure.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from histories.checker import IN_STEPS, by_thread, forks, kinds, orphans, verdict
from histories.parties import PARTIES, Party, Round, play_round
from histories.savers import OURS, THEIRS, Place
from histories.spec import Operation
from postgres.cluster import Cluster
from redis_backend.processes import DURABLE, RedisProcess

SECONDS = 2.0
"""The length of a round."""

COLUMNS = ("saver", "deletions", "rounds", "calls", "failed", "refused", "threads", "without an order", "undecided")
MORE = ("forks", "without parent", "reads that no order explains")


@dataclass
class Row:
    """The counts of one saver, over all rounds of a kind."""

    place: Place
    deletes: bool
    rounds: int = 0
    calls: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    threads: int = 0
    disordered: int = 0
    undecided: int = 0
    forks: int = 0
    orphans: int = 0
    faults: int = 0
    """The reads without an order, but for those that are known to be made in several steps."""
    kinds: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, calls: Sequence[Operation]) -> None:
        """Count the calls of a round, and the faults that the checker finds."""
        self.rounds += 1
        self.calls += len(calls)
        self.failed.update(_failure(each) for each in calls if each.error and not each.refused)
        self.refused += sum(each.refused for each in calls)
        self.forks += forks(calls)
        self.orphans += orphans(calls)
        for each in by_thread(calls).values():
            found = verdict(each, refuses=self.place.ours)
            self.threads += 1
            self.disordered += bool(found.unexplained)
            self.undecided += found.undecided
            in_steps = IN_STEPS.get(self.place.backend, ())
            self.faults += sum(read.did not in in_steps for read in found.unexplained)
            self.kinds += kinds(found.unexplained, each)
            for read in found.unexplained:
                self.examples.setdefault(kinds([read], each).most_common(1)[0][0], f"{read}"[:600])

    def cells(self) -> Iterator[str]:
        """The row of the table."""
        yield f"{self.place.maker} {self.place.backend}"
        yield "yes" if self.deletes else "no"
        yield from map(str, (self.rounds, self.calls, self.failed.total(), self.refused, self.threads))
        yield from map(str, (self.disordered, self.undecided, self.forks, self.orphans))
        yield ", ".join(f"{number} {kind}" for kind, number in self.kinds.most_common()) or "0"


def _failure(call: Operation) -> str:
    return f"{call.did}: {call.error[:120]}"


@contextmanager
def places(backends: Iterable[str]) -> Iterator[list[Place]]:
    """The savers of the backends, on databases that wait for the disk."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        found = []
        if "memory" in backends:
            found += [Place(OURS, "memory", "memory:"), Place(THEIRS, "memory", "")]
        if "sqlite" in backends:
            found += [Place(OURS, "sqlite", f"sqlite:///{folder}/ours.db"), Place(THEIRS, "sqlite", f"{folder}/lg.db")]
        if "postgres" in backends:
            cluster = stack.enter_context(
                Cluster(durable=True, settings={"default_transaction_isolation": "read committed"})
            )
            found += [Place(maker, "postgres", cluster.database(maker.lower())) for maker in (OURS, THEIRS)]
        if "redis" in backends:
            found.append(Place(OURS, "redis", stack.enter_context(RedisProcess(DURABLE).start()).url))
        yield found


def play(rows: Sequence[Row], seconds: float, parties: Sequence[Party], seed: str) -> None:
    """Play rounds by turns until the time is over; every row has at least one."""
    until = time.monotonic() + seconds
    for number in count():
        for row in rows:
            if number and time.monotonic() > until:
                return
            row.add(play_round(row.place, Round(SECONDS, f"{seed} {number} {row.deletes}", row.deletes), parties))


def table(rows: Iterable[Row]) -> str:
    """The rows in Markdown."""
    lines = [(*COLUMNS, *MORE), ("---",) * len((*COLUMNS, *MORE)), *(tuple(row.cells()) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Print the table. Ends with a failure if other calls of Threadmark's have no order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--backends", nargs="+", default=["memory", "sqlite", "postgres", "redis"])
    parser.add_argument("--clients", type=int, default=3, help="so many threads, and so many tasks")
    parser.add_argument("--seed", default="1")
    asked = parser.parse_args()
    parties = [party._replace(clients=asked.clients) for party in PARTIES]
    with places(asked.backends) as found:
        rows = [Row(place, deletes) for place in found for deletes in (False, True)]
        play(rows, asked.seconds, parties, asked.seed)
    print(table(rows))
    for row in rows:
        for failure, number in row.failed.most_common(5):
            print(f"{row.place.maker} {row.place.backend}: {number} times {failure}")
        for kind, example in row.examples.items():
            print(f"{row.place.maker} {row.place.backend}, {kind}: {example}")
    print("versions:", ", ".join(sorted({f"{row.place.maker} {row.place.version()}" for row in rows})))
    sys.exit(any(row.faults or row.undecided for row in rows if row.place.ours))


if __name__ == "__main__":
    main()
