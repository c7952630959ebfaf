"""What an entry of an outbox says: which rows of a thread a change touched. It holds none of their bytes.

Whoever applies an entry reads what these rows are by now, and makes the other database have the same: rows that are
gone are removed there, too. So an entry may be applied again, and several of a thread at once.
"""

from collections.abc import Sequence
from typing import NamedTuple

from threadmark.store import Key


class Touched(NamedTuple):
    """The rows of one or more changes to a thread."""

    checkpoints: frozenset[Key] = frozenset()
    writes: frozenset[Key] = frozenset()
    """The checkpoints whose pending writes were touched."""
    segments: frozenset[bytes] = frozenset()
    everything: bool = False
    """Whether rows were removed, replaced or written over, or the thread's own row was: all of it is compared."""
    dropped: bool = False
    """Whether the thread was deleted, and perhaps begun anew after that."""

    def to_bytes(self) -> bytes:
        """The body of an entry."""
        raise NotImplementedError

    @classmethod
    def from_bytes(cls, body: bytes) -> "Touched":
        """Read the body of an entry. Raises CorruptDataError for anything else."""
        raise NotImplementedError

    def plus(self, other: "Touched") -> "Touched":
        """Both, this one first."""
        raise NotImplementedError


def joined(bodies: Sequence[bytes]) -> Touched:
    """Return what these entries of one thread touched together, oldest first."""
    raise NotImplementedError
