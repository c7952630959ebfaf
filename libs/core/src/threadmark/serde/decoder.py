"""From bytes to values: msgpack's unpacker calls back for every mark, and for every array once it is complete."""

from collections.abc import Callable
from typing import Any, TypeAlias

from threadmark.errors import CorruptDataError, LocatedError
from threadmark.serde import compiled
from threadmark.serde.dispatch import Dispatch
from threadmark.serde.kinds_api import Reader, reference_to
from threadmark.serde.locations import where_unreadable
from threadmark.serde.marks import Marks
from threadmark.serde.wire import MARK_CODE, NeedsSlowWayError, unpack, unpack_fast

Hooks: TypeAlias = tuple[Callable[[list[Any]], Any], Callable[[int, bytes], Reader], Callable[[], int]]


def decode_plain(encoded: bytes, dispatch: Dispatch) -> Any:
    """Like `decode`, for bytes without marks."""
    try:
        if compiled.in_use:
            try:
                return compiled.plain.unpack(encoded)
            except compiled.plain.NeedsReferenceError:
                pass
        return unpack_fast(encoded)
    except NeedsSlowWayError:
        return decode(encoded, dispatch)
    except (MemoryError, RecursionError, OverflowError) as error:
        raise unreadable(error) from error


def decode(encoded: bytes, dispatch: Dispatch, marks_of_whole: Marks | None = None) -> Any:
    """Decode a value. Raises an error if any part of it cannot be read.

    Of a part of a value, `marks_of_whole` are the marks that its references may stand for.
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

    hooks = compiled.objects.hooks if compiled.in_use else _hooks
    read_array, read_mark, unread_marks = hooks(MARK_CODE, Reader, known, new_reader)
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


def _hooks(
    mark_code: int,
    reader_class: type[Reader],
    known: dict[bytes, Reader],
    new_reader: Callable[[int, bytes], Reader],
) -> Hooks:
    """Return what reads an array, what reads a mark, and how many marks were read that no array began with."""
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
