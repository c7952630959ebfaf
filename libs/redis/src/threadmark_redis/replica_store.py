"""The store operations for replication."""

from collections.abc import Sequence
from typing import Any

from threadmark.backends import LONG_MARK, Copied, Entry, Program, Replica, RowMarks, Summary, Waiting
from threadmark_redis.columns import (
    copied_of,
    copied_value,
    from_bytes,
    from_packed_id,
    int_or_none,
    parts_of,
    state_in,
    to_bytes,
)
from threadmark_redis.keys import term_key, thread_keys
from threadmark_redis.listing import live_ids
from threadmark_redis.outbox import entries_of_thread, known_term, last_positions, read_replica, replica_of
from threadmark_redis.pending import first_entries, settle_stored, waiting
from threadmark_redis.reading import Reader, evicted_error
from threadmark_redis.steps import Command, commands, run, run_each, script
from threadmark_redis.thread_store import RedisThreadStore
from threadmark_redis.transactions import the_work
from threadmark_redis.writes import referred

SET_REPLICA = script("replica", "thread", "outbox")

SUMMARY = script("summary", "thread", "groups", "fields")

MARKS = script("marks", "thread", "groups", "fields")

_CHUNK = 500

_SUMMARIES = 100
"""The number of threads that one pipeline sums up: all rows of each are read."""


class RedisReplicaStore(RedisThreadStore):
    """The operations for replication.

    The answers of `outbox` about all threads, of `waiting`, `marks` and `summaries` do not include the transaction's
    own changes. For a thread that is not locked, `settle` removes at once.
    """

    def replica(self) -> Program[Replica]:
        return (yield from read_replica(term_key(self.settings.prefix)))

    def set_replica(self, replica: Replica) -> Program[Replica]:
        work = yield from the_work()
        args = replica.term, to_bytes(replica.body)
        there = replica_of((yield from run(SET_REPLICA, (term_key(self.settings.prefix),), args)))
        work.term = there.term
        return there

    def record(self, thread_id: str, body: bytes, term: int) -> Program[int | None]:
        reader = yield from self.reader(thread_id)
        if (yield from known_term(reader.replica_keys)) > term:
            return None
        locked = yield from reader.lock()
        if locked.is_torn:
            raise evicted_error(thread_id)
        position, _ = locked.record(body)
        return position

    def outbox(self, thread_id: str | None, limit: int) -> Program[list[Entry]]:
        if thread_id is None:
            return (yield from first_entries(self.settings, limit))
        return (yield from entries_of_thread((yield from self.reader(thread_id)), limit))

    def waiting(self) -> Program[Waiting]:
        return (yield from waiting(self.settings))

    def settle(self, thread_id: str, position: int) -> Program[None]:
        locked = (yield from self.reader(thread_id)).locked
        if locked is None:
            yield from settle_stored(self.settings, thread_id, position)
        else:
            locked.settle(position)

    def positions(self, thread_ids: Sequence[str]) -> Program[dict[str, int]]:
        found: dict[str, int] = {}
        names = list(dict.fromkeys(thread_ids))
        work = yield from the_work()
        for start in range(0, len(names), _CHUNK):
            some = names[start : start + _CHUNK]
            positions = yield from last_positions([Reader(self.settings.prefix, name, work) for name in some])
            found.update((name, position) for name, position in zip(some, positions, strict=True) if position)
        return found

    def copied(self, thread_ids: Sequence[str]) -> Program[dict[str, Copied]]:
        work = yield from the_work()
        found: dict[str, Copied] = {}
        names = list(dict.fromkeys(thread_ids))
        for start in range(0, len(names), _CHUNK):
            some = names[start : start + _CHUNK]
            asked: list[Command] = [(b"HGET", thread_keys(self.settings.prefix, name).head, b"f") for name in some]
            replies = yield from commands(asked)
            for name, value in zip(some, replies, strict=True):
                locked = work.locked.get(name)
                copied = copied_of({b"f": value} if locked is None else locked.head)
                if copied is not None:
                    found[name] = copied
        return found

    def set_copied(self, thread_id: str, copied: Copied) -> Program[None]:
        locked = yield from (yield from self.reader(thread_id)).lock()
        if locked.is_torn:
            raise evicted_error(thread_id)
        locked.remember()
        locked.set_head({b"f": copied_value(copied)})

    def marks(self, thread_id: str) -> Program[RowMarks]:
        reader = yield from self.reader(thread_id)
        torn, epoch, revision, *rows = yield from run(MARKS, reader.keys, (LONG_MARK,), writes=False)
        if torn:
            raise evicted_error(thread_id)
        reader.work.see(thread_id, state_in(epoch, revision))
        checkpoints, writes, segments = rows
        ranks = {}
        for member, own_id, mark in _in_groups(checkpoints, 3):
            ns, rank = parts_of(member)
            ranks[ns, rank if own_id is None else from_bytes(own_id)] = rank, mark
        return RowMarks(
            ranks,
            {
                (*referred(field)[0], from_packed_id(task), idx): mark
                for field, task, idx, mark in _in_groups(writes, 4)
            },
            {key: (size, mark) for key, size, mark in _in_groups(segments, 3)},
        )

    def summaries(self, after: str, limit: int) -> Program[list[Summary]]:
        found: list[Summary] = []
        while len(found) < limit:
            names = yield from live_ids(self.settings, after, min(limit - len(found), _SUMMARIES))
            if not names:
                break
            calls = [(thread_keys(self.settings.prefix, name), ()) for name in names]
            replies = yield from run_each(SUMMARY, calls)
            for name, reply in zip(names, replies, strict=True):
                if reply[0] == b"torn":
                    raise evicted_error(name)
                if reply[0] == b"1":
                    found.append(_summary(name, reply))
            after = names[-1]
        return found


def _summary(thread_id: str, reply: Sequence[Any]) -> Summary:
    _, epoch, position, newest, checkpoints, writes, high, low = reply
    digest = high << 32 | low
    position = int_or_none(position) or 0
    return Summary(thread_id, int_or_none(epoch) or 0, position, from_bytes(newest), checkpoints, writes, digest)


def _in_groups(flat: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [flat[start : start + size] for start in range(0, len(flat), size)]
