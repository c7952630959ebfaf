"""Decoding many short values in one call of the unpacker: for a state of a hundred channels, most of a get is calls."""

from collections.abc import Sequence
from typing import Any

from threadmark.serde.wire import NeedsSlowWayError, unpack_fast

_NIL = b"\xc0"


def decode_together(encoded: Sequence[bytes]) -> list[Any] | None:
    """Decode values without marks, as `decode_plain` does one by one. Returns None where one of them needs that.

    They are the items of one array, a nil behind each: so each must end where its nil stands, and all of them where
    the array does.
    """
    array = b"\xdd" + (2 * len(encoded)).to_bytes(4, "big") + _NIL.join([*encoded, b""])
    try:
        items = unpack_fast(array)
    except (NeedsSlowWayError, MemoryError, RecursionError, OverflowError):
        return None
    return items[::2] if items[1::2] == [None] * len(encoded) else None
