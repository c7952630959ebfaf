"""The figures that the README quotes, measured beside LangGraph's saver on this machine: python benchmarks/report.py.

With `--long`, also a conversation of 10,000 messages, which takes some minutes.
"""

import argparse
import platform
import sqlite3
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import lengths
import storage
import throughput
from workloads import WORKLOADS

_TEN_THOUSAND = 10_000


def main() -> None:
    """Print everything, section by section as it is measured."""
    parser = argparse.ArgumentParser(description="The figures that the README quotes.")
    parser.add_argument("--long", action="store_true", help="also a conversation of 10,000 messages")
    asked = parser.parse_args()
    for line in report(long=asked.long):
        print(line, flush=True)


def report(*, long: bool) -> Iterator[str]:
    """The lines of all tables, in Markdown."""
    yield (
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"langgraph-checkpoint-sqlite {version('langgraph-checkpoint-sqlite')}; synchronous=FULL, write-ahead log"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield from ("", "Bytes on disk", "")
        yield from storage.report(list(WORKLOADS), folder)
        yield from ("", "A long conversation (chat)", "")
        yield from lengths.report([*lengths.LENGTHS, *([_TEN_THOUSAND] if long else [])], folder)
        yield from ("", "Operations a second", "")
        yield from throughput.report(folder)


if __name__ == "__main__":
    main()
