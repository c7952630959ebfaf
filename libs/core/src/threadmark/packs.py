"""Packs: what a row holds that has all that a task wrote to ordinary channels, in place of a row for each write.

Each row costs its key, its check and its places in the database, which is more than most values take. So what one
`put_writes` stores for ordinary channels is one row, whose value is the array of its writes. What a task wrote first
stays: a pack is never changed, and where a task writes again, what it had not written yet is stored in rows of its own.
Databases of earlier formats have nothing but such rows.
"""

from collections.abc import Iterable

import msgpack

from threadmark.digests import pack_plain
from threadmark.errors import CorruptDataError
from threadmark.stored import before_literal

Written = tuple[int, str, bytes]
"""The index of a write, its channel and its stored value."""

_FIELDS = 3
_BEFORE_WRITES = before_literal("")


def pack_writes(written: Iterable[Written]) -> bytes:
    """Return the value of a pack of these writes, which are given in ascending order."""
    return _BEFORE_WRITES + pack_plain([field for each in written for field in each])


def unpack_writes(body: bytes) -> list[Written]:
    """Return the writes in the value of a pack. Raises CorruptDataError if they are not what `pack_writes` makes."""
    try:
        return _unpacked(body)
    except (ValueError, TypeError) as error:
        raise CorruptDataError("the row of its writes cannot be read") from error


def _unpacked(body: bytes) -> list[Written]:
    if not body.startswith(_BEFORE_WRITES):
        raise ValueError
    fields = msgpack.unpackb(body[len(_BEFORE_WRITES) :], unicode_errors="surrogatepass")
    if type(fields) is not list or not fields:
        raise TypeError
    written = list(zip(fields[::_FIELDS], fields[1::_FIELDS], fields[2::_FIELDS], strict=True))
    before = -1
    for index, channel, value in written:
        if type(index) is not int or type(channel) is not str or type(value) is not bytes:
            raise TypeError
        if index <= before:
            raise ValueError
        before = index
    return written
