"""States without their values: one for each thread, and the history of a thread. No value is read for it."""

from collections.abc import Mapping, Sequence
from typing import Any

from threadmark.config import as_thread_id
from threadmark.errors import ConfigError, shown
from threadmark.interfaces.operations.marks import STATE, marked
from threadmark.interfaces.operations.newest import newest_rows
from threadmark.interfaces.state_info import StateInfo, StatePage
from threadmark.model import ThreadSort
from threadmark.program import Operation, Program, read
from threadmark.saver.context import SaverContext
from threadmark.saver.cursors import new_cursor, parts_of_cursor
from threadmark.saver.loading.decoding import decode_metadata
from threadmark.saver.operations.threads import filtered
from threadmark.saver.paging import Pages
from threadmark.saver.proving.checks import prove_checkpoint
from threadmark.saver.proving.completeness import prove_complete
from threadmark.saver.thread_arguments import cursor_of, given_count, place_of, time_of
from threadmark.store import Outline, Scope
from threadmark.thread_store import ThreadOutline

_SIZE = "__size__"
"""The key of a checkpoint's metadata that holds the size of its state."""


def with_size(metadata: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Return a checkpoint's metadata, from what was given with a state."""
    if not isinstance(metadata, Mapping):
        raise ConfigError(f"metadata must be a dictionary, not {type(metadata).__name__}")
    if _SIZE in metadata:
        raise ConfigError(f"the key {_SIZE!r} of metadata holds the size of the state: choose another one")
    return {**metadata, _SIZE: size}


def list_states(context: SaverContext, limit: int, cursor: str | None, sort: ThreadSort) -> Operation[StatePage]:
    """Return a page of the newest states of threads."""
    query, count = marked(STATE, sort), given_count(limit, "limit")
    found = yield from filtered(context, query, place_of(query, cursor), count + 1)
    infos = yield from read(_newest, context, found[:count])
    return StatePage(infos, cursor_of(query, found[count - 1]) if len(found) > count > 0 else None)


def history(context: SaverContext, thread_id: str, limit: int, cursor: str | None) -> Operation[StatePage]:
    """Return a page of the states of one thread, newest first."""
    name, count = as_thread_id(thread_id), given_count(limit, "limit")
    thread, outlines = yield from read(_page, context, name, count + 1, _rank_of(name, cursor))
    infos = [_info(thread, outline) for outline in outlines[:count]] if thread else []
    return StatePage(infos, new_cursor(name, outlines[count - 1].rank) if len(outlines) > count > 0 else None)


def _newest(context: SaverContext, threads: Sequence[ThreadOutline]) -> Program[list[StateInfo]]:
    """The newest state of each thread, in one question. One that has gone meanwhile is left out."""
    rows = yield from newest_rows(context, [thread.row.thread_id for thread in threads])
    for row in rows.values():
        prove_checkpoint(row)
    names = ((thread, thread.row.thread_id) for thread in threads)
    return [_info(thread, rows[name].outline) for thread, name in names if name in rows]


def _page(
    context: SaverContext, thread_id: str, limit: int, before: str | None
) -> Program[tuple[ThreadOutline | None, Sequence[Outline]]]:
    thread = yield from context.store.thread(thread_id)
    if before is None:
        yield from newest_rows(context, [thread_id])  # so that none of the newest is missed
    pages = Pages(Scope(thread_id, "", before=before), limit)
    page = pages.read((yield from context.store.page(*pages.request)))
    if not pages.more:
        yield from prove_complete(context, thread_id, "")  # nor one of the others
    return thread, page


def _info(thread: ThreadOutline, outline: Outline) -> StateInfo:
    metadata = decode_metadata(outline)
    size = metadata.pop(_SIZE, None)
    return StateInfo(
        outline.id,
        outline.thread_id,
        time_of(thread.row.created_at),
        time_of(outline.created_at),
        metadata,
        size if type(size) is int else None,
    )


def _rank_of(thread_id: str, cursor: str | None) -> str | None:
    """The rank that a cursor of this thread names."""
    if cursor is None:
        return None
    name, rank = parts_of_cursor(cursor, (str, str))
    if name != thread_id:
        raise ConfigError(f"{shown(cursor)} is no cursor of thread {thread_id!r}: give the one of the page before")
    return str(rank)
