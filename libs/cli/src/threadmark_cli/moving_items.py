"""The items of stores in `migrate` and `export`: those of LangGraph's stores, and of Threadmark's."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from threadmark import MemorySaver, SaverProtocol
from threadmark.model import count_text
from threadmark.types import Progress
from threadmark_cli.items import NEEDED, items_if_any
from threadmark_cli.opening import creating, file_of, open_for_reading
from threadmark_cli.output import Output
from threadmark_cli.session import Session

if TYPE_CHECKING:
    from threadmark_store import Store
    from threadmark_store.shapes import StoreMoved

_MOST_SHOWN = 20


def has_langgraphs(session: Session, url: str) -> bool:
    """Return whether a database has items of LangGraph's store. A missing package is noted."""
    if find_spec("threadmark_store") is None:
        session.out.note(f"items are left out: {NEEDED}")
        return False
    from threadmark_store.databases import has_items

    return has_items(file_of(url) or url)


def migrate_items(
    session: Session, source: str, target: str, *, langgraphs: bool, threadmarks: bool, dry_run: bool
) -> "list[StoreMoved]":
    """Copy items of LangGraph's store, and of Threadmark's, to a database of Threadmark's."""
    moved: list[StoreMoved] = []
    if langgraphs:
        from threadmark_store.databases import langgraphs_store

        with (
            langgraphs_store(file_of(source) or source, is_source=True) as theirs,
            _target(session, target, dry_run=dry_run) as store,
            _moving(session.out) as progress,
        ):
            moved.append(store.migrate(theirs, dry_run=dry_run, progress=progress))
    if threadmarks:
        with open_for_reading(source, {}) as saver:
            items = items_if_any(saver, session.out)
            if items is not None and items.run(items.count(""))[0]:
                with _target(session, target, dry_run=dry_run) as store, _moving(session.out) as progress:
                    moved.append(_store(saver).export(store, dry_run=dry_run, progress=progress))
    return moved


def export_items(session: Session, target: str, *, dry_run: bool) -> "list[StoreMoved]":
    """Copy all items to LangGraph's store."""
    with open_for_reading(session.url, session.saver_options()) as saver:
        items = items_if_any(saver, session.out)
        if items is None or not items.run(items.count(""))[0]:
            return []
        from threadmark_store.databases import has_items, langgraphs_store

        place = file_of(target) or target
        if dry_run and not has_items(place):
            from langgraph.store.memory import InMemoryStore

            with _moving(session.out) as progress:
                return [_store(saver).export(InMemoryStore(), dry_run=True, progress=progress)]
        with langgraphs_store(place, is_source=dry_run) as theirs, _moving(session.out) as progress:
            return [_store(saver).export(theirs, dry_run=dry_run, progress=progress)]


def show_moved(out: Output, moved: "StoreMoved") -> None:
    """Write the result as text."""
    for problem in moved.problems[:_MOST_SHOWN]:
        out.line((f"{problem.kind}: ", "bad"), f"{problem.location}: {problem.problem}")
    if len(moved.problems) > _MOST_SHOWN:
        out.line(f"and {len(moved.problems) - _MOST_SHOWN:,} more problems: --json lists all")
    newer = f", {moved.newer:,} newer there" if moved.newer else ""
    problems = count_text(len(moved.problems), "problem")
    out.line(f"{count_text(moved.items, 'item')}, {moved.already_there:,} already there{newer}, {problems}")


def moved_record(moved: "StoreMoved") -> dict[str, Any]:
    """The result as `--json` has it."""
    return {**moved._asdict(), "problems": [problem._asdict() for problem in moved.problems]}


@contextmanager
def _target(session: Session, url: str, *, dry_run: bool) -> Iterator["Store"]:
    """Open our store. A dry run makes no file."""
    file = file_of(url)
    if dry_run and file is not None and not file.is_file():
        yield _store(MemorySaver())
        return
    opened = (open_for_reading if dry_run else creating)(url, session.saver_options())
    with opened as saver:
        yield _store(saver)


def _store(saver: SaverProtocol) -> "Store":
    """Return a store in which no class is needed."""
    from threadmark_store import Store

    return Store(saver.without_classes())


@contextmanager
def _moving(out: Output) -> Iterator[Callable[[int, int], object]]:
    with out.progress("Moving items") as progress:
        yield lambda done, count: progress(Progress(done, count, ""))
