"""Listing: pages of outlines, searched by their metadata, then loaded a few at a time.

No lock and no connection is held between two batches: a paused listing blocks no one, and a dropped one leaks nothing.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from threadmark.config import checkpoint_id, namespace, thread_id
from threadmark.errors import ConfigError, CorruptDataError, LocatedError, short_repr
from threadmark.metadata import certain_fragments, checked_filter, from_json, matches, run_id_of
from threadmark.model import CheckpointTuple, Config
from threadmark.program import Operation, Program, read
from threadmark.saver.caches import SegmentCache, fill
from threadmark.saver.completeness import missing, prove_complete
from threadmark.saver.context import SaverContext
from threadmark.saver.decoding import decoded
from threadmark.saver.loading import CheckpointLoader, LoadedCheckpoint, missing_headers, remembered
from threadmark.saver.paging import PageRequest, Pages
from threadmark.saver.proving import checkpoint_location
from threadmark.store.contract import CheckpointRow, Key, Outline, Scope, WriteRow

_PAGE = 512
_LARGE_PAGE = 4096
_BATCH = 64
_FEW = 16
"""The size of the first batch if there is no limit: perhaps only the newest is looked at."""
_HEAVY = 32 * 1024 * 1024
"""Bytes that a batch should not hold: one that held more is followed by smaller ones."""


Item = LoadedCheckpoint | CheckpointLoader | CorruptDataError
"""A checkpoint whose values are remembered, one whose values were read and are still to be put together, or the error
that says how it is damaged."""

_KEY: Callable[[Outline], Key] = itemgetter(slice(1, 3))
"""Like `Outline.key`, without a call of a function in Python for each."""


class Listing(NamedTuple):
    """The arguments of `list`, checked."""

    scope: Scope
    before: str | None
    """A checkpoint id. In a listing of one thread, it is replaced by the checkpoint's rank."""
    criteria: Mapping[str, Any]
    limit: int | None


