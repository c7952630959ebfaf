"""Checkpoint ids and channel versions, which only grow.

Ids are UUIDs of version 6 as text, which sort by the time at which they were made. LangGraph makes its ids in the same
way, so ids of both sort together. If ids are only compared for equality, backends store the 16 bytes of a UUID. The
next version of a channel is of the type that its thread already uses.
"""

import math
import random
import secrets
import threading
import time
from collections.abc import Iterable

from threadmark.errors import ConfigError, short_repr
from threadmark.runtime.processes import reset_after_fork

_GREGORIAN_OFFSET = 0x01B21DD213814000
"""Ticks of 100 ns between the start of the Gregorian calendar, when UUID time begins, and that of Unix time."""

UUID_BYTES = 16
_UUID_LENGTH = 36


class _Clock:
    """A clock of 100 ns ticks, each later than the one before."""

    def __init__(self) -> None:
        self._last = 0
        self._reset_after_fork()
        reset_after_fork(self)

    def ticks(self) -> int:
        with self._lock:
            self._last = ticks = max(time.time_ns() // 100 + _GREGORIAN_OFFSET, self._last + 1)
        return ticks

    def _reset_after_fork(self) -> None:
        self._lock = threading.Lock()


_clock = _Clock()


def new_id() -> str:
    """Return a new id, greater than every earlier one of this process, even if the clock was set back."""
    return uuid6_text(_clock.ticks(), secrets.randbits(62))


def uuid6_text(ticks: int, entropy: int) -> str:
    """Return the UUIDv6 of a time, in 100 ns ticks since 1582, and 62 bits for clock sequence and node."""
    high, middle, low = ticks >> 28 & 0xFFFFFFFF, ticks >> 12 & 0xFFFF, ticks & 0xFFF
    tail = 0x8000 << 48 | entropy
    return f"{high:08x}-{middle:04x}-6{low:03x}-{tail >> 48:04x}-{tail & 0xFFFFFFFFFFFF:012x}"


def time_of_id(checkpoint_id: str) -> int | None:
    """Return when an id was made, in microseconds since 1970, or None for one that is no UUIDv6."""
    if packed_uuid(checkpoint_id) is None or checkpoint_id[14] != "6":
        return None
    ticks = int(checkpoint_id[:8] + checkpoint_id[9:13] + checkpoint_id[15:18], 16)
    return (ticks - _GREGORIAN_OFFSET) // 10


def deleted_up_to(ids: Iterable[str], now: int) -> str:
    """Return the greatest id that may belong to a thread that is deleted now, and had these ids.

    A run that still goes on may have made an id that no row has yet; it is not greater than one of this moment. Ids
    that tell no time are only compared with those that the thread had.
    """
    greatest = max(ids, default="")
    if greatest and time_of_id(greatest) is None:
        return greatest
    return max(greatest, greatest_id(now))


def greatest_id(now: int) -> str:
    """Return the greatest id that is made at this time, in microseconds since 1970."""
    return uuid6_text(now * 10 + _GREGORIAN_OFFSET + 9, 2**62 - 1)


def packed_uuid(text: str) -> bytes | None:
    """Return the 16 bytes of a UUID in its canonical spelling, or None for any other text."""
    if len(text) != _UUID_LENGTH or text[8] != "-":
        return None
    try:
        packed = bytes.fromhex(text.replace("-", ""))
    except ValueError:
        return None
    return packed if uuid_text(packed) == text else None


def uuid_text(packed: bytes) -> str:
    """Return the text of a UUID. Every pending write has two, and `uuid.UUID` would take three times as long."""
    digits = packed.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


Version = int | float | str

_FRACTION_LIMIT = 10**16
"""Random fractions are below this number: 16 digits."""

_MOST_DIGITS = 600
"""The longest text that every Python converts to an int, regardless of its limit."""


def next_version(current: Version | None) -> Version:
    """Return a version greater than `current`, of the same type: 1 for a new channel.

    Strings are LangGraph's: a number of 32 digits, a dot, and a random fraction that tells forks apart. Only the number
    grows. A string that does not begin with digits is refused, and so is anything that is not a version.
    """
    if current is None:
        return 1
    if isinstance(current, str):
        count, _, _ = current.partition(".")
        if count.isascii() and count.isdigit() and len(count) <= _MOST_DIGITS:
            return f"{int(count) + 1:032d}.{random.randrange(_FRACTION_LIMIT):016d}"  # noqa: S311 - not a secret
    elif isinstance(current, float):
        if math.isfinite(current):
            # Large floats are further apart than 1.
            return max(float(int(current) + 1), math.nextafter(current, math.inf))
    elif isinstance(current, int) and not isinstance(current, bool):
        return current + 1
    raise ConfigError(
        f"channel version {short_repr(current)} is not one that can be continued: "
        "give an int, a finite float, or digits before a dot"
    )
