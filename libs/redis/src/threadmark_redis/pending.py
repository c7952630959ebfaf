"""The index of threads that have something in their outbox.

It is one sorted set: the ids of the threads by a *place*, which is not after the position of their first entry. On one
server scripts keep it exact. In a cluster it is in another slot than the threads, and may name some that have nothing:
those are removed when a call meets them a minute after their place, because a change that has announced itself may
still be running.
"""

from collections.abc import Mapping, Sequence

from threadmark.backends import Entry, Program, Waiting, now
from threadmark_redis.columns import from_bytes, to_bytes
from threadmark_redis.index import Settings
from threadmark_redis.keys import pending_key, replica_keys, thread_keys
from threadmark_redis.outbox import entry_of
from threadmark_redis.steps import Command, commands, run, script
from threadmark_redis.walk import Walk

GRACE = 60_000_000
"""Microseconds for which a thread stays named that has nothing in its outbox."""

SETTLED = script("settled", "thread", "outbox")

TIDY = script("tidy", "thread")

PLACE = script("place")

_FIRST_BATCH = 16

_CHUNK = 500


def first_entries(settings: Settings, limit: int) -> Program[list[Entry]]:
    """Return the first entries of all threads, by ascending (position, thread_id)."""
    walk = _walk(settings)
    found: list[Entry] = []
    size = _FIRST_BATCH
    while True:
        batch = yield from walk.next_batch(size)
        last = found[limit - 1].position if len(found) >= limit else None
        if not batch or (last is not None and batch[0][0] > last):
            return found
        most = b"+inf" if last is None else last
        outboxes = _outboxes(settings, batch)
        asked: list[Command] = [(b"ZRANGEBYSCORE", key, b"-inf", most, b"LIMIT", 0, limit) for key in outboxes]
        replies = yield from commands(asked)
        if last is None:
            yield from _tidy(settings, batch, replies)
        for (_, name), members in zip(batch, replies, strict=True):
            found += [entry_of(from_bytes(name), member) for member in members]
        found = sorted(found, key=lambda entry: (entry.position, entry.thread_id))[:limit]
        size = min(size * 2, _CHUNK)


def waiting(settings: Settings) -> Program[Waiting]:
    """Return how much is in all outboxes, by two commands for each named thread."""
    walk = _walk(settings)
    entries = 0
    firsts: list[int] = []
    while batch := (yield from walk.next_batch(_CHUNK)):
        outboxes = _outboxes(settings, batch)
        asked: list[Command] = [command for key in outboxes for command in ((b"ZCARD", key), (b"ZRANGE", key, 0, 0))]
        replies = yield from commands(asked)
        yield from _tidy(settings, batch, replies[1::2])
        entries += sum(replies[::2])
        firsts += [entry_of("", member).position for members in replies[1::2] for member in members]
    return Waiting(entries, min(firsts, default=0))


def settle_stored(settings: Settings, thread_id: str, position: int) -> Program[None]:
    """Remove entries of a thread, at once."""
    head, keys = thread_keys(settings.prefix, thread_id).head, replica_keys(settings.prefix, thread_id)
    own = (head, keys.outbox)
    every = own if settings.clustered else (*own, keys.pending)
    first, moment = yield from run(SETTLED, every, (position, to_bytes(thread_id)))
    if settings.clustered:
        # A running change that has announced itself before this finds the thread named for a while.
        yield from run(PLACE, (keys.pending,), (b"XX", first or moment, to_bytes(thread_id)))


def unnamed(settings: Settings, firsts: Mapping[str, int]) -> Program[dict[str, int]]:
    """Return those of these threads that are not named, although they have had their first entry all the time."""
    names = list(firsts)
    found: dict[str, int] = {}
    for start in range(0, len(names), _CHUNK):
        some = names[start : start + _CHUNK]
        scores = yield from commands([(b"ZSCORE", pending_key(settings.prefix), to_bytes(name)) for name in some])
        left = [name for name, place in zip(some, scores, strict=True) if place is None]
        outboxes = [(replica_keys(settings.prefix, name).outbox, firsts[name]) for name in left]
        counts = yield from commands([(b"ZCOUNT", key, position, position) for key, position in outboxes])
        found.update((name, firsts[name]) for name, count in zip(left, counts, strict=True) if count)
    return found


def name_pending(settings: Settings, thread_id: str, position: int) -> Program[None]:
    """Name a thread whose first entry has this position, if it is not named."""
    yield from run(PLACE, (pending_key(settings.prefix),), (b"NX", position, to_bytes(thread_id)))


def _walk(settings: Settings) -> Walk:
    return Walk([pending_key(settings.prefix)], by_score=True, descending=False)


def _outboxes(settings: Settings, batch: Sequence[tuple[int, bytes]]) -> list[bytes]:
    return [replica_keys(settings.prefix, from_bytes(name)).outbox for _, name in batch]


def _tidy(settings: Settings, batch: Sequence[tuple[int, bytes]], firsts: Sequence[list[bytes]]) -> Program[None]:
    """Remove threads that have had nothing for a while, and move those whose place is long before their first entry."""
    old = now() - GRACE
    args: list[bytes | int] = []
    for (place, name), members in zip(batch, firsts, strict=True):
        first = entry_of("", members[0]).position if members else None
        if first is None and place < old:
            args += (name, place, b"")
        elif first is not None and first - place > GRACE:
            args += (name, place, first)
    if args:
        yield from run(TIDY, (pending_key(settings.prefix),), (GRACE, *args))
