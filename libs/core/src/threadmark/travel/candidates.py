"""Searching for a text, ignoring case: in the strings of a value, and first in its new bytes.

The data that checkpoints have and their parents do not is read until it is clear whether a text may be in it.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from threadmark.errors import ConfigError, CorruptDataError, located
from threadmark.names import MESSAGES_NS
from threadmark.program import Program
from threadmark.saver.kit import (
    CheckpointLoader,
    LoadedCheckpoint,
    SaverContext,
    SegmentCache,
    Stored,
    Write,
    checkpoint_location,
    fill,
    good,
    header_location,
    key_text,
    layout,
    loaders,
    missing_headers,
    name_text,
    open_headers,
    parse_path,
    proven_writes,
    write_location,
)
from threadmark.serde.object_view import CONTENT, ObjectView
from threadmark.serde.steps import Key as KeyStep
from threadmark.store.contract import Key, Outline, Scope, WriteRow
from threadmark.travel.diffing import same_value

_CONTEXT = 40
"""The characters of context on either side of a match."""


_EDGE = 64
"""So many characters of the end of a piece tell whether more of them may be in a long text that is looked for."""


_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF
_UNCASED = 0x1F000
"""From here on characters have no case."""


_LENGTH_OF_LIST = re.compile(rb"[\x90-\x9f]|\xdc.{2}|\xdd.{4}", re.DOTALL)
"""The one, three or five bytes with which a list begins. They say only how many items follow."""


class Hit(NamedTuple):
    """A text that was found, and the text around it."""

    path: str
    before: str
    text: str
    after: str


class Pattern:
    """A text that is looked for."""

    def __init__(self, text: str) -> None:
        self._folded = text.casefold()
        # Text with lone surrogates is not found in bytes.
        self._is_in_bytes = not any("\ud800" <= character <= "\udfff" for character in text)
        self._encoded = encoded = (
            [character.encode() for character in _written_as(self._folded)] if self._is_in_bytes else []
        )
        self._heads = tuple({each[:at] for each in encoded for at in range(1, len(each))})
        self._tails = tuple({each[at:] for each in encoded for at in range(1, len(each))})

    def hits(self, path: str, value: Any) -> Iterator[Hit]:
        """Yield the strings and the keys of dictionaries that contain the text, in order."""
        for place, text in _strings(path, value):
            yield from self._hit(place, text)

    def key_hits(self, path: str) -> Iterator[Hit]:
        """Yield the key that a path ends with, if it is one and contains the text."""
        with suppress(ConfigError):  # too long to be a path
            steps = parse_path(path).steps
            if steps and isinstance(steps[-1], KeyStep):
                yield from self._hit(path, steps[-1].text)

    def _hit(self, path: str, text: str) -> Iterator[Hit]:
        if span := self._span(text):
            start, stop = span
            yield Hit(path, text[max(0, start - _CONTEXT) : start], text[start:stop], text[stop : stop + _CONTEXT])

    def may_be_in(self, piece: bytes) -> bool:
        """Whether it may be in these bytes of an encoded value, or begin or end in them."""
        if not self._is_in_bytes:
            return True
        # Text stands in them as UTF-8, and nothing before or after it can become a part of its characters.
        text, folded = piece.decode("utf-8", "replace").casefold(), self._folded
        if folded in text or text in folded:
            return True
        # A character may be cut into pieces.
        if piece.startswith(self._tails) or piece.endswith(self._heads) or any(piece in each for each in self._encoded):
            return True
        if text[:_EDGE] in folded or text[-_EDGE:] in folded:
            return True
        few = range(1, min(len(folded), _EDGE))
        return any(text.endswith(folded[:at]) or text.startswith(folded[-at:]) for at in few)

    def _span(self, text: str) -> tuple[int, int] | None:
        """Return its place in a text. Folding may change the number of characters."""
        folded = text.casefold()
        start = folded.find(self._folded)
        if start < 0:
            return None
        stop = start + len(self._folded)
        if len(folded) == len(text):
            return start, stop
        owners = [index for index, character in enumerate(text) for _ in character.casefold()]
        return owners[start], owners[stop - 1] + 1


def _written_as(folded: str) -> set[str]:
    """Return the characters that a text may have which is this one when it is folded."""
    return {*folded}.union(*(_unfolded().get(character, ()) for character in {*folded}))


@cache
def _unfolded() -> Mapping[str, set[str]]:
    """By character, those in whose folded form it is."""
    found: dict[str, set[str]] = {}
    for character in map(chr, (*range(0x80, _FIRST_SURROGATE), *range(_LAST_SURROGATE + 1, _UNCASED))):
        for part in character.casefold():
            found.setdefault(part, set()).add(character)
    return found


def _strings(path: str, value: Any) -> Iterator[tuple[str, str]]:
    ahead: deque[tuple[str, Any]] = deque([(path, value)])
    while ahead:
        place, part = ahead.popleft()
        inner: list[tuple[str, Any]] = []
        if isinstance(part, str):
            yield place, str(part)
        elif type(part) is ObjectView:
            inner = [
                (place + ("" if name == CONTENT else name_text(name) or ""), item) for name, item in part.fields.items()
            ]
        elif isinstance(part, Mapping):
            for key, item in part.items():
                step = key_text(key) if type(key) is str else ""
                inner += [(place + step, key), (place + step, item)]
        elif isinstance(part, (list, tuple, deque)):
            inner = [(f"{place}[{index}]", item) for index, item in enumerate(part)]
        elif isinstance(part, (set, frozenset)):
            inner = [(place, item) for item in sorted(part, key=_written)]
        ahead.extendleft(reversed(inner))


def _written(item: Any) -> str:
    try:
        return repr(item)
    except ValueError:  # Python writes no integer of more than 4,300 digits, which may be inside
        return ""


class Fresh(NamedTuple):
    """The parts of a stored value that another one lacks."""

    slices: dict[bytes, list[tuple[int, int, int]]]
    """By segment, its size, and the beginning and end of each new piece in it."""
    literals: list[bytes]
    """New pieces that stand in the manifest itself, or are all of the value."""
    is_joined: bool
    """Whether pieces of the other one stand side by side that did not: a text may have come about there."""


def fresh(value: Stored, other: Stored | None) -> Fresh:
    """Return the parts of a value that the other one lacks, by their manifests, without reading either.

    New bytes may give another meaning to those that follow, such as the key that they stand under. So these are among
    the parts as well, unless a list has only become longer.
    """
    if not value.digest:
        return Fresh({}, [value.packed], is_joined=False)
    there = _pieces(other) if other is not None and other.digest and other.tag == value.tag else {}
    manifest, found = layout(value.packed), Fresh({}, [], is_joined=False)
    changed, joined = False, False
    ends: tuple[int, ...] = (0,)
    for number, (index, start, length) in enumerate(manifest.parts):
        key = manifest.keys[index] if index >= 0 else b""
        at = _found(there.get(key, ()), start, length) if key and not changed else None
        if at is not None:
            joined |= at not in ends
            ends = (at + length,)
        elif key:
            found.slices.setdefault(key, []).append((manifest.sizes[index], start, start + length))
            changed = True
        else:
            found.literals.append(manifest.packed[start : start + length])
            changed = changed or number > 0 or not _LENGTH_OF_LIST.fullmatch(found.literals[0])
            ends = (1, 3, length)  # the other list may begin with fewer bytes than this one
    return found._replace(is_joined=joined)


def _pieces(value: Stored) -> dict[bytes, list[tuple[int, int, int]]]:
    """By segment, the beginning and end of each piece in it, and its place in the value."""
    manifest, position = layout(value.packed), 0
    found: dict[bytes, list[tuple[int, int, int]]] = {}
    for index, start, length in manifest.parts:
        if index >= 0:
            found.setdefault(manifest.keys[index], []).append((start, start + length, position))
        position += length
    return found


def _found(pieces: Any, start: int, length: int) -> int | None:
    for begins, ends, position in pieces:
        if begins <= start and start + length <= ends:
            return int(position + start - begins)
    return None


_AT_ONCE = 128
"""How many checkpoints are looked at in one transaction."""

_ROOM = 32 * 1024 * 1024
"""How many bytes are read at once, unless one checkpoint alone has more."""


class Candidate(NamedTuple):
    """A checkpoint that may have the text in places in which its parent lacks it, with the values to search."""

    outline: Outline
    loaded: LoadedCheckpoint | None = None
    channels: Sequence[str] = ()
    writes: Sequence[Write] = ()
    data: Mapping[bytes, bytes] = {}
    """The bytes of the writes' values."""
    parent: LoadedCheckpoint | None = None
    error: CorruptDataError | None = None


