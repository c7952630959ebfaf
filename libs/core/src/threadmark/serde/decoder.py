"""From bytes to values: msgpack's unpacker calls back for every mark, and for every array once it is complete.

A class's mark stands in full at its first place in a value, and as a reference of two bytes from then on
(docs/reference/format-values.md). A part that is decoded by itself may refer to marks anywhere before it, so they are
looked for from the front, and no further than they must be: nearly always the first items of a list have them all.

`decode_together` decodes many short values in one call of the unpacker: for a state of a hundred channels, most of a
get is calls.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import msgpack

from threadmark.errors import CorruptDataError, LocatedError
from threadmark.runtime.compiled import counterpart
from threadmark.serde.dispatch import Dispatch
from threadmark.serde.kinds_api import REFERENCE_LENGTH, Reader, reference_to
from threadmark.serde.locations import where_unreadable
from threadmark.serde.wire import MARK_CODE, NotPlainError, unpack, unpack_plain


class Marks:
    """The marks passed on the way to a part, and of the part itself, in the order of the bytes."""

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded
        self._passed: list[tuple[int, int] | bytes] = []
        self._is_complete = False
        self._looked_at = 0
        self._running: Iterator[bytes] = iter(())
        self._full: dict[bytes, bytes] = {}

    def pass_mark(self, payload: bytes) -> None:
        """Note the mark of an object that the way leads into."""
        if not self._is_complete:
            self._passed.append(payload)

    def pass_over(self, start: int, stop: int) -> None:
        """Note whole objects that were skipped one after the other, and so are complete."""
        if stop > start and not self._is_complete:
            self._passed.append((start, stop))

    def complete(self) -> None:
        """Note no more: any part of the passed bytes may follow now."""
        self._is_complete = True

    def full(self, payload: bytes) -> bytes:
        """Return the mark that a payload stands for: itself, unless it refers to another one."""
        if len(payload) != REFERENCE_LENGTH:
            return payload
        while payload not in self._full:
            found = next(self._running, None)
            if found is not None:
                self._full.setdefault(reference_to(found), found)
            elif self._looked_at < len(self._passed):
                self._running = self._marks_in(self._passed[self._looked_at])
                self._looked_at += 1
            else:
                raise CorruptDataError("a reference stands for no mark before it")
        return self._full[payload]

    def _marks_in(self, passed: tuple[int, int] | bytes) -> Iterator[bytes]:
        """Yield the marks in the passed bytes, in order. No other object is made."""
        if isinstance(passed, bytes):
            yield from _if_full(passed)
            return
        found: list[bytes] = []
        start, stop = passed
        unpacker = msgpack.Unpacker(
            raw=True,  # text is not decoded
            list_hook=_nothing,
            object_pairs_hook=_nothing,
            ext_hook=lambda code, payload: found.append(payload) if code == MARK_CODE else None,
            max_buffer_size=stop - start,
            strict_map_key=False,
        )
        unpacker.feed(memoryview(self._encoded)[start:stop])
        for _ in unpacker:
            for payload in found:
                yield from _if_full(payload)
            found.clear()


def mark_of(extension: Any) -> bytes:
    """Return the payload of a mark. Raises CorruptDataError for anything else."""
    if type(extension) is not msgpack.ExtType or extension.code != MARK_CODE:
        raise CorruptDataError("an extension is not one that this serializer writes")
    payload: bytes = extension.data
    return payload


def _if_full(payload: bytes) -> Iterator[bytes]:
    if len(payload) > REFERENCE_LENGTH:
        yield payload


def _nothing(_: object) -> None:
    """Stand for an array or a map whose content does not matter."""


Hooks: TypeAlias = tuple[Callable[[list[Any]], Any], Callable[[int, bytes], Reader], Callable[[], int]]


def decode_plain(encoded: bytes, dispatch: Dispatch) -> Any:
    """Like `decode`, for bytes without marks."""
    try:
        return unpack_plain(encoded)
    except NotPlainError:
        return decode(encoded, dispatch)
    except (MemoryError, RecursionError, OverflowError) as error:
        raise unreadable(error) from error


def decode(encoded: bytes, dispatch: Dispatch, marks_of_whole: Marks | None = None) -> Any:
    """Decode a value. Raises an error if any part of it cannot be read.

    For a part of a value, `marks_of_whole` are the marks that its references may stand for.
    """
    known: dict[bytes, Reader] = {}

    def new_reader(code: int, payload: bytes) -> Reader:
        if code != MARK_CODE:
            raise CorruptDataError(f"extension {code} is not one that this serializer writes")
        if marks_of_whole is not None:
            reader = known[payload] = dispatch.reader(marks_of_whole.full(payload))
            return reader
        reader = known[payload] = dispatch.reader(payload)
        known.setdefault(reference_to(payload), reader)
        return reader

    read_array, read_mark, unread_marks = _hooks(MARK_CODE, Reader, known, new_reader)
    try:
        value = unpack(encoded, read_array, read_mark)
    except LocatedError as error:
        location = "" if marks_of_whole else where_unreadable(encoded, dispatch)
        raise (error.at(location) if location else error) from error.__cause__
    except Exception as error:
        raise unreadable(error, "" if marks_of_whole else where_unreadable(encoded, dispatch)) from error
    if unread_marks():
        raise CorruptDataError("a mark stands where no typed array begins")
    return value


@counterpart("objects.hooks", is_whole=True)
def _hooks(
    mark_code: int,
    reader_class: type[Reader],
    known: dict[bytes, Reader],
    new_reader: Callable[[int, bytes], Reader],
) -> Hooks:
    """Return the reader of arrays, the reader of marks, and the count of marks that no array began with."""
    marks = 0

    def read_mark(code: int, payload: bytes) -> Reader:
        nonlocal marks
        marks += 1
        return (code == mark_code and known.get(payload)) or new_reader(code, payload)

    def read_array(items: list[Any]) -> Any:
        nonlocal marks
        if items and type(reader := items[0]) is reader_class:
            marks -= 1
            del items[0]
            return reader.reconstruct(items)
        return items

    return read_array, read_mark, lambda: marks


def unreadable(error: Exception, location: str = "") -> CorruptDataError:
    """Return the error of bytes that cannot be read."""
    return CorruptDataError(f"the stored bytes cannot be read: {type(error).__name__}: {error}", location)


_NIL = b"\xc0"


def decode_together(encoded: Sequence[bytes]) -> list[Any] | None:
    """Decode values without marks, as `decode_plain` does one by one. Returns None if one of them needs that.

    They are the items of one array, a nil behind each: so each must end at its nil, and all of them at the end of
    the array.
    """
    array = b"\xdd" + (2 * len(encoded)).to_bytes(4, "big") + _NIL.join([*encoded, b""])
    try:
        items = unpack_plain(array)
    except (NotPlainError, MemoryError, RecursionError, OverflowError):
        return None
    return items[::2] if items[1::2] == [None] * len(encoded) else None
