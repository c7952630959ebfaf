"""What a change of a replicated thread does in other slots of a cluster, before and after it.

On one server the script of the change does this itself. In a cluster the term, and the indexes of pending and of copied
threads, are elsewhere. A thread is named in an index before it has anything there, so that a crash in between hides
nothing. The term is looked at before the change and again after it: as it only grows, a change that is acknowledged was
made while it was not raised.
"""

from collections.abc import Sequence

from threadmark.program import Program
from threadmark_redis.columns import to_bytes
from threadmark_redis.keys import ReplicaKeys
from threadmark_redis.steps import run, script

ANNOUNCE = script("announce", "thread", "outbox")

COME = script("come")

GONE = script("gone")


def announce(keys: ReplicaKeys, term: int | None, thread_ids: Sequence[str]) -> Program[bool]:
    """Name threads that will have, or have, something in their outbox. Returns whether the term allows a change."""
    given = b"" if term is None else term
    args = (given, *map(to_bytes, thread_ids))
    allowed = yield from run(ANNOUNCE, (keys.term, keys.pending), args, writes=bool(thread_ids))
    return bool(allowed)


def announce_copied(keys: ReplicaKeys, thread_id: str) -> Program[None]:
    """Name a thread that will have come from another database."""
    yield from run(COME, (keys.copied,), (to_bytes(thread_id),))


def unannounce_copied(keys: ReplicaKeys, thread_id: str) -> Program[None]:
    """Take out a thread that never came, or is forgotten."""
    yield from run(GONE, (keys.copied,), (to_bytes(thread_id),))
