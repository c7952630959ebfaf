"""msgpack as this serializer speaks it: one place for every setting that the stored bytes depend on.

Two packers write the same bytes: ormsgpack where it is installed and the value is one that it can carry, and
msgpack's own, slower, for everything else. msgpack's unpacker reads what has marks in it, because only it
hands over arrays as they end; ormsgpack's reads the rest, twice as fast.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import msgpack

from threadmark.serde.announced import check_complete
from threadmark.serde.envelopes import Instances

try:
    import ormsgpack
except ImportError:
    _HAS_FAST = False
    _ENVELOPES: dict[Any, tuple[Any, ...]] = {}
else:
    _HAS_FAST = True
    # Fragment is younger than what is required of ormsgpack.
    _ENVELOPES = {ormsgpack.Ext: (0, b"")}
    if hasattr(ormsgpack, "Fragment"):
        _ENVELOPES[ormsgpack.Fragment] = (b"\xc0",)

# The one extension type in stored values: it announces a typed array.
MARK_CODE = 84

Pack: TypeAlias = Callable[[Any], bytes]

# What one of the packers writes without asking although it would come back as something else.
NEVER_ASKED_ABOUT = frozenset({bytearray, memoryview, msgpack.ExtType, msgpack.Timestamp, *_ENVELOPES})


class NeedsSlowWayError(Exception):
    """ormsgpack cannot do this; msgpack can, or says why nobody can."""


def mark(payload: bytes) -> Any:
    """A mark for `new_pack`."""
    return msgpack.ExtType(MARK_CODE, payload)


def new_pack(write: Callable[[Any], Any], *, surrogates: bool = False) -> Pack:
    """A packer that asks `write` about every value that msgpack cannot carry; to it, subclasses are such
    values.

    Text with lone surrogates raises UnicodeEncodeError unless `surrogates` is given, which makes every text
    slower.
    """
    errors = "surrogatepass" if surrogates else "strict"
    pack: Pack = msgpack.Packer(default=write, strict_types=True, unicode_errors=errors).pack
    return pack


def unpack(encoded: bytes, read_array: Callable[[list[Any]], Any], read_extension: Callable[[int, bytes], Any]) -> Any:
    """The value; both functions see every array and every extension as soon as it is complete."""
    check_complete(encoded)
    return msgpack.unpackb(
        encoded,
        list_hook=read_array,
        ext_hook=read_extension,
        strict_map_key=False,
        unicode_errors="surrogatepass",
    )


def fast_mark(payload: bytes) -> Any:
    """A mark for `pack_fast`. They are kept, so that it is known how many there are."""
    found = _FAST_MARKS.get(payload)
    if found is None and _HAS_FAST:
        if len(_FAST_MARKS) >= _MOST_MARKS:
            _FAST_MARKS.clear()
        found = _FAST_MARKS.setdefault(payload, ormsgpack.Ext(MARK_CODE, payload))
    return found


def may_hold_envelope() -> bool:
    """Whether `pack_fast` may have been given an envelope of ormsgpack's, which it writes without asking."""
    return _INSTANCES.may_be_more_than(len(_FAST_MARKS))


def no_envelope_found() -> None:
    """What to say where it was not so."""
    _INSTANCES.were_not_found()


def pack_fast(value: Any, write: Callable[[Any], Any]) -> bytes:
    """Like `new_pack`, if ormsgpack is there, keys are text, none has surrogates, and nesting is not deep."""
    if not _HAS_FAST:
        raise NeedsSlowWayError
    try:
        return ormsgpack.packb(value, default=write, option=_ASK_ABOUT)
    except ormsgpack.MsgpackEncodeError as error:
        raise NeedsSlowWayError from error


def unpack_fast(encoded: bytes) -> Any:
    """Like `unpack`, if ormsgpack is there, for bytes without marks and surrogates."""
    if not _HAS_FAST:
        raise NeedsSlowWayError
    try:
        # ormsgpack ignores what follows a value: as the first of two, the value must end where the second begins.
        pair = ormsgpack.unpackb(b"\x92" + encoded + _END, option=ormsgpack.OPT_NON_STR_KEYS)
    except ormsgpack.MsgpackDecodeError as error:
        raise NeedsSlowWayError from error
    value, end = pair
    if end != _END_NUMBER:
        raise NeedsSlowWayError
    return value


_FAST_MARKS: dict[bytes, Any] = {}
_MOST_MARKS = 10_000
_INSTANCES = Instances(_ENVELOPES)
_INSTANCES.count()
_END_NUMBER = 0x7468726561646D6B
_END = b"\xcf" + _END_NUMBER.to_bytes(8, "big")
_ASK_ABOUT = (
    (
        ormsgpack.OPT_PASSTHROUGH_BIG_INT
        | ormsgpack.OPT_PASSTHROUGH_DATACLASS
        | ormsgpack.OPT_PASSTHROUGH_DATETIME
        | ormsgpack.OPT_PASSTHROUGH_ENUM
        | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
        | ormsgpack.OPT_PASSTHROUGH_TUPLE
        | ormsgpack.OPT_PASSTHROUGH_UUID
    )
    if _HAS_FAST
    else 0
)
