"""Packs: one row for all writes of a task to ordinary channels, instead of a row for each write.

Each row costs its key, its check and its places in the database, which is more than most values take. So one
`put_writes` stores its writes to ordinary channels in one row, whose value is the array of these writes. A task's first
writes stay: a pack is never changed, and if a task writes again, only its new writes are stored, in separate rows.
If a backend has a limit (`Store.longest_pack`), a batch has several packs, of which the first decides whether it is the
task's first. If two packs hold the same write, the one with the smaller index counts, which is the older one.

Like any stored value, a pack begins with keys of its segments, so that a backend can return them along with it without
reading it. If it has more than a byte can count, the others are requested separately.
"""

from collections.abc import Sequence

import msgpack

from threadmark.errors import CorruptDataError
from threadmark.format.digests import KEY_SIZE, pack_plain
from threadmark.format.rope import keys_in

PACK = 1 << 29
"""From this `WriteRow.idx` on a row holds several writes of a task to ordinary channels (`format/packs.py`)."""


FIRST_RECORD = 1 << 30
"""From this `WriteRow.idx` on a row is the record of a batch of writes (`saver/batches.py`)."""


Written = tuple[int, str, bytes]
"""The index of a write, its channel and its stored value."""

_FIELDS = 3
_FRAME = 8
"""About how many bytes a write in a pack takes besides its channel, its value and its keys."""

MOST_KEYS = 255
"""So many keys a pack names at most, the first ones."""


def is_pack_index(idx: object) -> bool:
    """Whether a row of writes with this index is a pack. A damaged file may hold anything."""
    return isinstance(idx, int) and PACK <= idx < FIRST_RECORD


def divided(written: Sequence[Written], longest: int | None) -> list[list[Written]]:
    """Divide writes into those that share a pack, which has about so many bytes at most, or one write."""
    if longest is None:
        return [list(written)]
    parts: list[list[Written]] = []
    room = 0
    for each in written:
        _, channel, body = each
        size = len(channel) + len(body) + body[0] * KEY_SIZE + _FRAME
        if not parts or size > room:
            parts.append([])
            room = longest
        parts[-1].append(each)
        room -= size
    return parts


def pack_writes(written: Sequence[Written]) -> bytes:
    """Return the value of a pack of these writes, which must be in ascending order."""
    keys = dict.fromkeys([key for _, _, body in written if body[0] for key in keys_in(body)])  # a literal has none
    named = list(keys)[:MOST_KEYS]
    fields = [field for each in written for field in each]
    return b"".join([bytes([len(named)]), *named, pack_plain(fields)])


def unpack_writes(body: bytes) -> list[Written]:
    """Return the writes in the value of a pack. Raises CorruptDataError if `pack_writes` does not make such bytes."""
    try:
        return _unpacked(body)
    except (ValueError, TypeError) as error:
        raise CorruptDataError("the row of its writes cannot be read") from error


def _unpacked(body: bytes) -> list[Written]:
    start = 1 + body[0] * KEY_SIZE if body else 0
    fields = msgpack.unpackb(body[start:], unicode_errors="surrogatepass")
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
