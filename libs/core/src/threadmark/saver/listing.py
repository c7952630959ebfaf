"""Listing: pages of outlines, searched by their metadata, then loaded a few at a time.

Nothing is held between two batches: a listing that is paused blocks nobody, and one that is dropped leaks nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from threadmark.config import checkpoint_id, namespace, thread_id
from threadmark.errors import ConfigError, CorruptDataError
from threadmark.metadata import certain_fragments, checked_filter, from_json, matches
from threadmark.model import CheckpointTuple, Config
from threadmark.program import Operation, Program, Transaction
from threadmark.saver.kit import Kit
from threadmark.saver.opening import Loaded, Opening, decoded
from threadmark.store import CheckpointRow, Key, Outline, Scope, WriteRow

_PAGE = 512
_LARGE_PAGE = 4096
_BATCH = 16

T = TypeVar("T")


class Listing(NamedTuple):
    """What `list` was asked for, checked."""

    scope: Scope
    before: str | None
    """A checkpoint id; its rank is looked up where the listing is of one thread."""
    wanted: Mapping[str, Any]
    limit: int | None


def listing(
    config: Config | None, wanted: Mapping[str, Any] | None, before: Config | None, limit: int | None
) -> Listing:
    """Check the arguments of `list`."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ConfigError(f"limit must be None or a number from 0 on, not {limit!r}")
    checked = checked_filter(wanted)
    scope = Scope(fragments=certain_fragments(checked))
    if config is not None:
        scope = scope._replace(
            ns=namespace(config),
            thread_id=thread_id(config),
            checkpoint_id=checkpoint_id(config),
        )
    return Listing(scope, checkpoint_id(before) if before is not None else None, checked, limit)


class Reader:
    """Where a listing stands: what was found and not yet loaded, and where to search on."""

    def __init__(self, kit: Kit, asked: Listing) -> None:
        self._kit = kit
        self._asked = asked
        self._scope: Scope | None = None
        self._after: Outline | None = None
        self._left = asked.limit
        self._waiting: list[Outline] = []
        self._searched = False
        self._damaged: list[CorruptDataError] = []

    @property
    def more(self) -> bool:
        """Whether there may be another batch."""
        return self._left != 0 and bool(self._waiting or not self._searched)

    def next_batch(self) -> Operation[list[Loaded | CorruptDataError]]:
        """The next few checkpoints, each whole or the error that says how it is damaged."""
        if self._scope is None:
            self._scope = yield from self._placed()
        while not self._waiting and not self._searched:
            size = _PAGE if self._asked.wanted or self._left is None else min(_PAGE, self._left)
            page = yield Transaction(partial(self._kit.store.page, self._scope, self._after, size), writes=False)
            self._waiting = [outline for outline in page if _matches(outline, self._asked.wanted)]
            self._searched = len(page) < size
            self._after = page[-1] if page else None
        size = _BATCH if self._left is None else min(_BATCH, self._left)
        batch, self._waiting = self._waiting[:size], self._waiting[size:]
        if not batch:
            return []
        found = yield Transaction(partial(load_many, self._kit, batch), writes=False)
        if self._left is not None:
            self._left -= len(found)
        return list(found)

    def readable(self, batch: Sequence[Loaded | CorruptDataError]) -> Iterator[CheckpointTuple]:
        """The checkpoints of a batch as their user sees them, each decoded when it is asked for."""
        for item in batch:
            try:
                yield decoded(_whole(item), self._kit.serde)
            except CorruptDataError as error:
                if self._asked.scope.thread_id is not None:
                    raise
                self._damaged.append(error)

    def finish(self) -> None:
        """Say what a listing of all threads had to leave out."""
        if self._damaged:
            first = self._damaged[0]
            raise CorruptDataError(
                f"{first.problem} (the listing left out {len(self._damaged)} damaged checkpoints; this is the first)",
                first.place,
            ) from first

    def _placed(self) -> Operation[Scope]:
        """The scope with the rank that `before` stands for."""
        scope, before = self._asked.scope, self._asked.before
        if before is not None and scope.thread_id is not None:
            same = Scope(thread_id=scope.thread_id, ns=scope.ns, checkpoint_id=before)
            found = yield Transaction(partial(self._kit.store.page, same, None, 1), writes=False)
            before = found[0].rank if found else before
        return scope._replace(before=before)


def all_outlines(kit: Kit, thread_id: str) -> Program[list[Outline]]:
    """Every checkpoint of a thread, newest first."""
    outlines: list[Outline] = []
    more = True
    while more:
        page = yield from kit.store.page(Scope(thread_id), outlines[-1] if outlines else None, _LARGE_PAGE)
        outlines += page
        more = len(page) == _LARGE_PAGE
    return outlines


def load_many(kit: Kit, outlines: Sequence[Outline]) -> Program[list[Loaded | CorruptDataError]]:
    """These checkpoints, read in one transaction; one that was deleted meanwhile is left out."""
    found: list[Loaded | CorruptDataError] = []
    for thread, group in groupby(outlines, key=lambda outline: outline.thread_id):
        keys = [(outline.ns, outline.id) for outline in group]
        epoch = yield from kit.store.epoch(thread)
        rows = yield from kit.store.rows(thread, keys)
        writes = yield from kit.store.writes(thread, keys)
        openings = [_attempt(partial(_opening, kit, row, writes)) for row in _in_order(rows, keys)]
        headers = {key for opening in _good(openings) for key in opening.missing_header_keys()}
        segments = (yield from kit.store.segments(thread, sorted(headers))) if headers else {}
        openings = [_then(opening, partial(_with_header, segments=segments)) for opening in openings]
        needed = {key for opening in _good(openings) for key in opening.value_keys()} - segments.keys()
        if needed:
            segments |= yield from kit.store.segments(thread, sorted(needed))
        whole = partial(Opening.loaded, epoch=epoch or 0, segments=segments, expanded={})
        found += [_then(opening, whole) for opening in openings]
    return found


def _opening(kit: Kit, row: CheckpointRow, writes: Sequence[WriteRow]) -> Opening:
    key = (row.outline.ns, row.outline.id)
    return Opening(row, [write for write in writes if (write.ns, write.checkpoint_id) == key], kit.recall)


def _with_header(opening: Opening, segments: Mapping[bytes, bytes]) -> Opening:
    opening.open_header(segments)
    return opening


def _attempt(read: Callable[[], T]) -> T | CorruptDataError:
    try:
        return read()
    except CorruptDataError as error:
        return error


def _then(opening: Opening | CorruptDataError, read: Callable[[Opening], T]) -> T | CorruptDataError:
    return opening if isinstance(opening, CorruptDataError) else _attempt(partial(read, opening))


def _good(openings: Sequence[Opening | CorruptDataError]) -> list[Opening]:
    return [opening for opening in openings if isinstance(opening, Opening)]


def _whole(item: Loaded | CorruptDataError) -> Loaded:
    if isinstance(item, CorruptDataError):
        raise item
    return item


def _in_order(rows: Sequence[CheckpointRow], keys: Sequence[Key]) -> list[CheckpointRow]:
    by_key = {(row.outline.ns, row.outline.id): row for row in rows}
    return [by_key[key] for key in keys if key in by_key]


def _matches(outline: Outline, wanted: Mapping[str, Any]) -> bool:
    if not wanted:
        return True
    try:
        return matches(from_json(outline.metadata), wanted)
    except CorruptDataError:
        return True  # loading it will say so, with its place
