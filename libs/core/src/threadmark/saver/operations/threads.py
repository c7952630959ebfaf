"""Finding, listing, counting, creating and updating threads. This reads and decodes no value."""

import sys
from collections.abc import Callable, Mapping, Sequence

from threadmark.config import named_thread
from threadmark.errors import ConflictError, CorruptDataError, LocatedError, ThreadNotFoundError, located
from threadmark.metadata import matches, to_json
from threadmark.model import UNSET, Duration, ThreadInfo, ThreadPage
from threadmark.names import THREAD_ID_BYTES, check_length
from threadmark.program import Operation, Program, read, write
from threadmark.saver.arguments import (
    ThreadQuery,
    ThreadUpdate,
    cursor_of,
    microseconds_in,
    place_of,
    thread_query,
    time_of,
)
from threadmark.saver.context import SaverContext, first_expiry
from threadmark.saver.next_nodes import next_nodes
from threadmark.saver.operations.beginning import check_keyring
from threadmark.saver.operations.parts import parts_of, problem_of
from threadmark.saver.operations.reporting import damaged
from threadmark.saver.options import checked_duration
from threadmark.saver.paths import Path
from threadmark.saver.proving import metadata_of, sound_row
from threadmark.store.contract import NO_NUMBER, Change, now
from threadmark.store.threads import (
    ThreadCounts,
    ThreadOutline,
    ThreadPlace,
    ThreadRow,
    beginning,
    expect_counted,
    goes_on,
    is_sound_thread,
    status_of,
    thread_row,
)

_FILTERED = 256
"""How many threads to read at once if the saver itself filters them."""


def get_thread(context: SaverContext, thread_id: object) -> Operation[ThreadInfo | None]:
    """Return one thread, None if there is none."""
    return (yield from read(_thread, context, named_thread(thread_id)))


def list_threads(
    context: SaverContext,
    query: ThreadQuery,
    limit: int,
    cursor: str | None,
    offset: int,
    paths: Mapping[str, Path],
) -> Operation[ThreadPage]:
    """Return a page of threads, with the parts of their states that the paths lead to."""
    after = place_of(query, cursor)
    if query.filters_here:
        found = (yield from filtered(context, query, after, offset + limit + 1))[offset:]
    else:
        found = yield from read(context.store.thread_page, query.scope, after, offset, limit + 1)
    infos = yield from read(_infos, context, found[:limit], _info_or_problem)
    if paths:
        infos = yield from _with_parts(context, infos, paths)
    return ThreadPage(infos, cursor_of(query, found[limit - 1]) if len(found) > limit > 0 else None)


def unfinished(context: SaverContext, idle_for: Duration, limit: int, cursor: str | None) -> Operation[ThreadPage]:
    """Return a page of unfinished threads that have stored no checkpoint for a while."""
    query = thread_query({"status": "unfinished"}, "updated")
    until = now() - microseconds_in(checked_duration(idle_for, "idle_for", positive=False))
    return list_threads(context, query._replace(scope=query.scope._replace(until=max(0, until))), limit, cursor, 0, {})


def count_threads(context: SaverContext, query: ThreadQuery) -> Operation[int]:
    """Return how many threads a listing has."""
    if query.filters_here:
        return len((yield from filtered(context, query, None, sys.maxsize)))
    return (yield from read(context.store.count_threads, query.scope))


def create_thread(context: SaverContext, thread_id: object, update: ThreadUpdate) -> Operation[ThreadInfo]:
    """Create a thread without checkpoints. Raises ConflictError if it is there."""
    thread_id = named_thread(thread_id)
    check_length(thread_id, THREAD_ID_BYTES, "thread_id")
    if update.owner is UNSET:
        update = update._replace(owner=context.threads.owner)
    if not context.keyring_check.done:  # a title is stored in clear by a saver without the keyring
        yield from check_keyring(context)
    return (yield from write(_create, context, thread_id, update, []))


def update_thread(context: SaverContext, thread_id: object, update: ThreadUpdate) -> Operation[ThreadInfo]:
    """Set something of a thread. Raises ThreadNotFoundError if it is not there."""
    thread_id = named_thread(thread_id)
    if not context.keyring_check.done:  # a row that does not open is replaced if all of it is set
        yield from check_keyring(context)
    return (yield from write(_update, context, thread_id, update))


def _matches(query: ThreadQuery, outline: ThreadOutline) -> bool:
    row = sound_row(outline)
    text = query.scope.text
    in_text = text is None or text in row.thread_id or (row.title and text.casefold() in row.title.casefold())
    return bool(in_text) and matches(metadata_of(row), query.metadata)


def _row_to_update(outline: ThreadOutline, update: ThreadUpdate) -> ThreadRow:
    """Return the row that an update starts from: an empty one if a damaged row is replaced completely."""
    if not is_sound_thread(outline.row) and update.metadata is not None and UNSET not in update:
        return ThreadRow(outline.row.thread_id, outline.row.created_at)
    return sound_row(outline)


def filtered(
    context: SaverContext, query: ThreadQuery, after: ThreadPlace | None, enough: int
) -> Operation[list[ThreadOutline]]:
    """Read on until there are enough threads that match, or no more."""
    found: list[ThreadOutline] = []
    more = True
    while more and len(found) < enough:
        page = yield from read(context.store.thread_page, query.scope, after, 0, _FILTERED)
        found += [outline for outline in page if not is_sound_thread(outline.row) or _matches(query, outline)]
        more = len(page) == _FILTERED
        after = query.place(page[-1]) if page else None
    return found


