"""The packers and unpackers: one place for every setting that the stored bytes depend on.

Two packers write the same bytes: ormsgpack, if it is installed and can carry the value, and msgpack, which is slower,
for everything else. msgpack's unpacker reads bytes with marks, because only it calls back when an array is complete;
ormsgpack's reads all others, twice as fast.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, TypeAlias

import msgpack

from threadmark.serde.announced import check_complete
from threadmark.serde.envelopes import Instances

try:
    import ormsgpack
except ImportError:
    HAS_FAST = False
    _ENVELOPES: dict[Any, tuple[Any, ...]] = {}
else:
    HAS_FAST = True
    # Fragment is younger than what is required of ormsgpack.
    _ENVELOPES = {ormsgpack.Ext: (0, b"")}
    if hasattr(ormsgpack, "Fragment"):
        _ENVELOPES[ormsgpack.Fragment] = (b"\xc0",)

MARK_CODE = 84
"""The one extension type in stored values: it announces a typed array."""

FAST_MARKS: dict[bytes, Any] = {}
"""The marks for `pack_fast`. They are kept so that it is known how many of ormsgpack's envelopes are our own."""

INSTANCES = Instances(_ENVELOPES)
"""How many of ormsgpack's envelopes there are in the process."""

NEVER_ASKED_ABOUT = frozenset({bytearray, memoryview, msgpack.ExtType, msgpack.Timestamp, *_ENVELOPES})
"""What one of the packers writes without asking although it would come back as something else."""

Pack: TypeAlias = Callable[[Any], bytes]


class NeedsSlowWayError(Exception):
    """ormsgpack cannot do this. msgpack can, or raises an error that says why not."""


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

    Text with lone surrogates raises UnicodeEncodeError unless `surrogates` is given, which makes all text slower.
    """
    errors = "surrogatepass" if surrogates else "strict"
    pack: Pack = msgpack.Packer(default=write, strict_types=True, unicode_errors=errors).pack
    return pack


def pack_text(text: str) -> bytes:
    """Return the encoding of a text, lone surrogates included."""
    packed: bytes = msgpack.packb(text, unicode_errors="surrogatepass")
    return packed


def pack_array_header(length: int) -> bytes:
    """Return what the encoding of an array of so many items begins with."""
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


def fast_mark(payload: bytes) -> Any:
    """Return a mark for `pack_fast`."""
    found = FAST_MARKS.get(payload)
    if found is None and HAS_FAST:
        if len(FAST_MARKS) >= _MOST_MARKS:
            FAST_MARKS.clear()
        found = FAST_MARKS.setdefault(payload, ormsgpack.Ext(MARK_CODE, payload))
    return found


def unpack_fast(encoded: bytes) -> Any:
    """Like `unpack`, for bytes without marks and surrogates, if ormsgpack is installed."""
    if not HAS_FAST:
        raise NeedsSlowWayError
    try:
        # ormsgpack ignores what follows a value. As the first of a pair, the value must end where the second begins.
        # Joined in one go: two additions would copy a large value twice.
        pair = ormsgpack.unpackb(b"".join((b"\x92", encoded, _END)), option=ormsgpack.OPT_NON_STR_KEYS)
    except ormsgpack.MsgpackDecodeError as error:
        raise NeedsSlowWayError from error
    value, end = pair
    if end != _END_NUMBER:
        raise NeedsSlowWayError
    return value


_MOST_MARKS = 10_000
"""How many marks are kept."""

_END_NUMBER = 0x7468726561646D6B
"""The second of that pair."""

_END = b"\xcf" + _END_NUMBER.to_bytes(8, "big")

PackFastError: type[Exception]
"""What `pack_fast` raises for a value that ormsgpack cannot carry, and for what `write` raised."""

pack_fast: Callable[[Any, Callable[[Any], Any] | None], bytes]
"""Packs like `new_pack`, if ormsgpack is installed (`HAS_FAST`), keys are text without surrogates, and nesting is not
deep. The second argument is `write`, or None for what needs none."""

if HAS_FAST:
    PackFastError = ormsgpack.MsgpackEncodeError
    pack_fast = partial(
        ormsgpack.packb,
        option=ormsgpack.OPT_PASSTHROUGH_BIG_INT
        | ormsgpack.OPT_PASSTHROUGH_DATACLASS
        | ormsgpack.OPT_PASSTHROUGH_DATETIME
        | ormsgpack.OPT_PASSTHROUGH_ENUM
        | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
        | ormsgpack.OPT_PASSTHROUGH_TUPLE
        | ormsgpack.OPT_PASSTHROUGH_UUID,
    )
else:
    PackFastError = NeedsSlowWayError

INSTANCES.count()  # last, when nothing more in this module will refer to the classes
