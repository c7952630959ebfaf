"""msgpack as this serializer speaks it: one place for every setting that the stored bytes depend on."""

from collections.abc import Callable
from typing import Any, TypeAlias

import msgpack  # type: ignore[import-untyped]  # msgpack publishes no types; this module is where it gets some

# msgpack's own extension types are negative, and applications get 0 to 127. A user may hold an `ExtType` as a
# value of their own, and msgpack writes it without asking; a code that its constructor refuses cannot be one.
MARK_CODE = -2

Pack: TypeAlias = Callable[[Any], bytes]
ExtType: Any = msgpack.ExtType


def mark(payload: str) -> Any:
    """The extension that announces a typed array; the payload is a kind's letter, then a class's name."""
    # `_make` is namedtuple's public constructor; ExtType(...) itself refuses negative codes.
    return ExtType._make((MARK_CODE, payload.encode("utf-8", "surrogatepass")))


def new_pack(write: Callable[[Any], Any], *, surrogates: bool = False) -> Pack:
    """A function that packs values with C speed and asks `write` about every one that msgpack cannot carry.

    Subclasses count as unknown. Text with lone surrogates raises UnicodeEncodeError unless `surrogates` is given,
    which makes packing any text slower.
    """
    errors = "surrogatepass" if surrogates else "strict"
    pack: Pack = msgpack.Packer(default=write, strict_types=True, unicode_errors=errors).pack
    return pack


def unpack(encoded: bytes, read_array: Callable[[list[Any]], Any], read_extension: Callable[[int, bytes], Any]) -> Any:
    """The value; `read_array` and `read_extension` see every array and every extension as soon as it is complete."""
    return msgpack.unpackb(
        encoded,
        list_hook=read_array,
        ext_hook=read_extension,
        strict_map_key=False,
        unicode_errors="surrogatepass",
    )
