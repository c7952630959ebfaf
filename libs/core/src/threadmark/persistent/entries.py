"""Entries of a persistent dictionary: their stored form, their digests, and which of them are new.

Positions that only grow keep the order. A key keeps its position as long as it comes after the same keys as before. A
key that was deleted and added again comes last, in the dictionary and here.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from threadmark.errors import CorruptDataError, LocatedError, SerializationError, located, short_repr
from threadmark.serde import Serializer

DIGEST_SIZE = 16
LONGEST = 10**9 - 10**6
"""The bytes of a key and its value together. SQLite takes rows of a billion bytes."""
_ATTEMPTS = 20
"""How often to encode a value again that another thread is changing."""


class Row(NamedTuple):
    """An entry as it is stored."""

    position: int
    key: bytes
    value: bytes
    digest: bytes


class Slot(NamedTuple):
    """The place of a stored entry, and the digest of its row."""

    position: int
    digest: bytes


class Contents(NamedTuple):
    """The content of a file: the place of each encoded key, in their order, and a digest of all."""

    slots: Mapping[bytes, Slot]
    digest: bytes
    stale: bool = False
    """Whether there are entries besides, which the next sync removes."""


class Draft(NamedTuple):
    """The contents after a sync, and the rows that it writes and deletes."""

    contents: Contents
    rows: list[Row]
    gone: list[int]
    """Positions that no longer have an entry."""


def contents_of(slots: Mapping[bytes, Slot]) -> Contents:
    """Return contents with their digest."""
    total = blake2b(digest_size=DIGEST_SIZE)
    for position, digest in slots.values():
        total.update(b"%d:%s" % (position, digest))
    return Contents(slots, total.digest())


def draft(before: Contents, items: Iterable[tuple[Any, Any]], serde: Serializer) -> Draft:
    """Encode everything. Returns the entries that are new if `before` is in the file."""
    slots: dict[bytes, Slot] = {}
    rows = []
    last, free = 0, 1 + max((slot.position for slot in before.slots.values()), default=0)
    for key, value in items:
        try:
            encoded_key, encoded = _encoded(key, serde), _encoded(value, serde)
            if encoded_key in slots:
                raise SerializationError("it is stored like another key, so only one of them would come back")
            if len(encoded_key) + len(encoded) > LONGEST:
                raise SerializationError(f"it takes more than the {LONGEST:,} bytes that one entry may have in a file")
        except LocatedError as error:
            raise error.at(f"key {short_repr(key)}") from error.origin
        slot = before.slots.get(encoded_key)
        if slot is not None and slot.position > last:
            last = slot.position
        else:
            last, free = free, free + 1
        digest = _digest(last, encoded_key, encoded)
        if slot is None or slot.position != last or slot.digest != digest:
            slot = Slot(last, digest)
            rows.append(Row(last, encoded_key, encoded, digest))
        slots[encoded_key] = slot
    used = {slot.position for slot in slots.values()}
    gone = [slot.position for slot in before.slots.values() if slot.position not in used]
    return Draft(contents_of(slots), rows, gone)


def decoded(row: Row, serde: Serializer) -> tuple[Any, Any]:
    """Return the key and the value of a row. Raises CorruptDataError if they are not as they were written."""
    if row.digest != _digest(row.position, row.key, row.value):
        raise CorruptDataError("it is not as it was written", _location_of(row, serde))
    with located(f"the key of entry {row.position}"):
        key = _decoded(row.key, serde)
    with located(f"key {short_repr(key)}"):
        return key, _decoded(row.value, serde)


def _location_of(row: Row, serde: Serializer) -> str:
    """The name of a damaged row: its position, and its key as far as that can be read."""
    try:
        return f"entry {row.position}, key {short_repr(_decoded(row.key, serde))}"
    except Exception:  # noqa: BLE001 - the key itself may be damaged, in any way
        return f"entry {row.position!r}"


def _digest(position: object, key: bytes, value: bytes) -> bytes:
    """The digest that binds a value to its key and place. Damaged arguments may be of any type."""
    if not (isinstance(position, int) and isinstance(key, bytes) and isinstance(value, bytes)):
        return b""
    digest = blake2b(b"%d:%d:" % (position, len(key)), digest_size=DIGEST_SIZE)
    digest.update(key)
    digest.update(value)
    return digest.digest()


def _encoded(value: object, serde: Serializer) -> bytes:
    """The tag and the bytes of a value, as they are stored."""
    for attempt in range(_ATTEMPTS):
        try:
            tag, data = serde.dumps_typed(value)
            return _prefix(tag) + data
        except Exception as error:
            # A container that another thread changes while it is gone through may have come to rest by now.
            if isinstance(error.__cause__ or error, RuntimeError) and attempt < _ATTEMPTS - 1:
                continue
            if isinstance(error, LocatedError):
                raise
            raise SerializationError(f"it cannot be stored: {error}") from error
    raise AssertionError("the last attempt returns or raises")


@lru_cache(64)
def _prefix(tag: str) -> bytes:
    """The bytes before those of a value: the length of its tag, and the tag."""
    encoded = tag.encode("utf-8", "surrogatepass")
    return b"%d:%s" % (len(encoded), encoded)


def _decoded(stored: bytes, serde: Serializer) -> Any:
    try:
        length, _, rest = stored.partition(b":")
        tag, data = rest[: int(length)], rest[int(length) :]
        return serde.loads_typed((tag.decode("utf-8", "surrogatepass"), data))
    except LocatedError:
        raise
    except Exception as error:
        raise SerializationError(f"it cannot be read: {error}") from error
