"""`migrate` and `export`: threads from one database to another, and out of it."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadmark import CheckpointTuple, CorruptDataError, SaverProtocol
from threadmark.errors import importing
from threadmark.types import HistoryEntry, Progress
from threadmark_cli.addresses import expect_thread
from threadmark_cli.command import command, has_database_argument
from threadmark_cli.commands.editing import dry_run_option
from threadmark_cli.completion import thread_ids
from threadmark_cli.exits import DONE, WRONG
from threadmark_cli.moving_items import export_items, has_langgraphs, migrate_items, moved_record, show_moved
from threadmark_cli.opening import creating, expect_file, file_of, path_or_url
from threadmark_cli.session import Session
from threadmark_cli.settings import URL_VARIABLE, files

if TYPE_CHECKING:
    from threadmark_store.shapes import StoreMoved

_PAGE = 200
_INSTALL = "pip install 'threadmark-langgraph[migrate]'"


allow_option = click.option(
    "--allow", multiple=True, metavar="MODULE:CLASS", help="A class that stored values have. Its module is imported."
)
import_option = click.option(
    "--import",
    "imported",
    multiple=True,
    metavar="MODULE",
    help="A module with classes that stored values have; found in the current folder, too.",
)
partial_option = click.option(
    "--partial", is_flag=True, help="Copy also what can be had of a thread of which something cannot be copied."
)


@command(
    "migrate",
    examples="""
    threadmark migrate old.db agents.db                          # LangGraph's file to one of Threadmark's
    threadmark migrate old.db old.db                             # into the same file, beside LangGraph's tables
    threadmark migrate postgresql://host/app sqlite:///app.db --dry-run
    threadmark migrate old.db agents.db --allow app.states:Plan  # a class of the application's
    """,
    takes_databases=True,
)
@click.argument("databases", metavar="SOURCE [TARGET]", nargs=-1, shell_complete=files)
@click.option(
    "--from", "whose", type=click.Choice(["langgraph", "threadmark"]), help="Whose threads, where both are there."
)
@allow_option
@import_option
@partial_option
@dry_run_option
def migrate(
    session: Session,
    *,
    databases: tuple[str, ...],
    whose: Any,
    allow: tuple[str, ...],
    imported: tuple[str, ...],
    partial: bool,
    dry_run: bool,
) -> int:
    """Copy every thread of LangGraph's own saver, or of Threadmark's, to a database of Threadmark's, and all items.

    Without TARGET it is the database of --url or THREADMARK_URL. A thread is copied whole or not at all, unless
    --partial asks for all that can be had. Each checkpoint is read back and compared. The source stays as it is, and
    copies stay: after an interrupt, the same command goes on. Unlike the commands that only look, this makes the
    values, with LangGraph's own serializer for its threads: run it in the application's folder.
    Options of a saver and a keyring are those of the target. It ends with 1 if something was not moved.
    """
    source, target = _two(session, databases)
    session.expect_no_owner()
    _expect_source(source)
    moving, names = _moving()
    classes = _classes(names.loadable, allow, imported)
    has_items = whose != "threadmark" and has_langgraphs(session, source)
    moved = moving.Moved()
    if not (has_items and not any(moving.contents_of(source))):  # else it has LangGraph's items only
        opened = nullcontext(source) if whose is None else names.saver_of(whose, source)
        with opened as origin, _ours(session, target) as ours, session.out.progress("Moving checkpoints") as progress:
            moved = moving.migrate(
                origin, ours, allow=classes, partial=partial, dry_run=dry_run, progress=_counted(progress)
            )
    own = whose != "langgraph" and source != target
    with _told_anyway(session, moved, dry_run=dry_run):
        items = migrate_items(session, source, target, langgraphs=has_items, threadmarks=own, dry_run=dry_run)
    return _tell(session, moved, items, dry_run=dry_run)


@command(
    "export",
    examples="""
    threadmark export support-42 > support-42.jsonl      # a thread to read: each checkpoint as one JSON object
    threadmark export agents.db --to old.db              # every thread back to LangGraph's own saver
    """,
)
@click.argument("threads", metavar="[THREAD...]", nargs=-1, shell_complete=thread_ids)
@click.option(
    "--to", "target", metavar="DATABASE", shell_complete=files, help="Copy every thread to LangGraph's own saver there."
)
@allow_option
@import_option
@partial_option
@dry_run_option
def export(
    session: Session,
    *,
    threads: tuple[str, ...],
    target: str | None,
    allow: tuple[str, ...],
    imported: tuple[str, ...],
    partial: bool,
    dry_run: bool,
) -> int:
    """Write threads as JSON lines, or with --to copy every thread, whole, and all items back to LangGraph's own saver.

    The lines are for people and programs that read: a checkpoint each, the oldest first, with its values and pending
    writes, objects by name and fields. No class is needed, and none of it can be loaded again; to copy a database, use
    backup or migrate. A damaged checkpoint is a line that says so, and the exit code is 1 then.
    """
    if target is None:
        if not threads:
            raise click.UsageError("Name the threads to write as JSON lines, or give --to DATABASE.")
        if dry_run:
            raise click.UsageError("--dry-run is for --to: to write JSON lines changes nothing.")
        if allow or imported or partial:
            raise click.UsageError("--allow, --import and --partial are for --to: JSON lines need no class.")
        return _write_lines(session, threads)
    if threads:
        raise click.UsageError("--to copies every thread: name none.")
    session.expect_no_owner()
    _expect_source(session.url)
    moving, names = _moving()
    _classes(names.loadable, allow, imported)  # a saver loads imported classes
    with _ours(session, session.url) as ours, session.out.progress("Moving checkpoints") as progress:
        moved = moving.export(ours, path_or_url(target), partial=partial, dry_run=dry_run, progress=_counted(progress))
    with _told_anyway(session, moved, dry_run=dry_run):
        items = export_items(session, path_or_url(target), dry_run=dry_run)
    return _tell(session, moved, items, dry_run=dry_run)


def _two(session: Session, databases: tuple[str, ...]) -> tuple[str, str]:
    """The source and the target. If only one is named, it is the source, and the target is that of the settings."""
    elsewhere = None if has_database_argument() else session.settings.url
    if has_database_argument():
        databases = (session.settings.url or "", *databases)
    if len(databases) == 1:
        databases = (*databases, *filter(None, [elsewhere or os.environ.get(URL_VARIABLE)]))
    if len(databases) != 2:  # noqa: PLR2004 - the number that the text names
        raise click.UsageError("Give two databases: the one to copy from, and the one to copy to.")
    source, target = map(path_or_url, databases)
    return source, target


def _expect_source(url: str) -> None:
    file = file_of(url)
    if file is not None:
        expect_file(file)


@contextmanager
def _ours(session: Session, url: str) -> Iterator[str | SaverProtocol]:
    """Our database: its URL, or if it has options, a saver."""
    options = session.saver_options()
    if not options:
        yield url
        return
    with creating(url, options) as saver:
        yield saver


def _moving() -> tuple[Any, Any]:
    """The package that moves, and the names of its arguments."""
    with importing(f"moving threads needs LangGraph's package: {_INSTALL}"):
        from threadmark_langgraph import moving
        from threadmark_langgraph.moving import __main__ as names
    return moving, names


def _classes(loadable: Callable[[str], type], allow: tuple[str, ...], imported: tuple[str, ...]) -> list[type]:
    """Import the named modules and classes, from the current folder too, as `python -m` does. Returns the classes."""
    _see_current_folder()
    for module in imported:
        try:
            importlib.import_module(module)
        except Exception as error:
            raise click.BadParameter(
                f"the module {module!r} cannot be imported ({type(error).__name__}: {error})", param_hint="--import"
            ) from error
    return [_class_of(loadable, each) for each in allow]


def _see_current_folder() -> None:
    """Let modules of the current folder be imported, as `python -m` does: those of the application are often there."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def _class_of(loadable: Callable[[str], type], named: str) -> type:
    from argparse import ArgumentTypeError

    try:
        return loadable(named)
    except ArgumentTypeError as error:
        raise click.BadParameter(str(error), param_hint="--allow") from error


