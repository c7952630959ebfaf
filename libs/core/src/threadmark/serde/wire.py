"""The packer and the unpacker: one place for every setting that the stored bytes depend on."""

import gc
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import count
from typing import Any, TypeAlias

import msgpack

from threadmark.runtime.compiled import counterpart
from threadmark.serde.whole import check_complete

DEEPEST = 1024
"""The levels at which the packers and the unpacker stop."""

MARK_CODE = 84
"""The one extension type in stored values: it announces a typed array."""

NEVER_ASKED_ABOUT = frozenset({bytearray, memoryview, msgpack.ExtType, msgpack.Timestamp})
"""The types that the packer writes without calling our hook, although they would come back as something else."""

ENTERED = frozenset({dict, list})
"""The types that the packer enters by itself."""

Pack: TypeAlias = Callable[[Any], bytes]


class NotPlainError(Exception):
    """The bytes have a mark, or are no value. `unpack` reads the one, and explains the other in its error."""


def mark(payload: bytes) -> Any:
    """Return a mark for `new_pack`."""
    return msgpack.ExtType(MARK_CODE, payload)


@lru_cache(1000)
def packed_mark(payload: bytes) -> bytes:
    """Return the encoding of a mark."""
    packed: bytes = msgpack.packb(msgpack.ExtType(MARK_CODE, payload))
    return packed


def new_pack(write: Callable[[Any], Any], *, surrogates: bool = False) -> Pack:
    """Return a packer that calls `write` for every value that msgpack cannot carry, instances of subclasses included.

    Text with lone surrogates raises UnicodeEncodeError unless `surrogates` is true, which makes all text slower.
    """
    errors = "surrogatepass" if surrogates else None
    pack: Pack = msgpack.Packer(default=write, strict_types=True, unicode_errors=errors).pack
    return pack


def holds_unasked(roots: Iterable[Any]) -> bool:
    """Whether these values, or the lists and dictionaries in them, hold a type of `NEVER_ASKED_ABOUT`.

    Raises ValueError for a list or dictionary that is too deep. The packer takes one that is empty, and the unpacker
    does not.
    """
    level = list(roots)
    for depth in count():
        types = set(map(type, level))
        if not NEVER_ASKED_ABOUT.isdisjoint(types):
            return True
        if ENTERED.isdisjoint(types):
            break
        if depth == DEEPEST:
            raise ValueError(f"nested deeper than {DEEPEST} levels")
        level = gc.get_referents(*[value for value in level if type(value) in ENTERED])
    return False


def pack_scalar(value: str | bytes | float | None) -> bytes:
    """Return the encoding of a value with nothing in it, lone surrogates included.

    Raises OverflowError for an int of more than 64 bits.
    """
    packed: bytes = msgpack.packb(value, unicode_errors="surrogatepass")
    return packed


def pack_array_header(length: int) -> bytes:
    """Return the beginning of the encoding of an array of so many items."""
    header: bytes = msgpack.Packer().pack_array_header(length)
    return header


def unpack(encoded: bytes, read_array: Callable[[list[Any]], Any], read_extension: Callable[[int, bytes], Any]) -> Any:
    """Return the value. The functions are called for every array and every extension as soon as it is complete."""
    check_complete(encoded)
    return msgpack.unpackb(
        encoded,
        list_hook=read_array,
        ext_hook=read_extension,
        strict_map_key=False,
        unicode_errors="surrogatepass",
    )


@counterpart("plain.unpack")
def unpack_plain(encoded: bytes) -> Any:
    """Like `unpack`, for bytes without marks. Raises NotPlainError for any others."""
    try:
        check_complete(encoded)
        return msgpack.unpackb(
            encoded, ext_hook=_refuse_extension, strict_map_key=False, unicode_errors="surrogatepass"
        )
    except (ValueError, TypeError) as error:
        raise NotPlainError from error


def _refuse_extension(*_: object) -> Any:
    raise NotPlainError
