"""Finding what the packers write without asking: bytearray and memoryview come out as if they were bytes.

There is no hook for them, and looking at every value costs more than packing it. But each leaves one of three
header bytes in the encoding. Where such a byte occurs it is mostly part of a length or a number, and the few
bytes before it can prove that; only where they cannot, the values are looked at.
"""

import gc
import re
from collections.abc import Iterable
from typing import Any

from threadmark.serde.wire import NEVER_ASKED_ABOUT

_ENTERED = frozenset({dict, list})
# What a buffer begins with, and the fewest bytes from there on: a longer header stands for a longer buffer only.
BUFFER_HEADERS = {b"\xc4": 2, b"\xc5": 3 + 0x100, b"\xc6": 5 + 0x10000}

# Headers by how many bytes of a number, a length or a reference follow them; after a length comes text. All
# of them can also be the first half of a character, which a second half follows.
_HEADERS = {
    1: b"\xc7\xcc\xd0\xd9",
    2: b"\xc8\xcd\xd1\xd4\xda\xdc\xde",
    3: b"\xd5",
    4: b"\xc9\xca\xce\xd2\xdb\xdd\xdf",
    8: b"\xcb\xcf\xd3",
}
LONGEST_SPAN = max(_HEADERS)
_NO_SECOND_HALF = rb"(?![\x80-\xbf])"


def holds_stowaway(roots: Iterable[Any]) -> bool:
    """Whether one of these values, or of those in their lists and dictionaries, came aboard without being asked."""
    level = list(roots)
    while True:
        types = set(map(type, level))
        if not NEVER_ASKED_ABOUT.isdisjoint(types):
            return True
        if _ENTERED.isdisjoint(types):
            return False
        level = gc.get_referents(*[value for value in level if type(value) in _ENTERED])


def is_in_span(encoded: bytes, location: int, patience: int) -> bool:
    """Whether the byte certainly belongs to an earlier header, and so is none itself."""
    if ENDS_IN_SPAN.search(encoded, location - LONGEST_SPAN, location):
        return True
    return patience > 0 and any(_is_header(encoded, start, patience - 1) for start in _reaching(encoded, location))


def _is_header(encoded: bytes, location: int, patience: int) -> bool:
    """Whether the byte is certainly a header: no half of a character, and no earlier header has it in its span."""
    if not _HALF_ALONE.match(encoded, location):
        return False
    return all(is_in_span(encoded, start, patience) for start in _reaching(encoded, location))


def _reaching(encoded: bytes, location: int) -> list[int]:
    """The places of what may be headers whose span includes `place`."""
    first = max(0, location - LONGEST_SPAN)
    spans = encoded[first:location].translate(_SPANS)
    return [start for start, span in enumerate(spans, first) if start + span >= location]


def _one_of(headers: bytes) -> bytes:
    return b"[" + b"".join(b"\\x%02x" % header for header in headers) + b"]"


def _ends_in_span() -> re.Pattern[bytes]:
    """Matches a certain header whose span goes on where the searched bytes end.

    In the order of the pattern: a header, no second half of a character, nothing before that looks like a
    header with a span so long, and not more bytes than the header's own span has before its last.
    """
    looks_covered = b""
    for distance in range(1, LONGEST_SPAN + 1):
        long_enough = b"".join(headers for span, headers in _HEADERS.items() if span >= distance)
        looks_covered += b"(?<!%s%s)" % (_one_of(long_enough), b"." * distance)
    rests = [b"(?<=%s).{0,%d}" % (_one_of(headers), span - 1) for span, headers in _HEADERS.items()]
    pattern = _one_of(b"".join(_HEADERS.values())) + _NO_SECOND_HALF + looks_covered
    return re.compile(pattern + rb"(?:" + b"|".join(rests) + rb")\Z", re.DOTALL)


_SPANS = bytes(next((span for span, headers in _HEADERS.items() if byte in headers), 0) for byte in range(256))
ENDS_IN_SPAN = _ends_in_span()
_HALF_ALONE = re.compile(rb"." + _NO_SECOND_HALF, re.DOTALL)