def listing(
    config: Config | str | None, criteria: Mapping[str, Any] | None, before: Config | None, limit: int | None
) -> Listing:
    """Check the arguments of `list`."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ConfigError(f"limit must be None or a number from 0 on, not {short_repr(limit)}")
    checked = checked_filter(criteria)
    scope = Scope(fragments=certain_fragments(checked), run_id=run_id_of(checked))
    if config is not None:
        scope = scope._replace(
            ns=namespace(config),
            thread_id=thread_id(config),
            checkpoint_id=checkpoint_id(config),
        )
    return Listing(scope, checkpoint_id(before) if before is not None else None, checked, limit)


class Reader:
    """The state of a listing: outlines found but not yet loaded, and the place to search on from."""

    def __init__(self, context: SaverContext, asked: Listing) -> None:
        self._context = context
        self._asked = asked
        self._pages: Pages | None = None
        self._left = asked.limit
        self._waiting: list[Outline] = []
        self._size = _FEW if asked.limit is None else _BATCH
        self._segment_caches: dict[str, SegmentCache] = {}
        self._left_out: list[LocatedError] = []
        self._missing: Sequence[tuple[str, str]] = ()

    @property
    def more(self) -> bool:
        """Whether there may be another batch."""
        return self._left != 0 and bool(self._waiting or self._pages is None or self._pages.more)

    def next_batch(self) -> Operation[list[Item]]:
        """The next few checkpoints, or the errors that say how they are damaged. Those of the batch before are over.

        Their values are put together one by one, as they are asked for.
        """
        if self._pages is None:
            size = _PAGE if self._asked.criteria or self._left is None else min(_PAGE, self._left)
            self._pages = Pages((yield from self._placed()), size)
        if (
            self._left is not None
            and not self._asked.criteria
            and self._pages.request.limit <= min(self._left, self._size)
        ):
            return (yield from self._whole_page(self._pages, self._left))
        while not self._waiting and self._pages.more:
            self._waiting = yield from self._next_page(self._pages)
        size = self._size if self._left is None else min(self._size, self._left)
        batch, self._waiting = self._waiting[:size], self._waiting[size:]
        if not batch:
            return []
        found = yield from read(load_many, self._context, batch, self._segment_caches)
        if self._left is not None:
            self._left -= len(found)
        return list(found)

    def _whole_page(self, pages: Pages, left: int) -> Operation[list[Item]]:
        """Read a page all of which is one batch, with everything that belongs to it, in one transaction."""
        page, found = yield from read(_load_page, self._context, pages.request, self._segment_caches)
        scope = pages.request.scope
        pages.read(page)
        self._left = left - len(found)
        if not pages.more:
            self._missing = yield from read(missing, self._context, scope.thread_id, scope.ns)
        return found

    def _next_page(self, pages: Pages) -> Operation[list[Outline]]:
        """Read one page. Returns the outlines that match the filter."""
        request, criteria = pages.request, self._asked.criteria
        page = pages.read((yield from read(self._context.store.page, *request)))
        if page and not criteria and _starts_at_the_newest(request):
            yield from read(_prove_newest, self._context, page[0])
        if not pages.more:
            self._missing = yield from read(missing, self._context, request.scope.thread_id, request.scope.ns)
        return [outline for outline in page if _matches(outline, criteria)]

    def readable(self, batch: Sequence[Item]) -> Iterator[CheckpointTuple]:
        """The checkpoints of a batch as their user sees them, each decoded when it is asked for."""
        for item in batch:
            try:
                yield decoded(self._context, whole(item))
            except LocatedError as error:
                if self._asked.scope.thread_id is not None:
                    raise
                self._left_out.append(error)
        weight = sum(segment_cache.weight for segment_cache in self._segment_caches.values())
        self._size = max(1, min(_BATCH, len(batch) * _HEAVY // max(1, weight)))

    def finish(self) -> None:
        """Report the omissions of a listing of all threads, or the gaps of one of a whole thread."""
        for location, problem in self._missing:
            raise CorruptDataError(f"{problem}: `verify` names the damaged rows", location)
        if self._left_out:
            first, number = self._left_out[0], len(self._left_out)
            problem = f"{first.problem} (the listing left out {number} unreadable checkpoints; this is the first)"
            raise type(first)(problem, first.location) from first

    def _placed(self) -> Operation[Scope]:
        """The scope with the rank that `before` stands for."""
        scope, before = self._asked.scope, self._asked.before
        if before is not None and scope.thread_id is not None:
            same = Scope(thread_id=scope.thread_id, ns=scope.ns, checkpoint_id=before)
            found = yield from read(self._context.store.page, same, None, 1)
            before = found[0].rank if found else before
        return scope._replace(before=before)


def _load_page(
    context: SaverContext, request: PageRequest, segment_caches: dict[str, SegmentCache]
) -> Program[tuple[Sequence[Outline], list[Item]]]:
    """Read a page and all of its checkpoints."""
    rows = yield from context.store.page_of_rows(*request)
    page = (yield from context.store.page(*request)) if rows is None else [row.outline for row in rows]
    if page and _starts_at_the_newest(request):
        yield from _prove_newest(context, page[0])
    return page, (yield from load_many(context, page, segment_caches, rows))


def _starts_at_the_newest(request: PageRequest) -> bool:
    scope, after, _ = request
    of_newest = scope.thread_id is not None and scope.checkpoint_id is None and scope.before is None
    return of_newest and after is None and not scope.fragments


def _prove_newest(context: SaverContext, first: Outline) -> Program[None]:
    """Raise CorruptDataError if the first checkpoint of a listing is not the newest of its namespace."""
    heads = yield from context.store.heads(first.thread_id, first.ns)
    if [head.newest for head in heads] != [first.rank]:  # it is damaged, or another put was quicker
        yield from prove_complete(context, first.thread_id, first.ns)


def all_outlines(context: SaverContext, thread_id: str) -> Program[list[Outline]]:
    """Every checkpoint of a thread, newest first."""
    outlines: list[Outline] = []
    pages = Pages(Scope(thread_id), _LARGE_PAGE)
    while pages.more:
        outlines += pages.read((yield from context.store.page(*pages.request)))
    return outlines


def thread_ids(context: SaverContext, after: str, limit: int) -> Program[list[str]]:
    """The next thread ids after this one, in ascending order, from "" on.

    The empty id, which is one as well, comes after none: it is asked for by itself.
    """
    found = yield from context.store.threads(after, limit)
    if not after and (yield from context.store.epoch("")) is not None:
        found = ["", *found][:limit]
    return found


def load_many(
    context: SaverContext,
    outlines: Sequence[Outline],
    segment_caches: dict[str, SegmentCache],
    rows: Sequence[CheckpointRow] | None = None,
) -> Program[list[Item]]:
    """Read these checkpoints in one transaction. One that was deleted since then is left out.

    `segment_caches`, by thread, holds the segments fetched for those before them, which these no longer need,
    and then those fetched for these. `rows` are theirs, if the same transaction has read them.
    """
    asked: dict[str, list[Key]] = {}
    every = [(outline[0], _KEY(outline)) for outline in outlines]
    for thread, key in every:
        asked.setdefault(thread, []).append(key)
    for thread in segment_caches.keys() - asked.keys():
        del segment_caches[thread]
    found: dict[str, dict[Key, Item]] = {}
    for thread, keys in asked.items():
        of_thread = None if rows is None else [row for row in rows if row[0][0] == thread]
        found[thread] = yield from _of_thread(
            context, thread, keys, segment_caches.setdefault(thread, context.segment_cache()), of_thread
        )
        if hidden := set(keys) - found[thread].keys():
            found[thread] |= yield from _hidden(context, thread, hidden)
    return [found[thread][key] for thread, key in every if key in found[thread]]


def _hidden(
    context: SaverContext, thread: str, keys: Collection[Key]
) -> Program[dict[Key, CheckpointLoader | CorruptDataError]]:
    """Return errors for checkpoints that a page lists but that are not found by their keys. Others were deleted."""
    outlines = yield from all_outlines(context, thread)
    return {
        key: CorruptDataError("its row is not found by its key", checkpoint_location(outline))
        for outline in outlines
        if (key := outline.key) in keys
    }


def whole(item: Item) -> LoadedCheckpoint:
    """Return a checkpoint of a batch with the bytes of its values, or raise the error that says how it is damaged."""
    if isinstance(item, LoadedCheckpoint):
        return item
    if isinstance(item, CorruptDataError):
        raise item
    return item.loaded()


def loaders(
    context: SaverContext, rows: Sequence[CheckpointRow], writes: Mapping[Key, Sequence[WriteRow]]
) -> dict[Key, CheckpointLoader | CorruptDataError]:
    """Return a loader for each checkpoint, or the error of a damaged row."""
    found: dict[Key, CheckpointLoader | CorruptDataError] = {}
    for row in rows:
        key = _KEY(row[0])
        try:
            found[key] = CheckpointLoader(row, writes.get(key, ()), context.encoding_cache)
        except CorruptDataError as error:
            found[key] = error
    return found


def open_headers(found: dict[Key, CheckpointLoader | CorruptDataError], segment_cache: SegmentCache) -> None:
    """Read the headers. The loader of a damaged one is replaced by its error."""
    for key, loader in found.items():
        if isinstance(loader, CheckpointLoader):
            try:
                loader.open_header(segment_cache)
            except CorruptDataError as error:
                found[key] = error


def good(found: Mapping[Key, CheckpointLoader | CorruptDataError]) -> list[CheckpointLoader]:
    """Those without an error so far."""
    return [loader for loader in found.values() if isinstance(loader, CheckpointLoader)]


def _of_thread(
    context: SaverContext,
    thread: str,
    keys: Sequence[Key],
    segment_cache: SegmentCache,
    rows: Sequence[CheckpointRow] | None,
) -> Program[dict[Key, Item]]:
    """Some checkpoints of one thread, with the cost of their values in the segment cache."""
    if rows is None:
        rows = yield from context.store.rows(thread, keys)
    writes: dict[Key, list[WriteRow]] = {}
    for write in (yield from context.store.writes(thread, keys)):
        writes.setdefault(write[:2], []).append(write)
    done: dict[Key, Item] = {}
    others: list[CheckpointRow] = []
    for row in rows:
        key = _KEY(row[0])
        try:
            loaded = remembered(row, writes.get(key, ()), context.encoding_cache)
        except CorruptDataError as error:
            done[key] = error
            continue
        if loaded is None:
            others.append(row)
        else:
            done[key] = loaded
    waiting = loaders(context, others, writes)
    headers = missing_headers(good(waiting))
    yield from fill(segment_cache, context.store, thread, headers)
    open_headers(waiting, segment_cache)
    values = {key for loader in good(waiting) for key in loader.value_keys()}
    segment_cache.keep(headers | values)
    yield from fill(segment_cache, context.store, thread, values)
    return done | waiting


def _matches(outline: Outline, criteria: Mapping[str, Any]) -> bool:
    if not criteria:
        return True
    try:
        return matches(from_json(outline.metadata), criteria)
    except CorruptDataError:
        return True  # loading it will say so, and name it
