"""The packers and unpackers: one place for every setting that the stored bytes depend on.

Two packers write the same bytes: ormsgpack, if it is installed and can carry the value, and msgpack, which is slower,
for everything else. msgpack's unpacker reads bytes with marks, because only it calls back when an array is complete;
ormsgpack's reads all others, twice as fast.

msgpack allocates a list as long as its header says before it reads the first item, so a few nested headers could take
all memory, and it has no hook to prevent that. So `check_complete` looks whether arrays hold as many items as they
announce. Honest arrays together announce no more items than there are bytes: a quick search for headers usually shows
that they do not announce much more, and only if it does not, the bytes are parsed.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, TypeAlias

import msgpack

from threadmark.runtime.compiled import counterpart
from threadmark.serde.envelopes import Instances

_LONG_ARRAYS = ((b"\xdc", 2), (b"\xdd", 4))
"""The headers of long arrays, each with the length of the number that follows."""

_MOST_LOOKS = 64
"""After this many possible headers the bytes are parsed instead."""

_FEW = 24
"""How many headers `_is_short` reads at most."""

_LONG = 256 * 1024
"""From this many bytes on, it is worth trying `_is_short` first."""

_A_BYTE = 16
"""Items that may seem to be announced for each byte. They take less memory than values made of nothing but objects."""

# The first byte of each sort of header; the rest of the byte is a length.
_MAPS, _ARRAYS, _TEXTS, _OTHERS, _SMALL_NUMBERS = 0x80, 0x90, 0xA0, 0xC0, 0xE0
# From 0xc0 to 0xdf: how many bytes of a number follow a header, what it counts (bytes, items, pairs), and how many
# bytes follow in any case.
_BYTES, _ITEMS, _PAIRS = 0, 1, 2
_HEADERS = (
    *((0, _BYTES, 0),) * 4,
    *((width, _BYTES, 0) for width in (1, 2, 4)),
    *((width, _BYTES, 1) for width in (1, 2, 4)),
    *((0, _BYTES, size) for size in (4, 8, 1, 2, 4, 8, 1, 2, 4, 8)),
    *((0, _BYTES, size) for size in (2, 3, 5, 9, 17)),
    *((width, _BYTES, 0) for width in (1, 2, 4)),
    *((width, _ITEMS, 0) for width in (2, 4)),
    *((width, _PAIRS, 0) for width in (2, 4)),
)


def check_complete(encoded: bytes) -> None:
    """Raise ValueError if the bytes end before everything that they announce."""
    if len(encoded) > _LONG and _is_short(encoded):
        return
    if not _announces_more(encoded):
        return
    unpacker = msgpack.Unpacker(max_buffer_size=len(encoded))
    unpacker.feed(encoded)
    try:
        unpacker.skip()
    except msgpack.OutOfData:
        raise ValueError("the bytes end before what they announce") from None


def _announces_more(encoded: bytes) -> bool:
    """Whether long arrays together may announce many more items than there are bytes."""
    most, looks = len(encoded), _MOST_LOOKS
    room = most * _A_BYTE
    for header, width in _LONG_ARRAYS:
        location = encoded.find(header)
        while location >= 0:
            location += 1
            items = int.from_bytes(encoded[location : location + width], "big")
            looks -= 1
            if items <= most:  # msgpack itself refuses more
                room -= items
            if room < 0 or not looks:
                return True
            location = encoded.find(header, location)
    return False


def _is_short(encoded: bytes) -> bool:
    """Whether the bytes are a few headers with everything that they announce.

    This is so for large arrays of numbers, whose bytes may look like any header.
    """
    expected, location = 1, 0
    for _ in range(_FEW):
        if not expected or location >= len(encoded):
            break
        byte = encoded[location]
        location += 1
        expected -= 1
        if byte < _MAPS or byte >= _SMALL_NUMBERS:
            continue
        if byte < _ARRAYS:
            expected += 2 * (byte - _MAPS)
        elif byte < _TEXTS:
            expected += byte - _ARRAYS
        elif byte < _OTHERS:
            location += byte - _TEXTS
        else:
            width, counts, more = _HEADERS[byte - _OTHERS]
            number = int.from_bytes(encoded[location : location + width], "big")
            location += width + more + (0 if counts else number)
            expected += counts * number
    return not expected and location <= len(encoded)


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


@counterpart("plain.unpack")
def unpack_plain(encoded: bytes) -> Any:
    """Like `unpack`, for bytes without marks. Raises NeedsSlowWayError where only `unpack` can tell."""
    return unpack_fast(encoded)


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