def _with_parts(
    context: SaverContext, infos: Sequence[ThreadInfo], paths: Mapping[str, Path]
) -> Operation[list[ThreadInfo]]:
    # Those without a newest checkpoint, too: it may be missing.
    parts = yield from parts_of(context, [info.id for info in infos], paths)
    return [
        info._replace(extracted=parts[info.id].extracted, problems=[*info.problems, *parts[info.id].problems])
        for info in infos
    ]


def _thread(context: SaverContext, thread_id: str) -> Program[ThreadInfo | None]:
    outline = yield from context.store.thread(thread_id)
    infos = yield from _infos(context, [outline] if outline else [], _info)
    return infos[0] if infos else None


def _infos(
    context: SaverContext,
    outlines: Sequence[ThreadOutline],
    info: Callable[[ThreadOutline, ThreadCounts], ThreadInfo],
) -> Program[list[ThreadInfo]]:
    """Complete the threads of a listing. A thread that was deleted since then is left out."""
    if not outlines:
        return []
    found = yield from context.store.thread_counts([outline.row.thread_id for outline in outlines])
    counts = {each.thread_id: each for each in found}
    there = [outline for outline in outlines if outline.row.thread_id in counts]
    infos = [info(outline, counts[outline.row.thread_id]) for outline in there]
    unfinished = [each.thread_id for each in found if goes_on(each)]
    following = (yield from next_nodes(context, unfinished)) if unfinished else {}
    return [_with_next(each, following.get(each.id, ())) for each in infos]


def _with_next(info: ThreadInfo, following: Sequence[str] | LocatedError) -> ThreadInfo:
    if isinstance(following, LocatedError):
        return info._replace(problems=[*info.problems, problem_of(info.id, following)])
    return info._replace(next=following) if following else info


def _info(outline: ThreadOutline, counts: ThreadCounts) -> ThreadInfo:
    expect_counted(counts)
    row = sound_row(outline)
    with located(f"thread {row.thread_id!r}"):
        created, updated = time_of(row.created_at), time_of(outline.updated_at)
    return ThreadInfo(
        row.thread_id,
        row.owner,
        row.title,
        metadata_of(row),
        created,
        updated,
        status_of(counts),
        counts.checkpoints,
        counts.namespaces,
        counts.bytes,
        counts.newest,
        [],
        None if row.expires_at is None else time_of(row.expires_at),
        extracted={},
        problems=[],
    )


def _info_or_problem(outline: ThreadOutline, counts: ThreadCounts) -> ThreadInfo:
    """One thread of a listing. If its row is damaged, only the fields that are not of that row, and the problem."""
    try:
        return _info(outline, counts)
    except CorruptDataError as error:
        created_at, updated_at = (
            0 if each == NO_NUMBER else each for each in (outline.row.created_at, outline.updated_at)
        )
        bare = ThreadOutline(ThreadRow(outline.row.thread_id, created_at), updated_at)
        return _info(bare, counts._replace(damage=""))._replace(problems=[damaged(error)])


def _create(context: SaverContext, thread_id: str, update: ThreadUpdate, tried: list[int]) -> Program[ThreadInfo]:
    """Create a thread. `tried` has its epochs after earlier attempts, one of which may have been committed.

    A driver tries again if a connection was lost, even after the commit.
    """
    epoch = yield from context.store.lock(thread_id)
    if epoch is None:
        begins = beginning(thread_id, None, first_expiry(context))
        added = yield from context.store.add(Change(thread_id, None, now(), {}, (), (), None, beginning=begins))
        if added.refused == "owner":
            raise ConflictError(f"the thread_id {thread_id!r} is taken: choose another one")
        if added.refused:
            raise ConflictError(
                f"another holder has a lease of {thread_id!r}, and will begin it: wait, or choose another id"
            )
        tried.append(added.epoch)
    elif epoch not in tried:
        raise ConflictError(f"thread {thread_id!r} exists already: `update_thread` changes it")
    return (yield from _update(context, thread_id, update))


def _update(context: SaverContext, thread_id: str, update: ThreadUpdate) -> Program[ThreadInfo]:
    yield from context.store.lock(thread_id)
    outline = yield from context.store.thread(thread_id)
    if outline is None:
        raise ThreadNotFoundError(f"there is no thread {thread_id!r}: `create_thread` creates one, or its first put")
    row = _row_to_update(outline, update)
    if update.title is not UNSET:
        row = row._replace(title=update.title)
    if update.owner is not UNSET:
        row = row._replace(owner=update.owner)
    if update.expires is not UNSET:
        row = row._replace(expires_at=update.expires)
    if update.metadata:
        patched = {key: value for key, value in {**metadata_of(row), **update.metadata}.items() if value is not None}
        row = row._replace(metadata=to_json(patched) if patched else None)
    yield from context.store.set_thread(thread_row(row))
    found = yield from _thread(context, thread_id)
    if found is None:
        raise ThreadNotFoundError(f"there is no thread {thread_id!r}")  # its owner went with the update
    return found
