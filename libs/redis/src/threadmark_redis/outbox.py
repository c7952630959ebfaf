"""A thread's data for replication, as the running transaction sees it, and the term of the database."""

from collections.abc import Sequence
from typing import Any

from threadmark.backends import Entry, Program, Replica
from threadmark_redis.columns import from_bytes, int_or_none, state_in
from threadmark_redis.keys import ReplicaKeys
from threadmark_redis.reading import Reader
from threadmark_redis.steps import Command, commands
from threadmark_redis.transactions import ChangedError, the_work

POSITION_DIGITS = 16
"""A member of an outbox begins with its position in so many digits."""


def read_replica(term_key: bytes) -> Program[Replica]:
    """Return the state of the pair. The commit of this transaction is refused if the term was raised since."""
    work = yield from the_work()
    (stored,) = yield from commands([(b"HMGET", term_key, b"t", b"b")])
    replica = replica_of(stored)
    work.term = replica.term if work.term is None else min(work.term, replica.term)
    return replica


def known_term(keys: ReplicaKeys) -> Program[int]:
    """Return the term as the transaction has read it."""
    work = yield from the_work()
    if work.term is None:
        yield from read_replica(keys.term)
    return work.term or 0


def replica_of(stored: Sequence[bytes | None]) -> Replica:
    """Return the state of the pair from its two fields."""
    return Replica(int_or_none(stored[0]) or 0, from_bytes(stored[1] or b""))


def entries_of_thread(reader: Reader, limit: int) -> Program[list[Entry]]:
    """Return the first entries of a thread."""
    locked = reader.locked
    least = b"-inf" if locked is None or locked.settled is None else b"(%d" % locked.settled
    state, members = yield from commands(
        [_state_of(reader), (b"ZRANGEBYSCORE", reader.replica_keys.outbox, least, b"+inf", b"LIMIT", 0, limit)]
    )
    _see(reader, state)
    found = [entry_of(reader.thread_id, member) for member in members]
    if locked is not None:
        found += [Entry(reader.thread_id, *each) for each in locked.entries]
    return found[:limit]


def last_positions(readers: Sequence[Reader]) -> Program[list[int]]:
    """Return the last position of each thread, 0 for none.

    The first answer about a thread that is not locked is its position when the transaction first read it: data that was
    read is never older than that. Later answers are the positions at their own time.
    """
    states = yield from commands([_state_of(each) for each in readers])
    positions = []
    for reader, state in zip(readers, states, strict=True):
        position = _see(reader, state)
        if reader.locked is not None:
            position = int_or_none(reader.locked.head.get(b"p")) or 0
        else:
            seen = reader.work.seen[reader.thread_id]
            if seen.position is None and seen.first != seen.last:
                raise ChangedError
            if not seen.is_announced:
                position = position if seen.position is None else seen.position
                seen.is_announced = True
        positions.append(position)
    return positions


def entry_of(thread_id: str, member: bytes) -> Entry:
    """Return an entry from the member of an outbox."""
    return Entry(thread_id, int_or_none(member[:POSITION_DIGITS]) or 0, member[POSITION_DIGITS:])


def _state_of(reader: Reader) -> Command:
    return (b"HMGET", reader.keys.head, b"e", b"r", b"p")


def _see(reader: Reader, state: Sequence[Any]) -> int:
    """Note the state of a thread. Returns its position."""
    epoch, revision, last = state
    position = int_or_none(last) or 0
    if reader.locked is None:
        reader.work.see(reader.thread_id, state_in(epoch, revision), position)
    return position
