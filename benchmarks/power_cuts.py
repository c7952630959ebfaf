"""Power cuts on SQLite: every disk that one may leave is opened, and compared with the acknowledged operations.

    python benchmarks/power_cuts.py --states 100000

A library that is loaded before libc (tests/power/recorder.c) records every write, truncation, sync, creation and
removal that a process makes in its folder: one with a saver under concurrent clients, with durability "full" or
"normal", or one with a persistent dictionary. After any of these events the power may fail. The disk then has all that
was written, or only all that was synced, or of the rest any writes, sectors of 512 or 4,096 bytes, parts of sectors.
Each disk is opened and verified: "full" may lose no acknowledged operation, "normal" only the last ones, and neither
may show half of one.

It prints one line for each program, and fails if there is an objection. A seed replays the same operations; how those
of several clients interleave is up to the machine, so a recording with an objection is kept.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from power import programs
from power.cuts import DictionaryJudge, Judge, Outcome, SaverJudge, moments, states_of_dictionary, states_of_saver
from power.recording import Recording, compiled, record

PROGRAMS = ("full", "normal", "dictionary")
OPERATIONS, CLIENTS, SYNCS = 20, 4, 40
LOTS, SHARE = 4, 0.2
"""For each of a fifth of the events of a recording: four disks with a part of the unsynced changes."""
_SHOWN, _LENGTH = 5, 600


class Total(NamedTuple):
    """The outcomes of one program's recordings."""

    recordings: int = 0
    operations: int = 0
    events: int = 0
    syncs: int = 0
    states: int = 0
    distinct: int = 0
    unsynced: int = 0
    fewer: int = 0
    objections: int = 0

    @classmethod
    def of(cls, recording: Recording, found: Outcome) -> "Total":
        """Count one recording."""
        kinds = [event.kind for event in recording.events]
        marks = [event.data.decode() for event in recording.events if event.kind == "M"]
        return cls(
            recordings=1,
            operations=sum(mark.startswith("A") for mark in marks),
            events=len(kinds) - len(marks),
            syncs=kinds.count("S"),
            states=found.states,
            distinct=found.distinct,
            unsynced=found.unsynced,
            fewer=found.fewer,
            objections=len(found.objections),
        )

    def plus(self, other: "Total") -> "Total":
        """The sums with others."""
        return Total(*map(sum, zip(self, other, strict=True)))


class Recorded(NamedTuple):
    """A program with a seed, recorded and judged."""

    name: str
    total: Total
    objections: list[str]


def round_of(name: str, seed: int, library: Path, folder: Path) -> Recorded:
    """Record one program, and open the disks that its power cuts leave. A recording with an objection stays there."""
    judge: Judge
    place = folder / f"{name} {seed}"
    place.mkdir()
    if name == "dictionary":
        recording = record(library, place, programs.DICTIONARIES, seed, SYNCS)
        judge = DictionaryJudge(states_of_dictionary(seed, SYNCS), full=True)
    else:
        recording = record(library, place, programs.SAVER, name, seed, OPERATIONS, CLIENTS)
        judge = SaverJudge(states_of_saver(seed, OPERATIONS, CLIENTS), full=name == "full")
    with judge as judging:
        found = judging.judge(moments(recording, seed, LOTS, SHARE))
    if not found.objections:
        shutil.rmtree(place)
    return Recorded(name, Total.of(recording, found), [f"{place}: {each}" for each in found.objections])


def power_cuts(states: int, seed: int, seconds: float) -> tuple[dict[str, Total], list[str], int]:
    """Record and judge until there were as many disks, or the time is over.

    Returns the totals of each program, all objections, and the last seed.
    """
    totals = {name: Total() for name in PROGRAMS}
    objections: list[str] = []
    folder = Path(tempfile.mkdtemp(prefix="threadmark-power-"))
    library = compiled(folder)
    until = time.monotonic() + seconds
    workers = os.cpu_count() or 1
    jobs = ((name, number) for number in count(seed) for name in PROGRAMS)
    last = seed
    with ProcessPoolExecutor(workers) as pool:
        waiting: set[Future[Recorded]] = set()
        while True:
            so_far = sum(total.states for total in totals.values())
            enough = so_far >= states or time.monotonic() > until
            if not (enough and all(total.recordings for total in totals.values())):
                while len(waiting) < workers:
                    name, last = next(jobs)
                    waiting.add(pool.submit(round_of, name, last, library, folder))
            elif not waiting:
                break
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for one in (each.result() for each in done):
                totals[one.name] = totals[one.name].plus(one.total)
                objections += one.objections
            sys.stderr.write(f"seeds to {last}: {sum(each.states for each in totals.values())} states\n")
    if not objections:
        shutil.rmtree(folder)
    return totals, objections, last


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=100_000, help="how many disks to make, in all")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this time")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    begun = time.monotonic()
    totals, objections, last = power_cuts(chosen.states, chosen.seed, chosen.seconds)
    for name, total in totals.items():
        figures = ", ".join(f"{value} {field}" for field, value in zip(Total._fields, total, strict=True))
        sys.stdout.write(f"{name}: {figures}\n")
    sys.stdout.write(f"seeds from {chosen.seed} to {last}, {time.monotonic() - begun:.0f} s\n")
    for objection in objections[:_SHOWN]:
        sys.stdout.write(f"{objection[:_LENGTH]}\n")
    if objections:
        raise SystemExit(f"{len(objections)} objections")


if __name__ == "__main__":
    main()