class Batch(NamedTuple):
    """Checkpoints that were looked at together."""

    candidates: Sequence[Candidate]
    after: Outline | None
    """The last checkpoint of which is known whether it has the text."""
    more: bool
    work: int
    """How many bytes were looked at."""


def batch_of(context: SaverContext, pattern: Pattern, scope: Scope, after: Outline | None) -> Program[Batch]:
    """Look at the next checkpoints: read their new parts, and all of those values that may have the text."""
    page = yield from context.store.page(scope, after, _AT_ONCE)
    more = len(page) == _AT_ONCE and (after is None or page[-1].order < after.order)
    outlines = [outline for outline in page if outline.ns != MESSAGES_NS]
    if not outlines:
        return Batch([], page[-1] if page else after, more, 0)
    reading = _Reading(context, pattern, outlines[0].thread_id)
    yield from reading.open(outlines)
    taken = reading.as_there_is_room(outlines)
    yield from fill(reading.cache, context.store, reading.thread_id, reading.fresh_keys(taken))
    candidates = reading.candidates(taken)
    yield from fill(reading.cache, context.store, reading.thread_id, reading.value_keys(candidates))
    whole = len(candidates) == len(outlines)
    end = page[-1] if whole else candidates[-1].outline
    return Batch([reading.loaded(each) for each in candidates], end, more or not whole, reading.work)


