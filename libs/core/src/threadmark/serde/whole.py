"""Whether bytes are whole: everything that their headers announce, and nothing behind it.

msgpack allocates a list as long as its header says before it reads the first item, so a few nested headers could take
all memory, and it has no hook to prevent that. So `check_complete` looks whether arrays hold as many items as they
announce. Honest arrays together announce no more items than there are bytes: a quick search for headers usually shows
that they do not announce much more, and only if it does not, the bytes are parsed.
"""

import msgpack

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
# From 0xc0 to 0xdf: how many bytes of a number follow a header, its unit (bytes, items, pairs), and how many
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
    if _announces_more(encoded) and _first_value(encoded) is None:
        raise ValueError("the bytes end before what they announce")


def is_whole(encoded: bytes) -> bool:
    """Whether the bytes are one value, and nothing follows it."""
    return _first_value(encoded) == len(encoded)


def _first_value(encoded: bytes) -> int | None:
    """The length of the value that the bytes begin with, None if it is not complete."""
    unpacker = msgpack.Unpacker(max_buffer_size=len(encoded))
    unpacker.feed(encoded)
    try:
        unpacker.skip()
    except msgpack.OutOfData:
        return None
    return int(unpacker.tell())


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
