"""The changes of a transaction to a thread that it has locked, kept until the commit."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from threadmark_redis.columns import Head, int_or_none, pack, to_bytes
from threadmark_redis.keys import ReplicaKeys, ThreadKeys


@dataclass(slots=True)
class Table:
    """The changes to one hash of a thread: the new value of each field, None for a removed one."""

    changes: dict[bytes, bytes | None] = field(default_factory=dict)


@dataclass(slots=True)
class Locked:
    """A thread that a transaction has read in order to change it."""

    thread_id: str
    keys: ThreadKeys
    replica_keys: ReplicaKeys
    state: bytes
    """The epoch and the revision. The revision alone would not show that a thread expired and was created again."""
    moment: int
    """The time of the server's clock when the thread was locked."""
    stored: Head
    head: dict[bytes, bytes]
    """The head as the transaction leaves it."""
    checkpoints: Table = field(default_factory=Table)
    writes: Table = field(default_factory=Table)
    segments: Table = field(default_factory=Table)
    is_torn: bool = False
    """Whether some of its keys are missing: it cannot be read, but it can be dropped."""
    emptied: bool = False
    """Whether all stored data is removed first."""
    settled: int | None = None
    """The position up to which stored entries of its outbox are removed."""
    entries: list[tuple[int, bytes]] = field(default_factory=list)
    """New entries of its outbox: positions and bodies."""

    @property
    def is_changed(self) -> bool:
        """Whether there is anything to commit."""
        tables = (self.checkpoints, self.writes, self.segments)
        return (
            self.emptied
            or self.head != self.stored
            or self.settled is not None
            or any(table.changes for table in tables)
        )

    def set_head(self, fields: Mapping[bytes, bytes | None]) -> None:
        """Set fields of the head, and remove those that are None."""
        for name, value in fields.items():
            if value is None:
                self.head.pop(name, None)
            else:
                self.head[name] = value

    def empty(self) -> None:
        """Remove everything except the head."""
        self.emptied = True
        self.checkpoints, self.writes, self.segments = Table(), Table(), Table()

    def remember(self) -> None:
        """Create a head, of a thread that is not live, if there is none."""
        if not self.head:
            self.set_head({b"i": to_bytes(self.thread_id), b"e": b"%d" % self.moment, b"v": b"0"})

    def record(self, body: bytes) -> tuple[int, int]:
        """Add an entry to the outbox, as `record` of lua/outbox.lua does. Returns its position and the last one."""
        self.remember()
        previous = int_or_none(self.head.get(b"p")) or 0
        position = max(previous + 1, self.moment)
        self.set_head({b"p": b"%d" % position})
        self.entries.append((position, body))
        return position, previous

    def settle(self, position: int) -> None:
        """Remove entries from the outbox."""
        self.settled = max(self.settled or 0, position)
        self.entries = [entry for entry in self.entries if entry[0] > position]

    def columns(self) -> bytes:
        """Return the changes as lua/commit.lua takes them: only the state if there are none."""
        if not self.is_changed:
            return pack((self.state,))
        head: dict[bytes, bytes | None] = dict.fromkeys(self.stored)
        head.update(self.head)
        changed = {name: value for name, value in head.items() if self.stored.get(name) != value}
        members = {name: value for name, value in self.checkpoints.changes.items() if name[:1] != b"\xff"}
        return pack(
            (
                self.state,
                self.emptied,
                *_set_and_removed(changed),
                *_set_and_removed(self.checkpoints.changes),
                [name for name, value in members.items() if value is not None],
                [name for name, value in members.items() if value is None],
                *_set_and_removed(self.writes.changes),
                *_set_and_removed(self.segments.changes),
                self.settled,
                [part for entry in self.entries for part in entry],
                to_bytes(self.thread_id),
            )
        )


def _set_and_removed(changes: Mapping[bytes, bytes | None]) -> tuple[list[bytes], list[bytes]]:
    assigned = [part for name, value in changes.items() if value is not None for part in (name, value)]
    return assigned, [name for name, value in changes.items() if value is None]
