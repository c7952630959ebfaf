"""The move as a command: `python -m threadmark_langgraph.moving old.db new.db`."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import get_args

from threadmark import ThreadmarkError
from threadmark_langgraph.moving.databases import Owner, saver_of
from threadmark_langgraph.moving.report import Moved, Progress
from threadmark_langgraph.moving.transfer import export, migrate

_ENDINGS = """\
A database is named by the path of a SQLite file, or by a URL such as sqlite:///new.db or
postgresql://user@host/database; source and target may be the same. Run it where Python finds the application's modules,
whose classes the values may have. What was moved stays moved: the same command goes on after it was stopped. It ends
with 0 if everything is in the target, with 1 if the report names what is not, and with 2 after an error, which says
what to do.
"""
_STOPPED = 130
"""The exit code of a command that was interrupted, as shells have it."""


def main() -> None:
    """Move the threads, show the progress, and report the rest that could not be moved."""
    parser = _parser()
    asked = parser.parse_args()
    try:
        with bar() as progress:
            moved = _moved(asked, progress)
    except ThreadmarkError as error:  # first, because the error that names a missing package is an ImportError as well
        parser.error(str(error))
    except ImportError as missing:
        parser.error(f"{missing}: pip install 'threadmark-langgraph[migrate]'")
    except KeyboardInterrupt:
        parser.exit(_STOPPED, "stopped; the same command goes on\n")
    if asked.dry_run:
        sys.stdout.write("A dry run: nothing was stored. A move would give:\n")
    sys.stdout.write(f"{moved}\n")
    sys.exit(bool(moved.problems))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m threadmark_langgraph.moving",
        description="Copy every thread of LangGraph's saver, or of Threadmark's, to Threadmark's, or back.",
        epilog=_ENDINGS,
    )
    parser.add_argument("source", help="the database to move from: LangGraph's or Threadmark's")
    parser.add_argument("target", help="the database to move to; made if need be")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--export", action="store_true", help="move from Threadmark to LangGraph's saver")
    way.add_argument(
        "--from",
        choices=get_args(Owner),
        dest="whose",
        help="whose checkpoints to move, where the source holds those of both",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="read everything, tell what a move would do, and store and make nothing"
    )
    parser.add_argument(
        "--partial",
        action="store_true",
        help="move also what can be had of a thread of which something cannot be moved",
    )
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        type=loadable,
        metavar="MODULE:CLASS",
        help="a class that the source's serializer may load, where it is strict or the class is not imported yet; may "
        "be given several times",
    )
    return parser


def _moved(asked: argparse.Namespace, progress: Progress) -> Moved:
    if asked.export:
        return export(asked.source, asked.target, partial=asked.partial, dry_run=asked.dry_run, progress=progress)
    if asked.whose is None:
        return migrate(
            asked.source,
            asked.target,
            allow=asked.allow,
            partial=asked.partial,
            dry_run=asked.dry_run,
            progress=progress,
        )
    with saver_of(asked.whose, asked.source) as source:
        return migrate(
            source, asked.target, allow=asked.allow, partial=asked.partial, dry_run=asked.dry_run, progress=progress
        )


def loadable(named: str) -> type:
    """Return the class that `module:Class` names."""
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
def bar() -> Iterator[Progress]:
    """Show a progress bar in the terminal."""
    from rich.console import Console
    from rich.progress import Progress as Bars

    # On the error stream, because the report may go to a file.
    terminal = Console(stderr=True)
    with Bars(console=terminal, transient=True, disable=not terminal.is_terminal) as bars:
        task = bars.add_task("Moving checkpoints", total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


if __name__ == "__main__":
    main()
