"""Incarnations: the life of a thread to which a sealed row belongs.

A thread's id may be used again after the thread was deleted, and a thread may get another owner. If sealed rows were
bound to the id alone, then someone without the key could give you another owner's data: they put back the row of the
thread from an earlier time, or let you begin a thread over rows that are still there. So each thread gets an
incarnation when it begins, and counts its owners. Both are in the thread's sealed row, and in each sealed row that
reveals anything of its state.
"""

import os
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

_NAME_LENGTH = 8
_OWNERS_LENGTH = 2
MOST_KNOWN = 4096
"""How many threads a saver remembers, unless it remembers nothing."""

INCARNATION_LENGTH = _NAME_LENGTH + _OWNERS_LENGTH
"""The length of an incarnation in a sealed row."""


class Incarnation(NamedTuple):
    """A life of a thread, and how many owners it had when a row was stored."""

    name: bytes
    """Random bytes."""
    owners: int = 1

    @classmethod
    def begun(cls) -> "Incarnation":
        """Return that of a thread that begins."""
        return cls(os.urandom(_NAME_LENGTH))

    @classmethod
    def unpacked(cls, packed: bytes) -> "Incarnation":
        """Return the incarnation that `packed` was made of."""
        return cls(packed[:_NAME_LENGTH], int.from_bytes(packed[_NAME_LENGTH:], "big"))

    def packed(self) -> bytes:
        """Return it as it stands in a row."""
        return self.name + self.owners.to_bytes(_OWNERS_LENGTH, "big")

    def next_owner(self) -> "Incarnation":
        """Return the same life under another owner. It counts no further than a row can tell."""
        return self._replace(owners=min(self.owners + 1, 256**_OWNERS_LENGTH - 1))

    def covers(self, row: "Incarnation | None") -> bool:
        """Whether a row belongs to this life, and was stored under this owner or an earlier one."""
        return row is not None and row.name == self.name and row.owners <= self.owners


class Known(NamedTuple):
    """The remembered facts about a thread."""

    epoch: int
    incarnation: Incarnation
    is_committed: bool
    """False if the transaction that read or made it might be undone: then another one may end with the same epoch."""


class KnownIncarnations:
    """The incarnations of the threads that were used last.

    A deletion and a change of owner end the epoch, so a change that counts on the epoch is sealed for the right life.
    `committed_epoch` returns the last epoch of a thread that the saver knows to be committed.
    """

    def __init__(self, committed_epoch: Callable[[str], int | None], *, most: int = MOST_KNOWN) -> None:
        self._committed_epoch = committed_epoch
        self._most = most
        self._found: dict[str, Known] = {}
        self._lock = Lock()

    def get(self, thread_id: str) -> Known | None:
        """Return the remembered facts about the thread."""
        return self._found.get(thread_id)

    def sure(self, thread_id: str, epoch: int | None) -> Known | None:
        """Return the remembered facts, if a change that counts on this epoch, or on none, can be sealed for it."""
        known = self._found.get(thread_id)
        if known is None or known.epoch == epoch:  # a saver counts only on epochs that were committed
            return known
        is_sure = epoch is None and (known.is_committed or self._committed_epoch(thread_id) == known.epoch)
        return known if is_sure else None

    def note(self, thread_id: str, epoch: int, incarnation: Incarnation, *, is_committed: bool) -> None:
        """Remember an incarnation that was read.

        One that this transaction begins must not be noted: the transaction may fail, and another one then begins
        another incarnation in the same epoch.
        """
        with self._lock:
            self._found.pop(thread_id, None)
            self._found[thread_id] = Known(epoch, incarnation, is_committed)
            if len(self._found) > self._most:
                del self._found[next(iter(self._found))]

    def forget(self, thread_id: str) -> None:
        """Read a thread's incarnation again before its next change."""
        with self._lock:
            self._found.pop(thread_id, None)
