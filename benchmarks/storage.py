"""Bytes on disk: five workloads on SQLite, this saver compared with LangGraph's.

    python benchmarks/storage.py [--without-zstd] [--tables] [workload ...]

Both savers keep the same data with the same durability (write-ahead log, synchronous=FULL), each in a separate
file, which is measured after it was closed. Everything is then read back from ours and compared with the puts: a
benchmark of wrong data is worthless.
"""

import argparse
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from langgraph.checkpoint.sqlite import SqliteSaver as PeerSaver

import workloads
from threadmark import Saver
from threadmark.saver import storing
from threadmark_sqlite import SqliteSaver
from workloads import WORKLOADS, Step, Task


class Sizes(NamedTuple):
    """The sizes of a workload."""

    workload: str
    steps: int
    peer: int
    ours: int

    @property
    def ratio(self) -> float:
        """How many times less we store."""
        return self.peer / self.ours


class Table(NamedTuple):
    """The size of a table or an index: whole pages, and the bytes that rows and keys fill."""

    name: str
    pages: int
    payload: int
    rows: int


def sizes(workload: str, folder: Path) -> Sizes:
    """One workload on both savers, ours verified; the files stay in the folder."""
    make, config = WORKLOADS[workload], workloads.thread(workload)
    peers, ours = folder / f"{workload}.peer.db", folder / f"{workload}.db"
    with PeerSaver.from_conn_string(str(peers)) as saver:
        workloads.drive(saver, config, make(saver.get_next_version))
    with SqliteSaver(ours) as saver:
        workloads.drive(saver, config, make(saver.get_next_version))
    with SqliteSaver(ours) as saver:
        steps = list(make(saver.get_next_version))
        verify(saver, config, steps)
    return Sizes(workload, len(steps), on_disk(peers), on_disk(ours))


def verify(saver: Saver, config: Mapping[str, Any], steps: Sequence[Step]) -> None:
    """Raise AssertionError unless every checkpoint of the run reads back equal, its pending writes included."""
    tasks: Sequence[Task] = ()
    for found, step in zip(saver.list(config), reversed(steps), strict=True):
        if found.checkpoint != step.checkpoint or found.metadata != step.metadata:
            raise AssertionError(f"checkpoint {step.checkpoint['id']} does not read back as it was put")
        if found.pending_writes != [(task.id, *write) for task in tasks for write in task.writes]:
            raise AssertionError(f"writes of checkpoint {step.checkpoint['id']} do not read back as they were put")
        tasks = step.tasks


def on_disk(path: Path) -> int:
    """The size of a database and of its log, if it has one."""
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


def tables(path: Path) -> list[Table]:
    """Every table and index of a file, largest first; nothing if SQLite was built without `dbstat`."""
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute(
            """
            SELECT name, sum(pgsize), sum(payload), sum(CASE WHEN pagetype = 'leaf' THEN ncell ELSE 0 END)
            FROM dbstat
            GROUP BY name
            ORDER BY 2 DESC
            """
        )
        return [Table(*row) for row in rows]
    except sqlite3.OperationalError:
        return []
    finally:
        connection.close()


def zstd(*, on: bool) -> AbstractContextManager[object]:
    """Within it, segments are stored as if zstandard were installed, or were not."""
    return nullcontext() if on else patch.object(storing, "shrink", lambda data: b"\x00" + data)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("workload", nargs="*", help=f"of {', '.join(WORKLOADS)}; all by default")
    parser.add_argument("--without-zstd", action="store_true", help="store as if zstandard were not installed")
    parser.add_argument("--tables", action="store_true", help="print what each table of ours takes")
    asked = parser.parse_args()
    with zstd(on=not asked.without_zstd), tempfile.TemporaryDirectory() as folder:
        for line in report(asked.workload or list(WORKLOADS), Path(folder), with_tables=asked.tables):
            print(line, flush=True)


def report(chosen: Sequence[str], folder: Path, *, with_tables: bool = False) -> Iterator[str]:
    """The lines of the table, in Markdown."""
    yield from HEAD
    for workload in chosen:
        yield row(sizes(workload, folder))
        for table in tables(folder / f"{workload}.db") if with_tables else ():
            yield (
                f"    {table.name:<30} {table.pages:>9,} bytes of pages, {table.payload:>9,} filled "
                f"by {table.rows:>5,} rows"
            )


HEAD = (
    "| workload | steps | langgraph-checkpoint-sqlite | threadmark-sqlite | a step | less by |",
    "|---|---:|---:|---:|---:|---:|",
)


def row(each: Sizes) -> str:
    """A line of the table."""
    return (
        f"| {each.workload} | {each.steps:,} | {each.peer / 1e6:.2f} MB | {each.ours / 1e6:.3f} MB "
        f"| {each.ours / each.steps:,.0f} bytes | {each.ratio:.0f}x |"
    )


if __name__ == "__main__":
    main()
