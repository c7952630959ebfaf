"""A persistent dictionary compared with a plain dict and shelve.

    python benchmarks/persistent_dict.py [--entries N] [--rounds N]

The first table has the time of one access in nanoseconds; the second that of a sync after ten entries have changed,
the part of encoding in it, and the bytes this process has written for it (Linux). Shelve has `writeback=True`,
without which it would not find changes inside a value.
"""

import argparse
import shelve
import statistics
import tempfile
import time
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

from threadmark import PersistentDict, Serde
from threadmark.persistent.entries import contents_of, draft

_CHANGED = 10


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="A persistent dictionary beside a plain dict and shelve.")
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        PersistentDict[str, Any](Path(folder) / "cache.db") as kept,
        shelve.open(str(Path(folder) / "shelf"), writeback=True) as shelf,  # noqa: S301 - shelve is compared
    ):
        kinds: dict[str, MutableMapping[str, Any]] = {"dict": {}, "PersistentDict": kept, "shelve": shelf}
        print("| ns an access | get | set |\n|---|---:|---:|")
        for name, mapping in kinds.items():
            _fill(mapping, asked.entries)
            _read_all(mapping)
            got, put = (_access(function, mapping, asked.rounds) for function in (_get, _set))
            print(f"| {name} | {got:,.0f} | {put:,.0f} |")
        print(f"\n| sync, {_CHANGED} of {asked.entries:,} entries have changed | ms | KB written |")
        print("|---|---:|---:|")
        for name, mapping, reads in (
            ("PersistentDict", kept, False),
            ("shelve, which has read nothing else since the last sync", shelf, False),
            ("shelve, which has read everything", shelf, True),
        ):
            took, wrote = _synced(mapping, mapping.sync, asked.rounds, reads=reads)
            print(f"| {name} | {took * 1e3:.1f} | {wrote / 1024:,.0f} |")
        items, serde = list(kept.items()), Serde()
        before = draft(contents_of({}), items, serde).contents
        encoding = statistics.median(_timed(lambda: draft(before, items, serde)) for _ in range(asked.rounds))
        print(f"| (of it encoding and comparing) | {encoding * 1e3:.1f} | |")


def _fill(mapping: MutableMapping[str, Any], entries: int) -> None:
    for number in range(entries):
        mapping[f"key {number}"] = {"n": number, "words": ["a", "few", "words"], "text": "x" * 200}


def _read_all(mapping: MutableMapping[str, Any]) -> None:
    """Read everything, so that shelve has it in its cache."""
    for key in list(mapping):
        _ = mapping[key]


def _get(mapping: MutableMapping[str, Any], keys: list[str]) -> None:
    for key in keys:
        mapping[key]


def _set(mapping: MutableMapping[str, Any], keys: list[str]) -> None:
    for key in keys:
        mapping[key] = key


def _access(
    function: Callable[[MutableMapping[str, Any], list[str]], None], mapping: MutableMapping[str, Any], rounds: int
) -> float:
    """Nanoseconds for one access, the best of some rounds."""
    keys = [f"key {number}" for number in range(1000)]
    return min(_timed(lambda: function(mapping, keys)) for _ in range(rounds)) / len(keys) * 1e9


def _synced(
    mapping: MutableMapping[str, Any], sync: Callable[[], None], rounds: int, *, reads: bool
) -> tuple[float, float]:
    """Seconds of a sync (the median), and bytes written by one (the mean)."""
    sync()
    times, begun = [], _written()
    keys = list(mapping)
    for number in range(rounds):
        if reads:
            _read_all(mapping)
        for step in range(_CHANGED):
            mapping[keys[(number * _CHANGED + step) * 7919 % len(keys)]] = {"n": number, "text": "y" * 200}
        times.append(_timed(sync))
    return statistics.median(times), (_written() - begun) / rounds


def _timed(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _written() -> int:
    """The bytes that this process has written."""
    counters = Path("/proc/self/io")
    lines = dict(line.split(": ") for line in counters.read_text().splitlines()) if counters.exists() else {}
    return int(lines.get("wchar", 0))


if __name__ == "__main__":
    main()
