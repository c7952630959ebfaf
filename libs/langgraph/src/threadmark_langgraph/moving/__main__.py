"""The move as a command: `python -m threadmark_langgraph.moving old.db sqlite:///new.db`."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from langgraph.checkpoint.base import BaseCheckpointSaver

import threadmark
from threadmark_langgraph.moving.report import Progress
from threadmark_langgraph.moving.sources import holds_checkpoints
from threadmark_langgraph.moving.transfer import migrate

_POSTGRES = ("postgres://", "postgresql://")
_FILE = "sqlite:///"


def main() -> None:
    """Move, show how far it has got, and say what could not be moved."""
    parser = argparse.ArgumentParser(
        prog="python -m threadmark_langgraph.moving", description=(migrate.__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("source", type=existing, help="LangGraph's database: a SQLite file or a Postgres URL")
    parser.add_argument("target", help="Threadmark's URL, such as sqlite:///new.db")
    parser.add_argument("--dry-run", action="store_true", help="read everything, store nothing")
    parser.add_argument(
        "--allow", action="append", default=[], metavar="MODULE:CLASS", help="a class that may be loaded"
    )
    asked = parser.parse_args()
    classes = [
        getattr(import_module(module), name) for module, _, name in (each.partition(":") for each in asked.allow)
    ]
    try:
        with (
            langgraph_saver(asked.source) as source,
            threadmark_saver(asked.target, dry_run=asked.dry_run) as target,
            bar() as progress,
        ):
            moved = migrate(source, target, allow=classes, dry_run=asked.dry_run, progress=progress)
    except ModuleNotFoundError as missing:
        parser.error(f"{missing}: pip install 'threadmark-langgraph[migrate]'")
    sys.stdout.write(f"{moved}\n")
    sys.exit(bool(moved.problems))


def existing(database: str) -> str:
    """The source, if it is there: SQLite would make a file of a mistyped name."""
    if not database.startswith(_POSTGRES):
        if not Path(database).is_file():
            raise argparse.ArgumentTypeError(f"there is no file {database!r}")
        if not holds_checkpoints(database):
            raise argparse.ArgumentTypeError(f"{database!r} is no SQLite database with LangGraph's checkpoints")
    return database


@contextmanager
def langgraph_saver(database: str) -> Iterator[BaseCheckpointSaver[Any]]:
    """LangGraph's own saver for a file or a Postgres URL."""
    if database.startswith(_POSTGRES):
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(database) as saver:
            yield saver
    else:
        from langgraph.checkpoint.sqlite import SqliteSaver

        with SqliteSaver.from_conn_string(database) as file:
            file.setup()
            yield file


def threadmark_saver(url: str, *, dry_run: bool) -> threadmark.Saver:
    """The target; for a dry run one in memory where there is no file yet, because the first look would make it."""
    saver = threadmark.open(url)
    if dry_run and url.startswith(_FILE) and not Path(unquote(url.removeprefix(_FILE))).exists():
        saver.close()
        return threadmark.MemorySaver()
    return saver


@contextmanager
def bar() -> Iterator[Progress]:
    """A progress bar in the terminal."""
    from rich.progress import Progress as Bars

    with Bars(transient=True) as bars:
        task = bars.add_task("Moving checkpoints", total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


if __name__ == "__main__":
    main()
