"""Where a text occurs in a thread.

Newest first, and each place once: with the checkpoint that first had the text there. So of a checkpoint only what its
parent has not is looked at, which its manifests tell: pieces of segments that are new are read, and where the text may
be in them, both values are compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from threadmark.errors import ConfigError, CorruptDataError, LocatedError, located, shown
from threadmark.model import Config, Problem, ProblemKind
from threadmark.names import MESSAGES_NS, as_text
from threadmark.program import Operation, Program, read
from threadmark.saver.caches.segment_cache import SegmentCache, fill
from threadmark.saver.context import SaverContext
from threadmark.saver.cursors import new_cursor, parts_of_cursor
from threadmark.saver.loading.decoding import decode_channel, decode_metadata, decode_write
from threadmark.saver.loading.loader import CheckpointLoader, LoadedCheckpoint, Write, missing_headers, proven_writes
from threadmark.saver.operations.listing import good, loaders, open_headers
from threadmark.saver.operations.parts import given_place
from threadmark.saver.operations.reading import expect_plain_once
from threadmark.saver.operations.travel.comparing import Changes, Place
from threadmark.saver.operations.travel.diffing import same_value
from threadmark.saver.operations.travel.needle import Fresh, Hit, Needle, fresh
from threadmark.saver.paths import channel_text
from threadmark.saver.proving.checks import checkpoint_location, write_location
from threadmark.serde.steps import NOTHING
from threadmark.store import Key, Outline, Scope, WriteRow
from threadmark.travel import Match, MatchPlace, SearchPage

_AT_ONCE = 128
"""How many checkpoints are looked at in one transaction."""

_ROOM = 32 * 1024 * 1024
"""How many bytes are read at once, unless one checkpoint alone has more."""

_MOST_WORK = 4 * _ROOM
"""After so many bytes a page ends, though it may have fewer matches than there is room for, or none."""

_UNLIMITED = 1 << 62


class _Candidate(NamedTuple):
    """A checkpoint that may have the text where its parent has not, with what it takes to tell."""

    outline: Outline
    loaded: LoadedCheckpoint | None = None
    channels: Sequence[str] = ()
    writes: Sequence[Write] = ()
    data: Mapping[bytes, bytes] = {}
    """The bytes of the writes' values."""
    parent: LoadedCheckpoint | None = None
    error: CorruptDataError | None = None


class _Batch(NamedTuple):
    candidates: Sequence[_Candidate]
    after: Outline | None
    """The last checkpoint of which is known whether it has the text."""
    more: bool
    work: int


def search(
    context: SaverContext, thread: Config | str, text: str, ns: str | None, limit: int, cursor: str | None
) -> Operation[SearchPage]:
    """Return where a text occurs in a thread's values, pending writes and metadata."""
    context, thread_id = context.without_classes(), given_place(thread).thread_id
    needle = Needle(_given_text(text))
    scope = Scope(thread_id, None if ns is None else as_text(ns, "ns"))
    after, resumed, given = _place(thread_id, cursor)
    matches: list[Match] = []
    problems: list[Problem] = []
    work, more = 0, limit > 0
    if not more:
        return SearchPage([], cursor)
    while more and work < _MOST_WORK:
        batch = yield from read(_batch, context, needle, scope, after)
        if after is None and not batch.candidates and not batch.more and batch.after is None:
            yield from expect_plain_once(context)
        for candidate in batch.candidates:
            outline = candidate.outline
            skipped = given if outline.key == resumed else 0
            found, failed = _matches(context, needle, candidate)
            problems += failed if not skipped else []
            for number, match in enumerate(found[skipped:], skipped):
                if len(matches) == limit:
                    return SearchPage(matches, _cursor(after, outline.key, number), problems)
                matches.append(match)
            after = outline
        after, more, work = batch.after, batch.more, work + batch.work
    return SearchPage(matches, _cursor(after, ("", ""), 0) if more else None, problems)


def _given_text(text: object) -> str:
    if not isinstance(text, str) or not text:
        raise ConfigError(f"search looks for a text that is not empty, not for {shown(text)}")
    return str(text)


def _cursor(after: Outline | None, key: Key, given: int) -> str:
    return new_cursor(after.rank if after else "", after.ns if after else "", *key, given)


def _place(thread_id: str, cursor: str | None) -> tuple[Outline | None, Key, int]:
    """Where a page begins: behind which checkpoint, and how many matches of the next one were given already."""
    if cursor is None:
        return None, ("", ""), 0
    rank, ns, next_ns, next_id, given = parts_of_cursor(cursor, (str, str, str, str, int))
    after = Outline(thread_id, ns, "", rank, None, 0, "") if rank else None
    return after, (next_ns, next_id), max(0, given)


