"""Reading the hashes of one thread, with the running transaction's own changes to it.

A read of a thread that is not locked includes its state at the start and at the end of the same pipeline, and which of
its keys exist.
"""

from collections.abc import Sequence
from typing import Any

from threadmark.backends import CorruptDataError, Program
from threadmark_redis import formats
from threadmark_redis.columns import as_head, int_or_none, is_member, state_in, written_for
from threadmark_redis.keys import replica_keys, thread_keys
from threadmark_redis.locked import Locked, Table
from threadmark_redis.steps import Command, commands, run, script
from threadmark_redis.transactions import ChangedError, Work, state_of

OPEN = script("open", "thread")

_CHUNK = 1000
"""The number of fields that one command asks for."""

NOTHING_THERE = b"0000"

_FORM = b"format"
"""The field of the head that says which format a process must know to change the thread. It is no other with a bit
changed.
"""

_OF_SCRIPTS = (b"r", b"k", b"c", b"w")
"""Fields of the head that scripts set."""


EVICTED = (
    "some of its keys are gone, and others are there: the server has evicted them (maxmemory-policy must be "
    "noeviction), or something else has deleted them. `delete_thread` removes the rest"
)


def evicted_error(thread_id: str) -> CorruptDataError:
    """Return the error about a thread of which the server has evicted a part."""
    return CorruptDataError(EVICTED, f"thread {thread_id!r}")


