"""Finding what the packers write without asking: bytearray and memoryview come out as if they were bytes.

There is no hook for them, and looking at every value costs more than packing it. But a buffer leaves one of three
header bytes in the encoding: where none of them occurs, nothing has to be looked at.
"""

import gc
from collections.abc import Iterable
from typing import Any

from threadmark.serde.wire import NEVER_ASKED_ABOUT

_HEADERS = (b"\xc4", b"\xc5", b"\xc6")
_ENTERED = frozenset({dict, list})


def may_hold_buffer(encoded: bytes) -> bool:
    """Whether a buffer may have been written; text, numbers and lengths may look the same."""
    return any(header in encoded for header in _HEADERS)


def holds_stowaway(roots: Iterable[Any]) -> bool:
    """Whether one of these values, or of those in their lists and dictionaries, came aboard without being asked."""
    level = list(roots)
    while level:
        if not NEVER_ASKED_ABOUT.isdisjoint(map(type, level)):
            return True
        level = gc.get_referents(*[value for value in level if type(value) in _ENTERED])
    return False
