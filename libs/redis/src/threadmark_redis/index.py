"""The index of threads: what listings go along. It is in other slots than the threads, and best effort.

A thread gets into the index when it begins, and moves there when it was updated more than a few seconds after its
recorded place. So most puts do not touch it, and listings by update look at a few threads more than they return: a
thread is never further behind its real place than that. Every entry that a listing comes upon is compared with the
thread itself, so an entry that was left behind shows nothing that is not there.
"""

from typing import NamedTuple

from threadmark.program import Program
from threadmark_redis.columns import pack, to_bytes
from threadmark_redis.keys import index_keys, shard_of
from threadmark_redis.steps import run, script

STALE = 2_000_000
"""Microseconds by which the place of a thread in the index may be behind."""

INDEX_SET = script("index_set", "thread", "index")


class Settings(NamedTuple):
    """What a store has to know of its database."""

    prefix: bytes
    clustered: bool
    """Whether the keys of one script must belong to one slot."""
    grace: int
    """For how many milliseconds a thread that has expired stays to be found."""


class Indexed(NamedTuple):
    """What the index knows of a thread. Times are microseconds since 1970."""

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
    """Take a thread out. Where `seen` is given, only if that is its recorded time of update still."""
    columns = (to_bytes(thread_id), None, None, None, None, _bytes(owner), seen)
    yield from run(INDEX_SET, index_keys(settings.prefix, shard_of(thread_id)), [pack(columns)])


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else to_bytes(text)