class Reader:
    """The hashes of one thread as the running transaction sees them."""

    def __init__(self, prefix: bytes, thread_id: str, work: Work) -> None:
        self.thread_id = thread_id
        self.keys = thread_keys(prefix, thread_id)
        self.replica_keys = replica_keys(prefix, thread_id)
        self.work = work

    @property
    def locked(self) -> Locked | None:
        """The thread if the transaction has locked it."""
        return self.work.locked.get(self.thread_id)

    def look(self, asked: Sequence[Command]) -> Program[list[Any]]:
        """Send commands that read the thread. Returns their replies. Raises CorruptDataError if some keys are gone."""
        locked = self.locked
        if locked is not None:
            if locked.is_torn:
                raise evicted_error(self.thread_id)
            return (yield from commands(asked))
        state = (b"HMGET", self.keys.head, b"e", b"r", b"k", b"p")
        there: list[Command] = [(b"EXISTS", key) for key in self.keys.companions]
        replies = yield from commands([state, *there, *asked, state])
        before, after = state_in(*replies[0][:2]), state_in(*replies[-1][:2])
        self.work.see(self.thread_id, before, int_or_none(replies[0][3]) or 0)
        self.work.see(self.thread_id, after)
        mask = b"".join(b"%d" % each for each in replies[1 : 1 + len(there)])
        if mask != (replies[0][2] or NOTHING_THERE):
            if before != after:
                raise ChangedError
            raise evicted_error(self.thread_id)
        return replies[1 + len(there) : -1]

    def lock(self) -> Program[Locked]:
        """Read the head in order to change the thread."""
        if self.locked is not None:
            return self.locked
        hold = self.work.hold
        torn, moment, fields = yield from run(OPEN, self.keys, (hold,), writes=hold > 0)
        head = as_head(fields)
        if (form := head.get(_FORM, b"")).isdigit() and int(form) > formats.CURRENT:
            raise formats.later_form_error(self.thread_id)
        self.work.see(self.thread_id, state_in(head.get(b"e"), head.get(b"r")), int_or_none(head.get(b"p")) or 0)
        state = state_of(head.get(b"e"), head.get(b"r"))
        stored = {name: value for name, value in head.items() if name not in _OF_SCRIPTS}
        keys = self.keys, self.replica_keys
        locked = Locked(self.thread_id, *keys, state, moment, stored, dict(stored), is_torn=bool(torn))
        self.work.locked[self.thread_id] = locked
        return locked

    def head(self) -> Program[dict[bytes, bytes]]:
        """Return the fields of the head."""
        locked = self.locked
        if locked is not None:
            return locked.head
        (fields,) = yield from self.look([(b"HGETALL", self.keys.head)])
        return as_head(fields)

    def checkpoints(self, names: Sequence[bytes]) -> Program[list[bytes | None]]:
        """Return these fields of the checkpoints."""
        locked = self.locked
        return (yield from self._fields(self.keys.checkpoints, names, locked, locked.checkpoints if locked else None))

    def writes(self, names: Sequence[bytes]) -> Program[list[bytes | None]]:
        """Return these fields of the writes."""
        locked = self.locked
        return (yield from self._fields(self.keys.writes, names, locked, locked.writes if locked else None))

    def written(self, references: Sequence[bytes]) -> Program[list[bytes | None]]:
        """Return these fields of checkpoints' writes; an empty one for a field that was lost."""
        marks = [written_for(reference) for reference in references]
        if self.locked is not None:
            found, noted = (yield from self.writes(references)), (yield from self.checkpoints(marks))
        else:
            found, noted = [], []
            for start in range(0, len(references), _CHUNK):
                end = start + _CHUNK
                some, of_them = yield from self.look(
                    [
                        (b"HMGET", self.keys.writes, *references[start:end]),
                        (b"HMGET", self.keys.checkpoints, *marks[start:end]),
                    ]
                )
                found += some
                noted += of_them
        pairs = zip(found, noted, strict=True)
        return [b"" if value is None and note is not None else value for value, note in pairs]

    def segments(self, names: Sequence[bytes]) -> Program[list[bytes | None]]:
        """Return these segments."""
        locked = self.locked
        return (yield from self._fields(self.keys.segments, names, locked, locked.segments if locked else None))

    def checkpoint_names(self) -> Program[list[bytes]]:
        """Return the names of all fields of the checkpoints."""
        locked = self.locked
        return (yield from self._names(self.keys.checkpoints, locked, locked.checkpoints if locked else None))

    def write_names(self) -> Program[list[bytes]]:
        """Return the names of all fields of the writes."""
        locked = self.locked
        return (yield from self._names(self.keys.writes, locked, locked.writes if locked else None))

    def segment_names(self) -> Program[list[bytes]]:
        """Return the keys of all segments."""
        locked = self.locked
        return (yield from self._names(self.keys.segments, locked, locked.segments if locked else None))

    def has_segments(self, names: Sequence[bytes]) -> Program[bool]:
        """Return whether all of these segments exist."""
        locked = self.locked
        changes = locked.segments.changes if locked else {}
        stored = [name for name in names if name not in changes]
        if any(changes.get(name, b"") is None for name in names) or (stored and locked and locked.emptied):
            return False
        for start in range(0, len(stored), _CHUNK):
            asked: list[Command] = [(b"HEXISTS", self.keys.segments, name) for name in stored[start : start + _CHUNK]]
            if not all((yield from self.look(asked))):
                return False
        return True

    def segment_sizes(self) -> Program[dict[bytes, int]]:
        """Return the length of each segment."""
        names = yield from self.segment_names()
        locked = self.locked
        changes = locked.segments.changes if locked else {}
        sizes = {name: len(value) for name, value in changes.items() if value is not None}
        stored = [name for name in names if name not in sizes]
        for start in range(0, len(stored), _CHUNK):
            some = stored[start : start + _CHUNK]
            asked: list[Command] = [(b"HSTRLEN", self.keys.segments, name) for name in some]
            replies = yield from self.look(asked)
            sizes.update(zip(some, replies, strict=True))
        return sizes

    def members(self) -> Program[list[bytes]]:
        """Return the places of all checkpoints, in ascending order."""
        locked = self.locked
        stored: list[bytes] = []
        if locked is None or not locked.emptied:
            (stored,) = yield from self.look([(b"ZRANGE", self.keys.ranks, 0, -1)])
        if locked is None or not locked.checkpoints.changes:
            return stored
        members = set(stored)
        for name, value in locked.checkpoints.changes.items():
            if is_member(name):
                (members.discard if value is None else members.add)(name)
        return sorted(members)

    def _fields(
        self, key: bytes, names: Sequence[bytes], locked: Locked | None, table: Table | None
    ) -> Program[list[bytes | None]]:
        if locked is None or table is None:
            return (yield from self._stored(key, names))
        changes = table.changes
        unread = [] if locked.emptied else [name for name in names if name not in changes]
        found = dict(zip(unread, (yield from self._stored(key, unread)), strict=True))
        return [changes[name] if name in changes else found.get(name) for name in names]

    def _stored(self, key: bytes, names: Sequence[bytes]) -> Program[list[bytes | None]]:
        if not names:
            return []
        chunks = [names[start : start + _CHUNK] for start in range(0, len(names), _CHUNK)]
        replies = yield from self.look([(b"HMGET", key, *some) for some in chunks])
        return [value for reply in replies for value in reply]

    def _names(self, key: bytes, locked: Locked | None, table: Table | None) -> Program[list[bytes]]:
        names: list[bytes] = []
        if locked is None or not locked.emptied:
            (names,) = yield from self.look([(b"HKEYS", key)])
        if table is None or not table.changes:
            return names
        left = dict.fromkeys(names)
        for name, value in table.changes.items():
            if value is None:
                left.pop(name, None)
            else:
                left[name] = None
        return list(left)
