"""Conversion of Python values to the fields of hashes and back.

Text is UTF-8 in which lone surrogates are encoded like other code points: its bytes sort as Python sorts text. Reading
never raises: a damaged field gives some value, and the row's check then reports that it is wrong, with its place.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgpack

from threadmark.backends import (
    NO_NUMBER,
    UUID_BYTES,
    CheckpointRow,
    Copied,
    LeaseRow,
    Outline,
    ThreadOutline,
    ThreadRow,
    packed_uuid,
    uuid_text,
)

ALIAS = b"\xff\xff"
"""Prefix of the namespace and the id of a checkpoint whose rank is another one. The field holds the rank."""

NEEDS = b"\xff\xfe"
"""Prefix of a namespace. The field holds the keys of the segments of its newest checkpoint."""

WRITTEN = b"\xff\xf0"
"""Prefix of the field of a checkpoint's writes. This field exists if that one does, so that a loss is detected."""

Head = Mapping[bytes, bytes | None]
"""The fields of a thread's head. A missing one may be None."""


def pack(value: Any) -> bytes:
    """Pack for a script. Redis only knows the older one of msgpack's types for bytes and text."""
    packed: bytes = msgpack.packb(value, use_bin_type=False)
    return packed


def unpack(packed: bytes | None) -> Any:
    """Return packed values, with text as bytes; None if they are damaged."""
    try:
        return msgpack.unpackb(packed or b"", raw=True, strict_map_key=False)
    except (ValueError, TypeError):
        return None


def to_bytes(text: str) -> bytes:
    """Return the stored form of a text."""
    return text.encode("utf-8", "surrogatepass")


def from_bytes(stored: Any) -> str:
    """Return the text that `to_bytes` took."""
    if not isinstance(stored, bytes):
        return f"\ufffd{type(stored).__name__}"
    try:
        return stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return stored.decode("utf-8", "replace")


def text_or_none(stored: bytes | None) -> str | None:
    """Return a text that may be missing."""
    return None if stored is None else from_bytes(stored)


def int_or_none(stored: bytes | None) -> int | None:
    """Return a number that may be missing."""
    try:
        return None if stored is None else int(stored)
    except ValueError:
        return NO_NUMBER


def state_in(epoch: bytes | None, revision: bytes | None) -> tuple[int, int]:
    """Return the epoch and the revision of a thread; -1 for one that is missing."""
    found = int_or_none(epoch), int_or_none(revision)
    return -1 if found[0] is None else found[0], -1 if found[1] is None else found[1]


def bytes_of(stored: Any) -> bytes:
    """Return bytes, empty for any other type."""
    return stored if isinstance(stored, bytes) else b""


def measured(text: bytes) -> bytes:
    """Return a text after its length."""
    return len(text).to_bytes(2, "big") + text


def cut(field: bytes) -> tuple[bytes, bytes]:
    """Return a measured text and the rest."""
    end = 2 + int.from_bytes(field[:2], "big")
    return field[2:end], field[end:]


@lru_cache(256)  # all writes of a step share two ids
def packed_id(text: str) -> bytes:
    """Return an id that is only compared for equality: 17 bytes for a UUID as it is usually written."""
    packed = packed_uuid(text)
    return b"\x00" + to_bytes(text) if packed is None else b"\x01" + packed


def from_packed_id(stored: Any) -> str:
    """Return the id that `packed_id` took."""
    if isinstance(stored, bytes) and stored[:1] == b"\x01" and len(stored) == UUID_BYTES + 1:
        return uuid_text(stored[1:])
    return from_bytes(stored[1:] if isinstance(stored, bytes) else stored)


# Checkpoints.


def member_of(ns: str, rank: str) -> bytes:
    """Return the field of a checkpoint, which is also its place among the ranks."""
    return measured(to_bytes(ns)) + to_bytes(rank)


def alias_of(ns: str, checkpoint_id: str) -> bytes:
    """Return the field that holds the rank of a checkpoint whose id is another one."""
    return ALIAS + member_of(ns, checkpoint_id)


def alias_parts(field: bytes) -> tuple[str, str]:
    """Return the namespace and the id of a field of `alias_of`."""
    return parts_of(field[len(ALIAS) :])


def needs_of(ns: str) -> bytes:
    """Return the field with the segments that the newest checkpoint of a namespace needs."""
    return NEEDS + to_bytes(ns)


def written_for(reference: bytes) -> bytes:
    """Return the field that tells that a checkpoint has writes, from the field of those."""
    return WRITTEN + reference


def is_member(field: bytes) -> bool:
    """Return whether a field is a checkpoint."""
    return field[:1] != b"\xff"


def parts_of(member: bytes) -> tuple[str, str]:
    """Return the namespace and the rank of a checkpoint's field."""
    ns, rank = cut(member)
    return from_bytes(ns), from_bytes(rank)


