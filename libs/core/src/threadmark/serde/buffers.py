"""Finding the buffers that msgpack writes without asking: bytearray and memoryview come out as if they were bytes.

The packer has no hook for them, and looking at every value costs as much as packing it. But a buffer leaves one of
three header bytes in the encoding: where none of them occurs, nothing has to be looked at.
"""

import gc
from collections.abc import Iterable
from typing import Any

_HEADERS = (b"\xc4", b"\xc5", b"\xc6")
_BUFFERS = frozenset({bytearray, memoryview})
_ENTERED = frozenset({dict, list})


def may_hold_buffer(encoded: bytes) -> bool:
    """Whether msgpack may have written a buffer; text, numbers and lengths may look the same."""
    return any(header in encoded for header in _HEADERS)


def holds_buffer(roots: Iterable[Any]) -> bool:
    """Whether a buffer is among these values or anywhere in the lists and dictionaries they are made of."""
    level = list(roots)
    while level:
        classes = set(map(type, level))
        if not _BUFFERS.isdisjoint(classes):
            return True
        level = gc.get_referents(*[value for value in level if type(value) in _ENTERED])
    return False