def _counted(progress: Callable[[Progress], object]) -> Callable[[int, int], object]:
    return lambda done, total: progress(Progress(done, total, ""))


@contextmanager
def _told_anyway(session: Session, moved: Any, *, dry_run: bool) -> Iterator[None]:
    """Report the threads also if the items fail after them: threads that were moved stay moved."""
    try:
        yield
    except BaseException:
        _tell(session, moved, [], dry_run=dry_run)
        raise


def _tell(session: Session, moved: Any, items: Sequence["StoreMoved"], *, dry_run: bool) -> int:
    if session.out.as_json:
        figures = ("threads", "checkpoints", "writes", "already_there", "held_back", "messages", "incomplete")
        record = {name: getattr(moved, name) for name in figures}
        record |= {name: [str(each) for each in getattr(moved, name)] for name in ("problems", "changed")}
        session.out.record({**record, "items": [*map(moved_record, items)], "dry_run": dry_run})
    else:
        if dry_run:
            session.out.note("A dry run: nothing was stored. A move would give:")
        for line in str(moved).splitlines():
            session.out.line(line)
        for each in items:
            show_moved(session.out, each)
    return WRONG if moved.problems or any(each.problems for each in items) else DONE


def _write_lines(session: Session, threads: tuple[str, ...]) -> int:
    code = DONE
    with session.saver() as saver:
        for thread in threads:
            expect_thread(saver, thread)
        for thread in threads:
            for entry in reversed([*_entries(saver, thread)]):
                line = _line(saver, thread, entry)
                code = WRONG if "problem" in line else code
                session.out.record(line)
    return code


def _entries(saver: SaverProtocol, thread: str) -> Iterator[HistoryEntry]:
    cursor = None
    while True:
        page = saver.history(thread, ns=None, limit=_PAGE, cursor=cursor)
        yield from page.entries
        if (cursor := page.cursor) is None:
            return


def _line(saver: SaverProtocol, thread: str, entry: HistoryEntry) -> dict[str, Any]:
    named = {"thread": thread, "ns": entry.ns, "id": entry.id, "parent": entry.parent}
    if entry.problem is not None:
        return {**named, "problem": entry.problem.problem}
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": entry.ns, "checkpoint_id": entry.id}}
    try:
        found = saver.get_tuple(config)
    except CorruptDataError as error:
        return {**named, "problem": str(error)}
    if found is None:
        return {**named, "problem": "it was removed meanwhile"}
    return {
        **named,
        "created_at": entry.created_at.isoformat(),
        "step": entry.step,
        "source": entry.source,
        "nodes": entry.nodes,
        "metadata": found.metadata,
        "values": found.checkpoint["channel_values"],
        "writes": _writes(found),
    }


def _writes(found: CheckpointTuple) -> list[dict[str, Any]]:
    return [
        {"task": task_id, "channel": channel, "value": value} for task_id, channel, value in found.pending_writes or ()
    ]
