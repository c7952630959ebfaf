"""Decoding a part of an encoded value: bytes before the part are skipped, and those after it are not read.

The way to a part leads through lists, tuples, dictionaries and objects stored by their fields; none of these needs a
class. If it comes to anything else, that is decoded, and the rest of the way is taken in Python.
"""

from array import array
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeVar

import msgpack

from threadmark.errors import LocatedError
from threadmark.serde.decoder import Marks, decode, decode_plain, mark_of, unreadable
from threadmark.serde.dispatch import Dispatch
from threadmark.serde.steps import NOTHING, Index, Key, Name, Slice, Step, taken
from threadmark.serde.wire import pack_array_header, pack_scalar

T = TypeVar("T")

_TUPLE = b"t"
_TUPLE_MARK = b"\xd4T" + _TUPLE
_DICTIONARIES = {b"o": 0, b"n": 0, b"m": 0, b"d": 1}
"""The kinds that hold a dictionary, and how many items come before it."""

_MAPS = frozenset((*range(0x80, 0x90), 0xDE, 0xDF))
_ARRAYS = frozenset((*range(0x90, 0xA0), 0xDC, 0xDD))
_EXTENSIONS = frozenset((0xC7, 0xC8, 0xC9, *range(0xD4, 0xD9)))
"""The first bytes of each sort of object."""


class Source(NamedTuple):
    """A value's encoding, and how to decode it."""

    encoded: bytes
    typed: bool
    """Whether there may be marks in it."""
    dispatch: Dispatch

    def decoded(self, encoded: bytes, marks: Marks) -> Any:
        """Decode a part. Its references stand for these marks."""
        return decode(encoded, self.dispatch, marks) if self.typed else decode_plain(encoded, self.dispatch)


def part(source: Source, steps: Sequence[Step]) -> Any:
    """Decode the part of a value that the steps lead to. Returns `NOTHING` if there is none."""
    return _guarded(lambda: _Walk(source, 0, len(source.encoded), Marks(source.encoded)).part(steps))


class Items:
    """The items of an encoded list or tuple, any of which can be decoded without the others."""

    def __init__(self, source: Source, starts: "array[int]", marks: Marks) -> None:
        self._source = source
        self._starts = starts
        self._marks = marks

    def __len__(self) -> int:
        return len(self._starts) - 1

    def part(self, index: int, steps: Sequence[Step]) -> Any:
        """Decode a part of one item. Returns `NOTHING` if there is none."""
        start, stop = self._starts[index], self._starts[index + 1]
        return _guarded(lambda: _Walk(self._source, start, stop, self._marks).part(steps))

    def between(self, start: int, stop: int) -> list[Any]:
        """Decode the items of a run."""
        body = self._source.encoded[self._starts[start] : self._starts[stop]]
        found: list[Any] = _guarded(lambda: self._source.decoded(pack_array_header(stop - start) + body, self._marks))
        return found


class DecodedItems:
    """The items of a sequence that was decoded whole, because there was no other way."""

    def __init__(self, found: list[Any]) -> None:
        self._items = found

    def __len__(self) -> int:
        return len(self._items)

    def part(self, index: int, steps: Sequence[Step]) -> Any:
        """Return a part of one item, or `NOTHING`."""
        return taken(self._items[index], steps)

    def between(self, start: int, stop: int) -> list[Any]:
        """Return the items of a run."""
        return self._items[start:stop]


def items(source: Source) -> Items | None:
    """Find the items of a list or a tuple. Returns None for any other value."""
    return _guarded(lambda: _Walk(source, 0, len(source.encoded), Marks(source.encoded)).items())


class _Way(Enum):
    """The result of a step."""

    ON = "the walk stands at the part"
    NOWHERE = "there is no such part"
    CLOSED = "only Python can tell, from the decoded value"


