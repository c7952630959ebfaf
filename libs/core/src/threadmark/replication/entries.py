"""The contents of an outbox entry: the rows of a thread that a change touched, without their bytes.

To apply an entry, the present rows are read and the other database is made to have the same: rows that are gone are
removed there as well. So an entry may be applied again, and several of a thread at once. Removed checkpoints are listed
all the same: if both databases changed the thread, a missing row proves nothing.

The body of an entry is JSON: an object with a list for each kind of row, segment keys in hexadecimal, a list of removed
checkpoints, and a list of facts about the change. Empty lists are left out.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from threadmark.errors import CorruptDataError
from threadmark.store.contract import Key


class Touched(NamedTuple):
    """The rows of one or more changes to a thread."""

    checkpoints: frozenset[Key] = frozenset()
    writes: frozenset[Key] = frozenset()
    """The checkpoints whose pending writes were touched."""
    segments: frozenset[bytes] = frozenset()
    removed: frozenset[Key] = frozenset()
    """The checkpoints that were removed, or that were to be and were not there: the other database may have them."""
    everything: bool = False
    """Whether rows were removed, replaced or written over: all of it is compared."""
    thread: bool = False
    """Whether the thread's own row was set."""
    dropped: bool = False
    """Whether the thread was deleted, and perhaps begun again after that."""
    merged: bool = False
    """Whether the writes of both databases were merged here: all are compared, as with `everything`, but none
    of these rows was changed."""

    @property
    def whole(self) -> bool:
        """Whether all rows of the thread are to be compared."""
        return self.everything or self.dropped or self.merged or bool(self.removed)

    def to_bytes(self) -> bytes:
        """The body of an entry."""
        body: dict[str, Any] = {}
        if self.checkpoints:
            body["checkpoints"] = sorted(self.checkpoints)
        if self.writes:
            body["writes"] = sorted(self.writes)
        if self.segments:
            body["segments"] = [key.hex() for key in sorted(self.segments)]
        if self.removed:
            body["removed"] = sorted(self.removed)
        flags = [name for name in _FLAGS if getattr(self, name)]
        if flags:
            body["is"] = flags
        return json.dumps(body, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, body: bytes) -> "Touched":
        """Read the body of an entry. Raises CorruptDataError for anything else."""
        try:
            found = json.loads(body)
            flags = found.pop("is", [])
            touched = cls(
                _keys(found.pop("checkpoints", [])),
                _keys(found.pop("writes", [])),
                frozenset(map(bytes.fromhex, found.pop("segments", []))),
                _keys(found.pop("removed", [])),
                **dict.fromkeys(flags, True),
            )
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptDataError("an entry of the outbox is damaged") from error
        if found or not set(flags) <= set(_FLAGS):
            raise CorruptDataError("an entry of the outbox is damaged, or from a later release")
        return touched

    def plus(self, other: "Touched") -> "Touched":
        """Both, this one first."""
        return Touched(
            self.checkpoints | other.checkpoints,
            self.writes | other.writes,
            self.segments | other.segments,
            self.removed | other.removed,
            self.everything or other.everything,
            self.thread or other.thread,
            self.dropped or other.dropped,
            self.merged or other.merged,
        )


_FLAGS = ("everything", "thread", "dropped", "merged")


def joined(parts: Iterable[Touched]) -> Touched:
    """Return the rows that several changes to one thread touched together, oldest first."""
    columns = list(zip(*parts, strict=True))
    if not columns:
        return Touched()
    checkpoints, writes, segments, removed, *flags = columns
    none: frozenset[Key] = frozenset()
    return Touched(
        none.union(*checkpoints),
        none.union(*writes),
        frozenset[bytes]().union(*segments),
        none.union(*removed),
        *map(any, flags),
    )


def _keys(pairs: Iterable[Sequence[str]]) -> frozenset[Key]:
    keys = frozenset((ns, checkpoint_id) for ns, checkpoint_id in pairs)
    if not all(isinstance(part, str) for key in keys for part in key):
        raise TypeError("a key is two texts")
    return keys
