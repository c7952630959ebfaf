"""The move as a command: `python -m threadmark_langgraph.moving old.db sqlite:///new.db`."""

import argparse
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from langgraph.checkpoint.base import BaseCheckpointSaver

import threadmark
from threadmark import StoreError, ThreadmarkError
from threadmark_langgraph.moving.report import Progress
from threadmark_langgraph.moving.sources import holds_checkpoints, source_of
from threadmark_langgraph.moving.transfer import migrate

_POSTGRES = ("postgres://", "postgresql://")
_FILE = "sqlite:///"

_ENDINGS = """\
Run it where Python finds the application's modules, whose classes the values may have. What was moved stays moved: the
same command goes on after it was stopped. It ends with 0 if everything is in the target, with 1 if the report names
what is not, and with 2 after an error, which says what to do.
"""
_STOPPED = 130
"""How a command ends that was interrupted, as a shell has it."""


def main() -> None:
    """Move, show how far it has got, and say what could not be moved."""
    parser = argparse.ArgumentParser(
        prog="python -m threadmark_langgraph.moving",
        description=(migrate.__doc__ or "").partition("\n")[0],
        epilog=_ENDINGS,
    )
    parser.add_argument("source", type=existing, help="LangGraph's database: a SQLite file or a Postgres URL")
    parser.add_argument(
        "target", help="Threadmark's URL, such as sqlite:///new.db or postgresql://user@host/database; made if need be"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="read everything, tell what a move would do, and store and make nothing"
    )
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        type=loadable,
        metavar="MODULE:CLASS",
        help="a class that LangGraph's serializer may load, where it is strict; may be given several times",
    )
    asked = parser.parse_args()
    try:
        with langgraph_saver(asked.source) as source, threadmark.open(asked.target) as target, bar() as progress:
            moved = migrate(source, target, allow=asked.allow, dry_run=asked.dry_run, progress=progress)
    except ThreadmarkError as error:  # first, because one that names a missing package is an ImportError as well
        parser.error(str(error))
    except ImportError as missing:
        parser.error(f"{missing}: pip install 'threadmark-langgraph[migrate]'")
    except KeyboardInterrupt:
        parser.exit(_STOPPED, "stopped; the same command goes on\n")
    if asked.dry_run:
        sys.stdout.write("A dry run: nothing was stored. A move would give:\n")
    sys.stdout.write(f"{moved}\n")
    sys.exit(bool(moved.problems))


def existing(database: str) -> str:
    """The source, if it is there: SQLite would make a file of a mistyped name."""
    if database.startswith(_POSTGRES):
        return database
    path = unquote(database.removeprefix(_FILE)) if database.startswith(_FILE) else database
    if not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {path!r}")
    try:
        holds = holds_checkpoints(path)
    except sqlite3.Error as error:
        raise argparse.ArgumentTypeError(f"{path!r} cannot be read: {error}") from error
    if not holds:
        raise argparse.ArgumentTypeError(f"{path!r} is not a SQLite database with LangGraph's checkpoints")
    return path


def loadable(named: str) -> type:
    """The class with this module and name."""
    module, _, name = named.partition(":")
    if not (module and name):
        raise argparse.ArgumentTypeError(f"{named!r} names no class: write module:Class, such as shop.states:Order")
    try:
        there = import_module(module)
    except Exception as error:
        raise argparse.ArgumentTypeError(
            f"the module {module!r} cannot be imported ({type(error).__name__}: {error}): write the name that the "
            "application imports it by, and run this where Python finds it (PYTHONPATH)"
        ) from error
    if isinstance(found := getattr(there, name, None), type):
        return found
    meant = get_close_matches(name, [key for key, each in vars(there).items() if isinstance(each, type)], n=1)
    hint = f"did you mean {module}:{meant[0]}?" if meant else "write the name that the module defines it by"
    raise argparse.ArgumentTypeError(f"the module {module!r} has no class {name!r}: {hint}")


@contextmanager
def langgraph_saver(database: str) -> Iterator[BaseCheckpointSaver[Any]]:
    """LangGraph's own saver for a file or a Postgres URL."""
    if database.startswith(_POSTGRES):
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver

        with failing_as_store(psycopg.Error), PostgresSaver.from_conn_string(database) as saver:
            if not source_of(saver).has_tables():
                raise StoreError("the source has no tables with LangGraph's checkpoints: name another database")
            yield saver
    else:
        from langgraph.checkpoint.sqlite import SqliteSaver

        with failing_as_store(sqlite3.Error), SqliteSaver.from_conn_string(database) as file:
            file.setup()
            yield file


@contextmanager
def failing_as_store(kind: type[Exception]) -> Iterator[None]:
    """A block in which an error of the source's driver becomes one that the command can tell."""
    try:
        yield
    except kind as error:
        raise StoreError(f"the source cannot be read: {' '.join(str(error).split())}") from error


@contextmanager
def bar() -> Iterator[Progress]:
    """A progress bar in the terminal."""
    from rich.console import Console
    from rich.progress import Progress as Bars

    # Beside the report, which may go to a file.
    terminal = Console(stderr=True)
    with Bars(console=terminal, transient=True, disable=not terminal.is_terminal) as bars:
        task = bars.add_task("Moving checkpoints", total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


if __name__ == "__main__":
    main()
