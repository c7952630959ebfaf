"""Finding buffers (bytearray, memoryview), which the packers write as if they were bytes, without calling any hook.

Looking at every value would cost more than packing it. But each buffer leaves one of three header bytes in the
encoding. The encoder searches for these (`encoder.may_hold_buffer`). Usually such a byte is part of a length or a
number, and the few bytes before it prove that (`is_in_span`); only if they do not, the values are looked at
(`holds_buffer_or_envelope`).
"""

import gc
import re
from collections.abc import Iterable
from typing import Any

from threadmark.serde.wire import NEVER_ASKED_ABOUT

_ENTERED = frozenset({dict, list})
# The headers of a buffer, each with the length of the shortest buffer that has it.
BUFFER_HEADERS = {b"\xc4": 2, b"\xc5": 3 + 0x100, b"\xc6": 5 + 0x10000}

# Headers by their span: how many bytes of a number, a length or a reference follow them. After a length comes text.
# Each of them can also be the first byte of a character, and then another byte of it follows.
_HEADERS = {
    1: b"\xc7\xcc\xd0\xd9",
    2: b"\xc8\xcd\xd1\xd4\xda\xdc\xde",
    3: b"\xd5",
    4: b"\xc9\xca\xce\xd2\xdb\xdd\xdf",
    8: b"\xcb\xcf\xd3",
}
LONGEST_SPAN = max(_HEADERS)
_NO_SECOND_HALF = rb"(?![\x80-\xbf])"


def holds_buffer_or_envelope(roots: Iterable[Any]) -> bool:
    """Whether these values, or the lists and dictionaries in them, hold a type that a packer writes without asking."""
    level = list(roots)
    while True:
        types = set(map(type, level))
        if not NEVER_ASKED_ABOUT.isdisjoint(types):
            return True
        if _ENTERED.isdisjoint(types):
            return False
        level = gc.get_referents(*[value for value in level if type(value) in _ENTERED])


def is_in_span(encoded: bytes, location: int, patience: int) -> bool:
    """Whether the byte certainly belongs to an earlier header, and so is not a header itself."""
    if ENDS_IN_SPAN.search(encoded, location - LONGEST_SPAN, location):
        return True
    return patience > 0 and any(_is_header(encoded, start, patience - 1) for start in _reaching(encoded, location))


def _is_header(encoded: bytes, location: int, patience: int) -> bool:
    """Whether the byte is certainly a header: not part of a character, and not in the span of an earlier header."""
    if not _HALF_ALONE.match(encoded, location):
        return False
    return all(is_in_span(encoded, start, patience) for start in _reaching(encoded, location))


def _reaching(encoded: bytes, location: int) -> list[int]:
    """Return the positions of bytes that may be headers whose span includes `location`."""
    first = max(0, location - LONGEST_SPAN)
    spans = encoded[first:location].translate(_SPANS)
    return [start for start, span in enumerate(spans, first) if start + span >= location]


def _one_of(headers: bytes) -> bytes:
    return b"[" + b"".join(b"\\x%02x" % header for header in headers) + b"]"


def _ends_in_span() -> re.Pattern[bytes]:
    """Return a pattern that matches a certain header whose span includes the byte after the searched ones.

    In the order of the pattern: a header, which is not the first byte of a character; before it nothing that looks like
    a header whose span would include this one; after it fewer bytes than its own span.
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
