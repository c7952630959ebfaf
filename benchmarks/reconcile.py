"""The cost of comparing two databases of many threads that differ in a few: rows read, and time.

    python benchmarks/reconcile.py [--threads 10000] [--differences 10] [--postgres]

Every thread has three checkpoints with pending writes. The second database gets everything by `reconcile` first, which
is printed as well; then some threads change in the first one without an entry in its outbox. Without --postgres these
are two SQLite files; with it, two servers that the script starts.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast

from threadmark.replication.model import ReconcileReport
from threadmark.replication.playing import play_flow
from threadmark.replication.reconciling import reconcile
from threadmark.replication.steps import Side
from threadmark.saver import Saver
from threadmark.store.replica import ReplicaStore
from threadmark_conformance.engine import at, checkpoint
from threadmark_postgres import PostgresSaver
from threadmark_sqlite import SqliteSaver

_STEPS = 3
_LONG = "a value that is stored in a segment of its own. " * 20


def main() -> None:
    """Print a line for each comparison."""
    parser = argparse.ArgumentParser(description="Comparing two databases of many threads.")
    parser.add_argument("--threads", type=int, default=10_000)
    parser.add_argument("--differences", type=int, default=10)
    parser.add_argument("--postgres", action="store_true")
    asked = parser.parse_args()
    with _pair(postgres=asked.postgres) as (one, other):
        for number in range(asked.threads):
            _run(one, f"thread {number:06d}", _STEPS)
        _print("all are missing", _reconciled(one, other))
        _print("none differs", _reconciled(one, other))
        for number in range(0, asked.threads, max(1, asked.threads // asked.differences)):
            _run(one, f"thread {number:06d}", _STEPS + 1, first=_STEPS)
        _print("some differ", _reconciled(one, other))
        left = _reconciled(one, other)
        if left.different:
            raise SystemExit(f"{left.different} threads still differ")


def _run(saver: Saver, thread_id: str, steps: int, first: int = 0) -> None:
    for number in range(first, steps):
        made = checkpoint({"a": f"{number} {_LONG}"}, {"a": number + 1}, checkpoint_id=f"{number:04d}")
        parent = f"{number - 1:04d}" if number else None
        saver.put(at(thread_id, "", parent), made, {"step": number}, {"a": number + 1})
        saver.put_writes(at(thread_id, "", made["id"]), [("a", number)], "task")


def _reconciled(one: Saver, other: Saver) -> ReconcileReport:
    return play_flow(reconcile(_side(one), _side(other), 1))


def _side(saver: Saver) -> Side:
    store = cast("ReplicaStore", saver._store)  # noqa: SLF001 - the rows themselves are compared
    return Side("primary", store, saver._driver)  # noqa: SLF001 - as above


def _print(name: str, found: ReconcileReport) -> None:
    print(
        f"{name:16} {found.threads:7,} threads, {found.different:6,} differ, {found.rows_read:8,} rows read, "
        f"{found.checkpoints:7,} checkpoints copied, {found.seconds:8.2f} s"
    )


@contextmanager
def _pair(*, postgres: bool) -> Iterator[tuple[Saver, Saver]]:
    if postgres:
        sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
        from postgres.cluster import Cluster

        with (
            Cluster(durable=True) as here,
            Cluster(durable=True) as there,
            closing(PostgresSaver(here.url)) as one,
            closing(PostgresSaver(there.url)) as other,
        ):
            yield one, other
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("one.db", "other.db")]
        with closing(SqliteSaver(paths[0], durability="normal")) as one, closing(SqliteSaver(paths[1])) as other:
            yield one, other


if __name__ == "__main__":
    main()