class _Walk:
    """A way through an encoded value, which only goes on. It stands at the beginning of some object."""

    def __init__(self, source: Source, start: int, stop: int, marks: Marks) -> None:
        self._source = source
        self._encoded = source.encoded
        self._stop = stop
        self._marks = marks
        self._go_to(start)

    def part(self, steps: Sequence[Step]) -> Any:
        """Go along the steps and decode the value there. Returns `NOTHING` if they lead nowhere."""
        for number, step in enumerate(steps):
            start = self._position()
            if isinstance(step, Slice):
                run = self._run(step)
                found = self._decoded(start) if run is None else self._source.decoded(run, self._marks)
                return taken(found, steps[number if run is None else number + 1 :])
            way = self._enter(step)
            if way is _Way.NOWHERE:
                return NOTHING
            if way is _Way.CLOSED:
                return taken(self._decoded(start), steps[number:])
        return self._decoded(self._position())

    def items(self) -> Items | None:
        """Find the start of each item of a list or a tuple. Returns None if the walk stands at neither."""
        if not self._stands_at(_ARRAYS):
            return None
        mark, count = self._header()
        if mark not in (None, _TUPLE):
            return None
        starts = array("Q", [self._position()])
        for _ in range(count):
            self._unpacker.skip()
            starts.append(self._position())
        self._marks.pass_over(starts[0], starts[-1])
        self._marks.complete()
        return Items(self._source, starts, self._marks)

    def _enter(self, step: Name | Key | Index) -> _Way:
        if self._stands_at(_MAPS):
            return _Way.NOWHERE if isinstance(step, Index) else self._enter_map(step.text)
        if not self._stands_at(_ARRAYS):
            return _Way.CLOSED
        mark, count = self._header()
        if mark is None or mark == _TUPLE:
            return self._enter_item(step.number, count) if isinstance(step, Index) else _Way.NOWHERE
        return _Way.CLOSED if isinstance(step, Index) else self._enter_object(step, mark, count)

    def _enter_object(self, step: Name | Key, mark: bytes, count: int) -> _Way:
        if mark in _DICTIONARIES:
            before = _DICTIONARIES[mark]
            self._pass_over(before)
            way = self._enter_map(step.text) if self._stands_at(_MAPS) else _Way.CLOSED
            has_attributes = count > before + 1
            return _Way.CLOSED if way is _Way.NOWHERE and has_attributes and isinstance(step, Name) else way
        names = self._source.dispatch.stored_fields(mark) if isinstance(step, Name) else None
        if names is None or step.text not in names:  # it may have a default now, or be an extra value
            return _Way.CLOSED
        return self._enter_item(names.index(step.text), count)

    def _enter_item(self, index: int, count: int) -> _Way:
        index += count if index < 0 else 0
        if not 0 <= index < count:
            return _Way.NOWHERE
        self._pass_over(index)
        return _Way.ON

    def _enter_map(self, key: str) -> _Way:
        packed, has_typed_keys = pack_scalar(key), False
        count, start = self._unpacker.read_map_header(), self._position()
        for _ in range(count):
            if self._encoded.startswith(packed, self._position()):
                self._unpacker.skip()
                self._marks.pass_over(start, self._position())
                return _Way.ON
            has_typed_keys |= self._stands_at(_ARRAYS)  # one that is a subclass of str may equal the text
            self._unpacker.skip()
            self._unpacker.skip()
        return _Way.CLOSED if has_typed_keys else _Way.NOWHERE

    def _run(self, step: Slice) -> bytes | None:
        """Return the encoding of a run of items, None if the walk does not stand at a list or a tuple."""
        if not self._stands_at(_ARRAYS):
            return None
        mark, count = self._header()
        if mark not in (None, _TUPLE):
            return None
        start, stop, _ = slice(step.start, step.stop).indices(count)
        length = max(0, stop - start)
        self._pass_over(start)
        begins = self._position()
        self._pass_over(length)
        header = pack_array_header(length) if mark is None else _tuple_header(length)
        return header + self._encoded[begins : self._position()]

    def _header(self) -> tuple[bytes | None, int]:
        """Enter an array. Returns its mark, if it has one, and how many items there are behind it."""
        count = self._unpacker.read_array_header()
        if not count or not self._stands_at(_EXTENSIONS):
            return None, count
        payload = mark_of(self._unpacker.unpack())
        self._marks.pass_mark(payload)
        return self._marks.full(payload), count - 1

    def _pass_over(self, count: int) -> None:
        start, skip = self._position(), self._unpacker.skip
        for _ in range(count):
            skip()
        self._marks.pass_over(start, self._position())

    def _decoded(self, start: int) -> Any:
        """Decode the object that begins there."""
        if start != self._position():
            self._go_to(start)
        self._pass_over(1)
        return self._source.decoded(self._encoded[start : self._position()], self._marks)

    def _stands_at(self, first_bytes: frozenset[int]) -> bool:
        return self._encoded[self._position()] in first_bytes

    def _position(self) -> int:
        position: int = self._unpacker.tell()
        return self._offset + position

    def _go_to(self, start: int) -> None:
        self._offset = start
        self._unpacker = msgpack.Unpacker(max_buffer_size=max(1, self._stop - start))
        self._unpacker.feed(memoryview(self._encoded)[start : self._stop])


def _tuple_header(length: int) -> bytes:
    return pack_array_header(length + 1) + _TUPLE_MARK


def _guarded(walk: Callable[[], T]) -> T:
    """Walk. Raises CorruptDataError for bytes that cannot be read."""
    try:
        return walk()
    except LocatedError:
        raise
    except Exception as error:
        raise unreadable(error) from error