def range_of(ns: str) -> tuple[bytes, bytes]:
    """Return the least and the greatest place of a namespace's checkpoints, as ZRANGEBYLEX takes them."""
    start = measured(to_bytes(ns))
    return b"[" + start, b"(" + start + b"\xff"


def checkpoint_value(row: CheckpointRow) -> bytes:
    """Return the value of a checkpoint's field."""
    _, _, checkpoint_id, rank, parent, created_at, metadata = row.outline
    own_id = None if checkpoint_id == rank else to_bytes(checkpoint_id)
    packed_parent = None if parent is None else packed_id(parent)
    return pack((own_id, packed_parent, created_at, to_bytes(metadata), row.header, row.check))


def checkpoint_row(thread_id: str, member: bytes, value: bytes) -> CheckpointRow:
    """Return a checkpoint from its field."""
    ns, rank = parts_of(member)
    columns = unpack(value)
    if not isinstance(columns, list) or len(columns) < _CHECKPOINT_COLUMNS:
        columns = [None, None, 0, b"", b"", b"damaged"]
    own_id, parent, created_at, metadata, header, check, *_ = columns  # a later release may have more columns
    return CheckpointRow(
        Outline(
            thread_id,
            ns,
            rank if own_id is None else from_bytes(own_id),
            rank,
            None if parent is None else from_packed_id(parent),
            created_at if isinstance(created_at, int) else NO_NUMBER,
            from_bytes(metadata),
        ),
        bytes_of(header),
        bytes_of(check),
        None,
    )


_CHECKPOINT_COLUMNS = 6


# Threads.


def head_field(ns: str) -> bytes:
    """Return the head's field for a namespace."""
    return b"n" + to_bytes(ns)


def namespaces_in(head: Head) -> dict[str, tuple[int, str]]:
    """Return how many checkpoints each namespace has, and the greatest rank, as recorded."""
    found = {}
    for field, value in head.items():
        if field[:1] == b"n":
            columns = unpack(value)
            if not isinstance(columns, list) or len(columns) != 2 or not isinstance(columns[0], int):  # noqa: PLR2004 - the count and the rank
                columns = [-1, b""]
            found[from_bytes(field[1:])] = (columns[0], from_bytes(columns[1]))
    return found


def is_live(head: Head) -> bool:
    """Return whether the thread exists: it was created, and not deleted since."""
    return head.get(b"v") == b"1"


def thread_outline(thread_id: str, head: Head) -> ThreadOutline:
    """Return a live thread from its head."""
    row = ThreadRow(
        thread_id,
        int_or_none(head.get(b"a")) or 0,
        text_or_none(head.get(b"o")),
        text_or_none(head.get(b"j")),
        text_or_none(head.get(b"m")),
        int_or_none(head.get(b"x")),
        head.get(b"q") or b"",
    )
    return ThreadOutline(row, int_or_none(head.get(b"u")) or 0)


OUTLINE_FIELDS = (b"v", b"a", b"o", b"j", b"m", b"x", b"q", b"u")
"""The fields that `thread_outline` and `is_live` read."""


def thread_fields(row: ThreadRow) -> dict[bytes, bytes | None]:
    """Return a thread's description as fields of its head, None for one that is not there."""
    return {
        b"o": None if row.owner is None else to_bytes(row.owner),
        b"j": None if row.title is None else to_bytes(row.title),
        b"m": None if row.metadata is None else to_bytes(row.metadata),
        b"x": None if row.expires_at is None else b"%d" % row.expires_at,
        b"q": row.check or None,
    }


def lease_row(head: Head, moment: int) -> LeaseRow:
    """Return the last lease of a thread, at this time of the server's clock."""
    ends, ttl = int_or_none(head.get(b"z")) or 0, int_or_none(head.get(b"l")) or 0
    return LeaseRow(
        int_or_none(head.get(b"t")) or 0,
        max(0, min(ends - moment, ttl)),
        text_or_none(head.get(b"g")) or "",
        text_or_none(head.get(b"b")),
        outlasts=ends - moment > ttl + _SECOND,
    )


_SECOND = 1_000_000
"""A lease that seems to have this much more time left than it ever had is worth a check."""


def copied_value(copied: Copied) -> bytes:
    """Return the value of the head's field `f`: how far the thread was copied from another database."""
    return pack(tuple(copied))


def copied_of(head: Head) -> Copied | None:
    """Return the argument of `copied_value`; None for a thread that was never copied."""
    columns = unpack(head.get(b"f"))
    if not isinstance(columns, list) or len(columns) != 2 or not all(isinstance(each, int) for each in columns):  # noqa: PLR2004 - the position and the epoch
        return None
    return Copied(*columns)


def as_head(reply: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return the fields of a head from a flat reply."""
    return dict(zip(reply[::2], reply[1::2], strict=True))