def _batch(context: SaverContext, needle: Needle, scope: Scope, after: Outline | None) -> Program[_Batch]:
    """Look at the next checkpoints: read what is new in them, and all of those values that may have the text."""
    page = yield from context.store.page(scope, after, _AT_ONCE)
    more = len(page) == _AT_ONCE and (after is None or page[-1].order < after.order)
    outlines = [outline for outline in page if outline.ns != MESSAGES_NS]
    if not outlines:
        return _Batch([], page[-1] if page else after, more, 0)
    reading = _Reading(context, needle, outlines[0].thread_id)
    yield from reading.open(outlines)
    taken = reading.as_there_is_room(outlines)
    yield from fill(reading.cache, context.store, reading.thread_id, reading.fresh_keys(taken))
    candidates = reading.candidates(taken)
    yield from fill(reading.cache, context.store, reading.thread_id, reading.value_keys(candidates))
    whole = len(candidates) == len(outlines)
    end = page[-1] if whole else candidates[-1].outline
    return _Batch([reading.loaded(each) for each in candidates], end, more or not whole, reading.work)


class _Reading:
    """The checkpoints of a batch while they are being read, and their parents."""

    def __init__(self, context: SaverContext, needle: Needle, thread_id: str) -> None:
        self._context = context
        self._needle = needle
        self.thread_id = thread_id
        self.cache: SegmentCache = context.segment_cache()
        self.work = 0
        self._found: dict[Key, CheckpointLoader | CorruptDataError] = {}
        self._writes: dict[Key, list[WriteRow]] = {}
        self._fresh: dict[Key, dict[str, Fresh]] = {}

    def open(self, outlines: Sequence[Outline]) -> Program[None]:
        """Read headers and writes."""
        parents = {(outline.ns, outline.parent) for outline in outlines if outline.parent}
        keys = [outline.key for outline in outlines]
        store = self._context.store
        rows = yield from store.rows(self.thread_id, sorted({*keys, *parents}))
        for row in (yield from store.writes(self.thread_id, keys)):
            self._writes.setdefault((row.ns, row.checkpoint_id), []).append(row)
        self._found = loaders(self._context, rows, {})
        yield from fill(self.cache, store, self.thread_id, missing_headers(good(self._found)))
        open_headers(self._found, self.cache)

    def as_there_is_room(self, outlines: Sequence[Outline]) -> Sequence[Outline]:
        """The first checkpoints, of which what is new has room; one at least."""
        for number, outline in enumerate(outlines):
            size = self._note_fresh(outline)
            if number and self.work + size > _ROOM:
                return outlines[:number]
            self.work += size
        return outlines

    def _note_fresh(self, outline: Outline) -> int:
        loader, parent = self._found.get(outline.key), self._parent(outline)
        if not isinstance(loader, CheckpointLoader):
            return 0
        before = parent.header.values if parent else {}
        news = {
            channel: fresh(value, before.get(channel))
            for channel, value in loader.header.values.items()
            if channel not in before or not same_value(value, before[channel])
        }
        self._fresh[outline.key] = news
        slices = [piece for each in news.values() for pieces in each.slices.values() for piece in pieces[:1]]
        return sum(size for size, _, _ in slices) + sum(len(row.value) for row in self._writes.get(outline.key, ()))

    def _parent(self, outline: Outline) -> CheckpointLoader | None:
        found = self._found.get((outline.ns, outline.parent)) if outline.parent else None
        return found if isinstance(found, CheckpointLoader) else None

    def fresh_keys(self, outlines: Sequence[Outline]) -> set[bytes]:
        """The segments of what is new."""
        news = [each for outline in outlines for each in self._fresh.get(outline.key, {}).values()]
        return {key for each in news for key in each.slices}

    def candidates(self, outlines: Sequence[Outline]) -> list[_Candidate]:
        """Return which channels of the checkpoints may have the text, of as many as there is room for."""
        found: list[_Candidate] = []
        room = _ROOM
        for outline in outlines:
            candidate = self._looked_at(outline)
            loaded = (self._found.get(outline.key), self._parent(outline)) if candidate.channels else ()
            values = [each.header.values for each in loaded if isinstance(each, CheckpointLoader)]
            room -= sum(each[channel].size() for each in values for channel in candidate.channels if channel in each)
            if room < 0 and found:
                break
            found.append(candidate)
        return found

    def _looked_at(self, outline: Outline) -> _Candidate:
        found = self._found.get(outline.key)
        if not isinstance(found, CheckpointLoader):
            lost = CorruptDataError("its row is not found by its key", checkpoint_location(outline))
            return _Candidate(outline, error=found or lost)
        try:
            writes = proven_writes(self.thread_id, self._writes.get(outline.key, ()))
            news = self._fresh[outline.key]
            with located(checkpoint_location(outline)):
                channels = [channel for channel, each in news.items() if self._may_have(each)]
        except CorruptDataError as error:
            return _Candidate(outline, error=error)
        return _Candidate(outline, channels=channels, writes=writes)

    def _may_have(self, new: Fresh) -> bool:
        if new.is_joined or any(map(self._needle.may_be_in, new.literals)):
            return True
        for key, pieces in new.slices.items():
            segment = self.cache.segment(key, pieces[0][0])
            if self._context.segment_key(segment) != key:
                raise CorruptDataError(f"segment {key.hex()} is not what was written")
            if any(self._needle.may_be_in(segment[start:stop]) for _, start, stop in pieces):
                return True
        return False

    def value_keys(self, candidates: Sequence[_Candidate]) -> set[bytes]:
        """The segments of the values that may have the text, of those of the parents, and of the writes."""
        keys: set[bytes] = set()
        for candidate in candidates:
            keys.update(key for write in candidate.writes for key in write.value.segment_keys())
            if candidate.channels:
                for loader in (self._found[candidate.outline.key], self._parent(candidate.outline)):
                    if isinstance(loader, CheckpointLoader):
                        keys |= loader.value_keys(candidate.channels.__contains__)
        return keys

    def loaded(self, candidate: _Candidate) -> _Candidate:
        """Return the candidate with the bytes of what may have the text."""
        loader, parent = self._found.get(candidate.outline.key), self._parent(candidate.outline)
        if candidate.error is not None or not isinstance(loader, CheckpointLoader):
            return candidate
        data: dict[bytes, bytes] = {}
        try:
            for write in candidate.writes:
                with located(write_location(self.thread_id, write.row)):
                    data[write.value.digest] = self.cache.data(write.value)
            loaded = loader.loaded()
        except CorruptDataError as error:
            return candidate._replace(error=error)
        self.work += sum(map(len, loaded.data.values())) + sum(map(len, data.values()))
        return candidate._replace(loaded=loaded, data=data, parent=_unless_damaged(parent))