class _Reading:
    """The checkpoints of a batch while they are being read, and their parents."""

    def __init__(self, context: SaverContext, pattern: Pattern, thread_id: str) -> None:
        self._context = context
        self._pattern = pattern
        self.thread_id = thread_id
        self.cache: SegmentCache = context.segment_cache()
        self.work = 0
        self._found: dict[Key, CheckpointLoader | CorruptDataError] = {}
        self._writes: dict[Key, list[WriteRow]] = {}
        self._fresh: dict[Key, dict[str, Fresh]] = {}

    def open(self, outlines: Sequence[Outline]) -> Program[None]:
        """Read headers and writes."""
        keys = [outline.key for outline in outlines]
        parents = [outline.parent_key for outline in outlines if outline.parent_key]
        store = self._context.store
        rows = yield from store.rows(self.thread_id, list(dict.fromkeys([*keys, *parents])))
        for row in (yield from store.writes(self.thread_id, keys)):
            self._writes.setdefault((row.ns, row.checkpoint_id), []).append(row)
        self._found = loaders(self._context, rows, {})
        yield from fill(self.cache, store, self.thread_id, missing_headers(good(self._found)))
        open_headers(self._found, self.cache)

    def as_there_is_room(self, outlines: Sequence[Outline]) -> Sequence[Outline]:
        """The first checkpoints whose new parts have room; one at least."""
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
        try:
            news = {
                channel: fresh(value, before.get(channel))
                for channel, value in loader.header.values.items()
                if channel not in before or not same_value(value, before[channel])
            }
        except CorruptDataError as error:
            self._found[outline.key] = error.at(header_location(outline))
            return 0
        self._fresh[outline.key] = news
        slices = [piece for each in news.values() for pieces in each.slices.values() for piece in pieces[:1]]
        return sum(size for size, _, _ in slices) + sum(len(row.value) for row in self._writes.get(outline.key, ()))

    def _parent(self, outline: Outline) -> CheckpointLoader | None:
        found = self._found.get(outline.parent_key) if outline.parent_key else None
        return found if isinstance(found, CheckpointLoader) else None

    def fresh_keys(self, outlines: Sequence[Outline]) -> set[bytes]:
        """The segments of the new parts."""
        news = [each for outline in outlines for each in self._fresh.get(outline.key, {}).values()]
        return {key for each in news for key in each.slices}

    def candidates(self, outlines: Sequence[Outline]) -> list[Candidate]:
        """Return which channels of the checkpoints may have the text, of as many as there is room for."""
        found: list[Candidate] = []
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

    def _looked_at(self, outline: Outline) -> Candidate:
        found = self._found.get(outline.key)
        if not isinstance(found, CheckpointLoader):
            lost = CorruptDataError("its row is not found by its key", checkpoint_location(outline))
            return Candidate(outline, error=found or lost)
        try:
            writes = proven_writes(self.thread_id, self._writes.get(outline.key, ()))
            news = self._fresh[outline.key]
            with located(checkpoint_location(outline)):
                channels = [channel for channel, each in news.items() if self._may_have(each)]
        except CorruptDataError as error:
            return Candidate(outline, error=error)
        return Candidate(outline, channels=channels, writes=writes)

    def _may_have(self, new: Fresh) -> bool:
        if new.is_joined or any(map(self._pattern.may_be_in, new.literals)):
            return True
        for key, pieces in new.slices.items():
            segment = self.cache.segment(key, pieces[0][0])
            if self._context.segment_key(segment) != key:  # damaged, or named without this secret: the value tells
                return True
            if any(self._pattern.may_be_in(segment[start:stop]) for _, start, stop in pieces):
                return True
        return False

    def value_keys(self, candidates: Sequence[Candidate]) -> set[bytes]:
        """The segments of the values that may have the text, of those of the parents, and of the writes."""
        keys: set[bytes] = set()
        for candidate in candidates:
            keys.update(key for write in candidate.writes for key in write.value.segment_keys())
            if candidate.channels:
                for loader in (self._found[candidate.outline.key], self._parent(candidate.outline)):
                    if isinstance(loader, CheckpointLoader):
                        keys |= loader.value_keys(candidate.channels.__contains__)
        return keys

    def loaded(self, candidate: Candidate) -> Candidate:
        """Return the candidate with the bytes of the values that may have the text."""
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
