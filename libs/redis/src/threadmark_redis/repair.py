"""Comparison of the indexes of threads with the threads that exist, and their repair.

To find every thread, all keys of the database are read on every master, so this is for `verify`.
"""

from typing import NamedTuple

from threadmark.backends import Program
from threadmark_redis.columns import (
    Head,
    as_head,
    from_bytes,
    is_live,
    measured,
    text_or_none,
    thread_outline,
    to_bytes,
)
from threadmark_redis.index import Indexed, Settings, index, unindex
from threadmark_redis.keys import SHARDS, IndexKeys, heads_pattern, index_keys, shard_of, thread_keys
from threadmark_redis.outbox import entry_of
from threadmark_redis.pending import name_pending, unnamed
from threadmark_redis.steps import Command, all_keys, commands

_CHUNK = 500

_HEAD = b"h"
"""The end of the key of a head."""

_ADVICE = "`verify(repair=True)` mends it"


class _Differences(NamedTuple):
    """The differences between the index and the threads."""

    unlisted: dict[str, Head]
    """Threads that some listing does not find."""
    left_over: list[str]
    """Ids in the index whose threads do not exist."""
    unnamed: dict[str, int]
    """Threads with something in their outbox that the index of those misses, with their first positions."""


def problems_of_index(settings: Settings) -> Program[list[tuple[str, str]]]:
    """Return the problems of the index, as (location, problem).

    Entries that are left over are no damage: listings skip them, and every thread that expires leaves one behind.
    """
    found = yield from _differences(settings)
    lacking = {
        "are in no listing": len(found.unlisted),
        "have changes that are to be copied to another database, and are not listed there": len(found.unnamed),
    }
    return [
        ("the index of threads", f"{number} threads {what}: {_ADVICE}") for what, number in lacking.items() if number
    ]


def mend_index(settings: Settings) -> Program[None]:
    """Bring the index up to date."""
    found = yield from _differences(settings)
    for thread_id, head in found.unlisted.items():
        row, updated = thread_outline(thread_id, head)
        yield from index(settings, thread_id, Indexed(row.created_at, updated, row.owner, row.expires_at))
    for thread_id in found.left_over:
        yield from _take_out(settings, thread_id)
    for thread_id, position in found.unnamed.items():
        yield from name_pending(settings, thread_id, position)


def _differences(settings: Settings) -> Program[_Differences]:
    ids, owned, expiring = yield from _indexed(settings)
    heads, firsts = yield from _stored(settings)  # read last, so that a new thread is not left over
    unlisted = {}
    for name, head in heads.items():
        member, owner = to_bytes(name), head.get(b"o")
        is_owned = owner is None or measured(owner) + member in owned
        if member not in ids or not is_owned or (b"x" in head and member not in expiring):
            unlisted[name] = head
    known = {to_bytes(name) for name in heads}
    return _Differences(
        unlisted,
        sorted(from_bytes(member) for member in ids - known),
        (yield from unnamed(settings, firsts)),
    )


def _indexed(settings: Settings) -> Program[tuple[set[bytes], set[bytes], set[bytes]]]:
    """Return the ids that every listing has, those by owner, and those that expire."""
    ids: set[bytes] = set()
    owned: set[bytes] = set()
    expiring: set[bytes] = set()
    for shard in range(SHARDS):
        asked: list[Command] = [(b"ZRANGE", key, 0, -1) for key in index_keys(settings.prefix, shard)]
        by_id, by_creation, by_update, by_owner, by_expiry = yield from commands(asked)
        ids |= set(by_id).intersection(by_creation, by_update)
        owned.update(by_owner)
        expiring.update(by_expiry)
    return ids, owned, expiring


def _stored(settings: Settings) -> Program[tuple[dict[str, Head], dict[str, int]]]:
    """Return the heads of all live threads, and the first positions of threads with something in their outbox."""
    keys = yield from all_keys(heads_pattern(settings.prefix))
    outboxes = {key[:-1] + _HEAD: key for key in keys if not key.endswith(_HEAD)}
    heads: dict[str, Head] = {}
    firsts: dict[str, int] = {}
    for start in range(0, len(keys), _CHUNK):
        some = [key for key in keys[start : start + _CHUNK] if key.endswith(_HEAD)]
        replies = yield from commands([(b"HGETALL", key) for key in some])
        with_entries = [key for key in some if key in outboxes]
        members = yield from commands([(b"ZRANGE", outboxes[key], 0, 0) for key in with_entries])
        found = dict(zip(with_entries, members, strict=True))
        for key, reply in zip(some, replies, strict=True):
            head = as_head(reply)
            if b"i" in head:
                name = from_bytes(head[b"i"])
                if is_live(head):
                    heads[name] = head
                firsts.update((name, entry_of(name, member).position) for member in found.get(key, ()))
    return heads, firsts


def _take_out(settings: Settings, thread_id: str) -> Program[None]:
    """Take out a thread that is not there, unless it is created at this moment."""
    keys: IndexKeys = index_keys(settings.prefix, shard_of(thread_id))
    head = thread_keys(settings.prefix, thread_id).head
    (seen,) = yield from commands([(b"ZSCORE", keys.updated, to_bytes(thread_id))])
    (live,) = yield from commands([(b"HGET", head, b"v")])
    if live != b"1" and seen is not None:
        member = to_bytes(thread_id)
        (owners,) = yield from commands([(b"ZRANGE", keys.owners, 0, -1)])
        names = [each for each in owners if each.endswith(member) and each == measured(each[2 : -len(member)]) + member]
        owner = text_or_none(names[0][2 : -len(member)]) if names else None
        yield from unindex(settings, thread_id, owner, int(float(seen)))