def _unless_damaged(loader: CheckpointLoader | None) -> LoadedCheckpoint | None:
    try:
        return loader.loaded() if loader else None
    except CorruptDataError:  # which is said of the checkpoint itself
        return None


def _matches(context: SaverContext, needle: Needle, candidate: _Candidate) -> tuple[list[Match], list[Problem]]:
    """Return the matches in a checkpoint, and what of it could not be searched."""
    outline, found = candidate.outline, list[Match]()
    problems: list[Problem] = []
    if candidate.error is not None:
        return [], [_problem(candidate.error, outline)]
    searched: tuple[tuple[MatchPlace, Iterator[Hit]], ...] = (
        ("values", _in_values(context, needle, candidate)),
        ("writes", _in_writes(context, needle, candidate)),
        ("metadata", _in_metadata(needle, candidate)),
    )
    for place, hits in searched:
        try:
            found += [Match(outline.ns, outline.id, place, *hit) for hit in hits]
        except LocatedError as error:
            problems.append(_problem(error, outline))
    return found, problems


def _problem(error: LocatedError, outline: Outline) -> Problem:
    kind: ProblemKind = "damaged" if isinstance(error, CorruptDataError) else "unreadable"
    return Problem(kind, error.location or checkpoint_location(outline), error.problem)


def _in_values(context: SaverContext, needle: Needle, candidate: _Candidate) -> Iterator[Hit]:
    for channel in candidate.channels:
        before, after = (_value(context, each, channel) for each in (candidate.parent, candidate.loaded))
        yield from _new_hits(needle, channel_text(channel), before, after)


def _value(context: SaverContext, loaded: LoadedCheckpoint | None, channel: str) -> Any:
    value = loaded.header.values.get(channel) if loaded else None
    return (
        NOTHING
        if loaded is None or value is None
        else decode_channel(context, loaded.outline, channel, value, loaded.data)
    )


def _in_writes(context: SaverContext, needle: Needle, candidate: _Candidate) -> Iterator[Hit]:
    for write in candidate.writes:
        _, channel, value = decode_write(context, candidate.outline.thread_id, write, candidate.data)
        yield from needle.hits(channel_text(channel), value)


def _in_metadata(needle: Needle, candidate: _Candidate) -> Iterator[Hit]:
    before = decode_metadata(candidate.parent.outline) if candidate.parent else {}
    for key, value in decode_metadata(candidate.outline).items():
        yield from _new_hits(needle, channel_text(key), before.get(key, NOTHING), value)


def _new_hits(needle: Needle, path: str, before: Any, after: Any) -> Iterator[Hit]:
    """Yield where a value has the text and the one before has not."""
    changes = Changes(_UNLIMITED, with_edits=False)
    changes.compare(Place(path, path), before, after)
    for change in changes.found:
        if change.kind == "added":
            yield from needle.key_hits(change.path)
            yield from needle.hits(change.path, change.after)
        elif change.kind == "changed":
            there = {hit.path for hit in needle.hits(change.path, change.before)}
            yield from (hit for hit in needle.hits(change.path, change.after) if hit.path not in there)
