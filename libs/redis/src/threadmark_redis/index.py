"""The index of threads, along which listings go. It is in other slots than the threads, and best effort.

A thread is added to the index when it is created, and moves there if it was updated more than a few seconds after its
recorded place. So most puts do not touch the index, and listings by update read a few more threads than they return,
because no thread is further behind its real place than that. A listing compares every entry that it reads with the
thread itself, so an outdated entry never shows a thread that is not there.
"""

from typing import NamedTuple

from threadmark.backends import Program
from threadmark_redis.columns import pack, to_bytes
from threadmark_redis.keys import index_keys, shard_of
from threadmark_redis.steps import run, script

STALE = 2_000_000
"""Microseconds by which a thread's place in the index may be behind."""

INDEX_SET = script("index_set", "thread", "index")


class Settings(NamedTuple):
    """The facts about its database that a store needs."""

    prefix: bytes
    clustered: bool
    """Whether the keys of one script must belong to one slot."""
    grace: int
    """For how many milliseconds a thread that has expired stays to be found."""


class Indexed(NamedTuple):
    """The index's data about a thread. Times are microseconds since 1970."""

    created_at: int
    updated_at: int
    owner: str | None
    expires_at: int | None


def index(settings: Settings, thread_id: str, entry: Indexed, owner_before: str | None = None) -> Program[None]:
    """Bring a thread to its place."""
    created, updated, owner, expires = entry
    columns = (to_bytes(thread_id), created, updated, _bytes(owner), expires, _bytes(owner_before))
    yield from run(INDEX_SET, index_keys(settings.prefix, shard_of(thread_id)), [pack(columns)])


def unindex(settings: Settings, thread_id: str, owner: str | None, seen: int | None = None) -> Program[None]:
    """Take a thread out. If `seen` is passed, only if that is still its recorded time of update."""
    columns = (to_bytes(thread_id), None, None, None, None, _bytes(owner), seen)
    yield from run(INDEX_SET, index_keys(settings.prefix, shard_of(thread_id)), [pack(columns)])


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else to_bytes(text)
