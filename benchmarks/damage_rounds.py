"""Damage rounds: stored data is damaged bit by bit, and everything is read after each damage.

    python benchmarks/damage_rounds.py --cells 5000 --pages 2000    a SQLite database
    python benchmarks/damage_rounds.py --postgres --cells 1000      a separate Postgres server

A cell is one column of one row, changed by a statement; a page is one of the SQLite file's, changed behind its back.
Each damage flips a single bit. Every checkpoint is then read by its id, the newest of every namespace, and every
thread is listed. The worst answer counts: refused (an error), or short or wrong, which must not be.
"""

import argparse
import random
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from damage import Expected, answers, fill, flips, is_named
from postgres.cluster import Cluster
from postgres.damaged import KEYS, Database
from sqlite_cells import cells, inflict
from threadmark import CorruptDataError, Saver, SchemaError, StoreError
from threadmark_postgres import PostgresSaver
from threadmark_sqlite import SqliteSaver

_WORST = ("wrong", "short", "refused", "right")


def main() -> None:
    """Damage, read, and print the outcome."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=5000)
    parser.add_argument("--pages", type=int, default=0)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if asked.postgres:
        _report("cells of Postgres", _postgres_cells(asked.cells, asked.seed))
        return
    if asked.cells:
        _report("cells of SQLite", _sqlite_cells(asked.cells, asked.seed))
    if asked.pages:
        _report("pages of SQLite", _sqlite_pages(asked.pages, asked.seed))


def _report(what: str, outcomes: Iterable[tuple[str, bool]]) -> None:
    counts = Counter(outcomes)
    kinds = {kind: sum(count for (each, _), count in counts.items() if each == kind) for kind in _WORST}
    unnamed = sum(count for (kind, named), count in counts.items() if kind != "right" and not named)
    print(f"{sum(counts.values())} single-bit damages of {what}:")
    print(f"  without effect on any answer: {kinds['right']}")
    print(f"  an error:                     {kinds['refused']}")
    print(f"  an answer that lacks a part:  {kinds['short']}")
    print(f"  a wrong answer:               {kinds['wrong']}")
    print(f"  with an effect, and not named by verify: {unnamed}")


def _outcome(saver: Saver, expected: Expected) -> tuple[str, bool]:
    """The worst answer, and whether `verify` names the damage."""
    kinds = {answer.kind for answer in answers(saver, expected)}
    worst = next(kind for kind in _WORST if kind in kinds)
    return worst, worst == "right" or is_named(saver)


def _sqlite_cells(rounds: int, seed: int) -> Iterator[tuple[str, bool]]:
    database = sqlite3.connect(":memory:", isolation_level=None)
    saver = SqliteSaver(database, cache_bytes=0)
    expected = fill(saver)
    whole = database.serialize()
    for damage in flips(list(cells(database)), rounds, seed):
        if inflict(database, damage):
            yield _outcome(saver, expected)
            database.deserialize(whole)


def _postgres_cells(rounds: int, seed: int) -> Iterator[tuple[str, bool]]:
    with Cluster() as cluster, _postgres(cluster) as database:
        fields = [field for table in KEYS for field in database.fields(table)]
        for damage in flips(fields, rounds, seed):
            if database.inflict(damage):
                yield _outcome(database.saver, database.expected)
                database.mend(damage.field.table)


@contextmanager
def _postgres(cluster: Cluster) -> Iterator[Database]:
    url = cluster.database("damaged")
    with psycopg.connect(url, autocommit=True) as connection, PostgresSaver(url, cache_bytes=0) as saver:
        yield Database(connection, saver)


def _sqlite_pages(rounds: int, seed: int) -> Iterator[tuple[str, bool]]:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.db"
        with SqliteSaver(path) as saver:
            expected = fill(saver)
        whole = path.read_bytes()
        for _ in range(rounds):
            damaged = bytearray(whole)
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
            path.write_bytes(damaged)
            try:
                with SqliteSaver(path, cache_bytes=0) as saver:
                    yield _outcome(saver, expected)
            except (CorruptDataError, StoreError, SchemaError):
                yield "refused", True  # by the database itself


if __name__ == "__main__":
    main()
