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
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from power import programs
from power.cuts import DictionaryJudge, Judge, Outcome, SaverJudge, moments, states_of_dictionary, states_of_saver
from power.recording import Recording, compiled, record

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

    def plus(self, recording: Recording, found: Outcome) -> "Total":
        """With one recording more."""
        kinds = [event.kind for event in recording.events]
        marks = [event.data.decode() for event in recording.events if event.kind == "M"]
        one = Total(
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
        return Total(*map(sum, zip(self, one, strict=True)))


def round_of(name: str, seed: int, library: Path, place: Path) -> tuple[Recording, Outcome]:
    """Record one program, and open the disks that its power cuts leave."""
    judge: Judge
    if name == "dictionary":
        recording = record(library, place, programs.DICTIONARIES, seed, SYNCS)
        judge = DictionaryJudge(states_of_dictionary(seed, SYNCS), full=True)
    else:
        recording = record(library, place, programs.SAVER, name, seed, OPERATIONS, CLIENTS)
        judge = SaverJudge(states_of_saver(seed, OPERATIONS, CLIENTS), full=name == "full")
    with judge as judging:
        return recording, judging.judge(moments(recording, seed, LOTS, SHARE))


def power_cuts(states: int, seed: int) -> tuple[dict[str, Total], list[str]]:
    """Record and judge until there were as many disks. Returns the totals of each program, and all objections."""
    totals = {name: Total() for name in ("full", "normal", "dictionary")}
    objections: list[str] = []
    folder = Path(tempfile.mkdtemp(prefix="threadmark-power-"))
    library = compiled(folder)
    while sum(total.states for total in totals.values()) < states:
        for name, total in totals.items():
            place = folder / f"{name} {seed}"
            place.mkdir()
            recording, found = round_of(name, seed, library, place)
            totals[name] = total.plus(recording, found)
            objections += [f"{place}: {objection}" for objection in found.objections]
            if not found.objections:
                shutil.rmtree(place)
        sys.stderr.write(f"seed {seed}: {sum(each.states for each in totals.values())} states\n")
        seed += 1
    if not objections:
        shutil.rmtree(folder)
    return totals, objections


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=100_000, help="how many disks to make, in all")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    begun = time.monotonic()
    totals, objections = power_cuts(chosen.states, chosen.seed)
    for name, total in totals.items():
        figures = ", ".join(f"{value} {field}" for field, value in zip(Total._fields, total, strict=True))
        sys.stdout.write(f"{name}: {figures}\n")
    sys.stdout.write(f"seeds from {chosen.seed}, {time.monotonic() - begun:.0f} s\n")
    for objection in objections[:_SHOWN]:
        sys.stdout.write(f"{objection[:_LENGTH]}\n")
    if objections:
        raise SystemExit(f"{len(objections)} objections")


if __name__ == "__main__":
    main()
