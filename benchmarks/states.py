"""The cost of a saved state: bytes on SQLite, compared with the same states stored whole.

    python benchmarks/states.py [--without-zstd] [saves]

A state of 100 KB in 20 texts; each save replaces one of them, or counts, or changes nothing. Compared with it: a table
with a row for each state, encoded as a whole by the same serializer, and the same with each row compressed by zstd.
Everything is read back and compared with the saved states.
"""

import argparse
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from storage import on_disk, zstd
from threadmark import Serde, States
from threadmark_sqlite import SqliteSaver

_KEYS = 20
_WORDS = 1_510
"""In the value of a key: about 5 KB."""


class Cost(NamedTuple):
    """Bytes on disk."""

    what: str
    saves: int
    state: int
    """The length of one, encoded."""
    first: int
    """The file with the first state in it."""
    rest: int
    """By how much the file has grown since."""
    whole: int
    """The growth of the file of whole states since its first."""
    compressed: int
    """The same of whole states that are compressed."""


def text(chance: random.Random) -> str:
    """A text like prose to a compressor: words of a limited vocabulary."""
    return " ".join(f"w{int(chance.paretovariate(0.6)) % 9_999}" for _ in range(_WORDS))


def changed(saves: int) -> Iterator[dict[str, Any]]:
    """States of which one key changes each time."""
    chance = random.Random(7)
    state = {f"key {number}": text(chance) for number in range(_KEYS)}
    for number in range(saves):
        yield dict(state)
        state[f"key {number % _KEYS}"] = text(chance)


def counted(saves: int) -> Iterator[dict[str, Any]]:
    """States of which only a number changes."""
    for number, state in enumerate(equal(saves)):
        yield {**state, "count": number}


def equal(saves: int) -> Iterator[dict[str, Any]]:
    """The same state again and again."""
    first = next(changed(1))
    for _ in range(saves):
        yield dict(first)


WORKLOADS: dict[str, Callable[[int], Iterator[dict[str, Any]]]] = {
    "one text changes": changed,
    "a number changes": counted,
    "nothing changes": equal,
}


def cost(what: str, saves: int, folder: Path) -> Cost:
    """One workload; the files stay in the folder."""
    given = list(WORKLOADS[what](saves))
    path, name = folder / f"{what}.db", "thread"
    with SqliteSaver(path) as saver:
        ids = [States(saver).save(name, given[0])]
    first = on_disk(path)
    with SqliteSaver(path) as saver:
        states = States(saver)
        ids += [states.save(name, state) for state in given[1:]]
    with SqliteSaver(path) as saver:
        found = [States(saver).load(name, state_id) for state_id in ids]
        if found != given:
            raise AssertionError("what was read is not what was saved")
        newest = States(saver).list().states[0]
    encoded = [Serde().dumps_typed(state)[1] for state in given]
    whole = _rows(folder / f"{what} whole.db", encoded)
    compressed = _rows(folder / f"{what} compressed.db", list(map(zstandard.ZstdCompressor().compress, encoded)))
    return Cost(what, saves, newest.size_bytes or 0, first, on_disk(path) - first, whole, compressed)


def _rows(path: Path, rows: Sequence[bytes]) -> int:
    """A row for each. Returns by how much the file grows after the first."""
    sizes: list[int] = []
    for some in (rows[:1], rows[1:]):
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE IF NOT EXISTS states (id INTEGER PRIMARY KEY, state BLOB)")
        connection.executemany("INSERT INTO states (state) VALUES (?)", [(row,) for row in some])
        connection.commit()
        connection.close()
        sizes.append(on_disk(path))
    return sizes[1] - sizes[0]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("saves", nargs="?", type=int, default=100)
    parser.add_argument("--without-zstd", action="store_true")
    options = parser.parse_args()
    print(f"{'':16} {'state':>9} {'first':>9} {'each more':>10} {'whole':>9} {'zstd':>9}   bytes on SQLite")
    with tempfile.TemporaryDirectory() as folder, zstd(on=not options.without_zstd):
        for what in WORKLOADS:
            found = cost(what, options.saves, Path(folder))
            more = found.saves - 1
            each = [round(size / more) for size in (found.rest, found.whole, found.compressed)]
            print(f"{what:16} {found.state:9,} {found.first:9,} {each[0]:10,} {each[1]:9,} {each[2]:9,}")


if __name__ == "__main__":
    main()
