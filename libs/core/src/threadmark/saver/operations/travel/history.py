"""A page of a thread's checkpoints, without their values."""

from threadmark.config import ParsedConfig
from threadmark.model import Config
from threadmark.names import MESSAGES_NS, as_text
from threadmark.program import Operation, Program, read
from threadmark.saver.context import SaverContext
from threadmark.saver.cursors import new_cursor, parts_of_cursor
from threadmark.saver.operations.parts import given_place
from threadmark.saver.operations.travel.entries import entries_of
from threadmark.saver.proving.completeness import lacking
from threadmark.store import Outline, Scope
from threadmark.travel import HistoryPage

_AT_ONCE = 512
"""How many checkpoints are read in one transaction."""


def history(
    context: SaverContext, thread: Config | str, ns: str | None, limit: int, cursor: str | None
) -> Operation[HistoryPage]:
    """Return a page of a thread's checkpoints, newest first. A conversation's messages are none."""
    where = given_place(thread)
    thread_id = where.thread_id
    scope = Scope(thread_id, None if ns is None else as_text(ns, "ns"))
    after = None if cursor is None else _place(thread_id, cursor)
    page = HistoryPage([], None)
    more = limit > 0
    while more:
        wanted = min(limit - len(page.entries), _AT_ONCE)
        begin = where if after is None and where.checkpoint_id is not None else None
        outlines, more = yield from read(_outlines, context, scope, begin, after, wanted)
        page.entries.extend((yield from read(entries_of, context, thread_id, outlines)))
        after = outlines[-1] if outlines else None
        if more and after is not None and len(page.entries) >= limit:
            return page._replace(cursor=new_cursor(after.rank, after.ns))
    if limit > 0:
        page = page._replace(problems=(yield from read(lacking, context, thread_id, scope.ns)))
    return page


def _outlines(
    context: SaverContext, scope: Scope, begin: ParsedConfig | None, after: Outline | None, limit: int
) -> Program[tuple[list[Outline], bool]]:
    """Return the next checkpoints, and whether there are more: from one that is named on, itself included.

    Messages among them are passed over.
    """
    found: list[Outline] = []
    if begin is not None:
        named = yield from context.store.page(Scope(*begin[:3]), None, 1)
        if not named:
            return [], False
        after = named[0]
        found += [outline for outline in named if scope.ns in (None, outline.ns) and outline.ns != MESSAGES_NS]
    asked = limit + 1 - len(found)
    while True:
        page = yield from context.store.page(scope, after, asked)
        found += [outline for outline in page if outline.ns != MESSAGES_NS]
        if len(page) < asked or len(found) > limit or not _goes_on(after, page[-1]):
            return found[:limit], len(found) > limit
        after, asked = page[-1], _AT_ONCE  # a conversation may have many messages


def _goes_on(after: Outline | None, last: Outline) -> bool:
    """Whether a page leads on. In a damaged index it may lead back."""
    return after is None or last.order < after.order


def _place(thread_id: str, cursor: str) -> Outline:
    """The place that a cursor names, as a checkpoint that stands there."""
    rank, ns = parts_of_cursor(cursor, (str, str))
    return Outline(thread_id, ns, "", rank, None, 0, "")
