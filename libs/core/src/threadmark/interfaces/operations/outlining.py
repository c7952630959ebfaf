"""States without their values: one for each thread, and the history of a thread. No value is read for it."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from json import dumps, loads
from typing import Any, NamedTuple

from threadmark.config import ParsedConfig, as_thread_id
from threadmark.errors import ConfigError, shown
from threadmark.interfaces.operations.marks import STATE, marked
from threadmark.interfaces.operations.saving import newest_outline
from threadmark.model import ThreadSort
from threadmark.names import as_text
from threadmark.program import Operation, Program, read
from threadmark.saver.context import SaverContext
from threadmark.saver.loading.decoding import decode_metadata
from threadmark.saver.operations.threads import filtered
from threadmark.saver.paging import Pages
from threadmark.saver.proving.checks import prove_checkpoint
from threadmark.saver.proving.completeness import prove_complete, proven_row
from threadmark.saver.thread_arguments import cursor_of, given_count, place_of, time_of
from threadmark.store import Outline, Scope
from threadmark.thread_store import ThreadOutline

_SIZE = "__size__"
"""The key of a checkpoint's metadata that holds the size of its state."""


class StateInfo(NamedTuple):
    """A saved state without its value."""

    id: str
    thread_id: str
    created_at: datetime
    """When its thread began."""
    updated_at: datetime
    """When this state was saved."""
    metadata: dict[str, Any]
    """What was given with it."""
    size: int | None
    """How many bytes it was encoded in, whatever of it was there before. None where a graph made it."""


class StatePage(NamedTuple):
    """Some states, and the cursor with which the next ones are found; None where these are the last."""

    states: list[StateInfo]
    cursor: str | None


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
    return StatePage(infos, _cursor_of(outlines[count - 1]) if len(outlines) > count > 0 else None)


def _newest(context: SaverContext, threads: Sequence[ThreadOutline]) -> Program[list[StateInfo]]:
    """The newest state of each thread, in one question. One that has gone meanwhile is left out."""
    found = yield from context.store.newest([thread.row.thread_id for thread in threads], "")
    there = [(thread, found[thread.row.thread_id]) for thread in threads if thread.row.thread_id in found]
    rows = [(thread, proven_row(ParsedConfig(thread.row.thread_id, "", None), each)) for thread, each in there]
    for _, row in rows:
        prove_checkpoint(row)
    return [_info(thread, row.outline) for thread, row in rows]


def _page(
    context: SaverContext, thread_id: str, limit: int, before: str | None
) -> Program[tuple[ThreadOutline | None, Sequence[Outline]]]:
    thread = yield from context.store.thread(thread_id)
    if before is None:
        yield from newest_outline(context, thread_id)  # so that none of the newest is missed
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


def _cursor_of(last: Outline) -> str:
    return urlsafe_b64encode(dumps([last.thread_id, last.rank]).encode()).decode()


def _rank_of(thread_id: str, cursor: str | None) -> str | None:
    """The rank that a cursor of this thread names."""
    if cursor is None:
        return None
    try:
        name, rank = loads(urlsafe_b64decode(as_text(cursor, "cursor")))
    except (ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"{shown(cursor)} is no cursor: give the one of the page before") from error
    if name != thread_id or type(rank) is not str:
        raise ConfigError(f"{shown(cursor)} is no cursor of thread {thread_id!r}: give the one of the page before")
    return rank
