"""The replication data of a backend: the term of the database, an outbox of changes, and how far copies have come.

A *term* decides which database is written to. It is a number in both databases, and only grows; a change made
under a smaller one is refused. The *outbox* has an entry for each change that the other database does not have yet,
recorded in the transaction that made the change. Entries of one thread are numbered by *positions* that grow in the
order in which their transactions commit, so a transaction that numbers one keeps a lock on the thread until it ends.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from threadmark.errors import StoreError
from threadmark.program import Program
from threadmark.store.contract import NEVER, Follows, Key, Store


class Replica(NamedTuple):
    """A database's record of the pair that it belongs to."""

    term: int = 0
    """0 if it never belonged to one."""
    body: str = ""
    """JSON text: the writer under this term, and other notes of `threadmark.replication`."""


class StaleTermError(StoreError):
    """The database has a greater term: another process promoted the other side. The terms have to be read again."""

    def __init__(self) -> None:
        super().__init__("the database has a greater term: another process has promoted the other side")


class Entry(NamedTuple):
    """A change that is to be copied to the other database."""

    thread_id: str
    position: int
    """Greater than that of any earlier entry of the thread: the microseconds since 1970 when it was recorded, or one
    more than the last one if that is greater."""
    body: bytes
    """Which rows it changed (`threadmark.replication.entries`)."""


class Waiting(NamedTuple):
    """How much is in an outbox."""

    entries: int
    oldest: int
    """The smallest position, 0 if there is none."""


class Copied(NamedTuple):
    """The position up to which a thread has been copied from the other database."""

    position: int
    """The thread's last position there when it was read. Nothing older is to be written over it."""
    epoch: int
    """The thread's epoch there, 0 if it was deleted."""


def is_followed(copied: Copied | None, follows: Follows) -> bool:
    """Whether a change that another database made follows the changes that a thread has from there.

    It must have come just as far, and nothing may have been removed there since: that ends the epoch, and has an entry
    in the outbox, unless a writer did it that records nothing.
    """
    if copied is None:
        return follows.previous == NEVER
    return copied.position == follows.previous and copied.epoch in (0, follows.epoch)


class Summary(NamedTuple):
    """A thread in few bytes, to be compared with the same thread in another database of any kind."""

    thread_id: str
    epoch: int
    position: int
    """That of the last entry that was recorded for the thread, whether it is still in the outbox or not; 0 for none."""
    newest: str
    """The greatest rank of the namespace "", "" if it has no checkpoint."""
    checkpoints: int
    writes: int
    digest: int
    """`sum_of_marks` of its checkpoints, its pending writes and the thread's own row."""


WriteKey = tuple[str, str, str, int]
"""(namespace, checkpoint_id, task_id, idx)"""


class RowMarks(NamedTuple):
    """All rows of a thread by their keys, each with a mark of `LONG_MARK` bytes that tells it from another one."""

    checkpoints: Mapping[Key, tuple[str, bytes]]
    """(rank, mark)"""
    writes: Mapping[WriteKey, bytes]
    """Also those whose checkpoint is not there."""
    segments: Mapping[bytes, tuple[int, bytes]]
    """(stored size, mark): the mark of a segment is the end of its stored bytes, which are sealed or not."""


LONG_MARK = 16
"""The length of the marks in `RowMarks`, which are made like those of `mark_of` otherwise."""


def mark_of(check: bytes, body: bytes = b"") -> bytes:
    """Return the few bytes that tell a row from another one under the same key: the end of its check.

    A sealed row has no check, so the end of its body is taken, which is the end of the authentication tag of AES-GCM.
    The row of a thread in which nothing was ever set has neither.
    """
    return (check or body)[-MARK_BYTES:]


def sum_of_marks(marks: Iterable[bytes]) -> int:
    """Return the digest of a summary: the sum of all marks, as unsigned big-endian numbers, modulo 2**63."""
    return sum(int.from_bytes(mark, "big") for mark in marks) % 2**63


MARK_BYTES = 7
"""So few that a database can add up more than a hundred marks before it has to reduce the sum."""


@runtime_checkable
class ReplicaStore(Store, Protocol):
    """A backend with the operations for replication. One without them can be no side of a pair.

    The replication data of a thread outlives its deletion, for as long as anything is remembered of it (`Store.drop`).
    """

    def replica(self) -> Program[Replica]:
        """Return the record of the pair."""

    def set_replica(self, replica: Replica) -> Program[Replica]:
        """Write it, unless the term that is there is greater. Returns the record afterwards."""

    def record(self, thread_id: str, body: bytes, term: int) -> Program[int | None]:
        """Add an entry for this transaction's changes in a thread. Returns its position.

        Returns None, and adds nothing, if the term of the database is greater.
        """

    def outbox(self, thread_id: str | None, limit: int) -> Program[list[Entry]]:
        """Return entries by ascending (position, thread_id): of one thread, or the first of all."""

    def waiting(self) -> Program[Waiting]:
        """Return how much is in the outbox."""

    def settle(self, thread_id: str, position: int) -> Program[None]:
        """Remove the entries of a thread up to and including this position."""

    def positions(self, thread_ids: Sequence[str]) -> Program[dict[str, int]]:
        """Return the last position of each of these threads for which anything was ever recorded."""

    def copied(self, thread_ids: Sequence[str]) -> Program[dict[str, Copied]]:
        """Return the positions up to which these threads were copied from the other database, if they were."""

    def set_copied(self, thread_id: str, copied: Copied) -> Program[None]:
        """Note the position up to which a thread was copied. It is locked (`Store.lock`), and may be deleted."""

    def marks(self, thread_id: str) -> Program[RowMarks]:
        """Return the marks of all rows of a thread. Bodies are read only of rows without a check."""

    def summaries(self, after: str, limit: int) -> Program[list[Summary]]:
        """Return the next live threads with an id greater than `after`, in ascending order.

        It reads as little as the backend can: the backend makes the sums.
        """
