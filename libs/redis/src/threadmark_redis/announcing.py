"""The part of a replicated thread's change that happens in other slots of a cluster, before and after it.

On one server the script of the change does this itself. In a cluster the term and the index of pending threads are in
other slots. A thread is named in the index before it has anything in its outbox, so that a crash in between hides
nothing. The term is read before the change and again after it: as it only grows, a change that is acknowledged was made
before the term was raised.
"""

from collections.abc import Sequence

from threadmark.backends import Program
from threadmark_redis.columns import to_bytes
from threadmark_redis.keys import ReplicaKeys
from threadmark_redis.steps import run, script

ANNOUNCE = script("announce", "thread", "outbox")


def announce(keys: ReplicaKeys, term: int | None, thread_ids: Sequence[str]) -> Program[bool]:
    """Name threads that have, or will have, something in their outbox. Returns whether the term allows a change."""
    term_bytes = b"" if term is None else term
    args = (term_bytes, *map(to_bytes, thread_ids))
    allowed = yield from run(ANNOUNCE, (keys.term, keys.pending), args, writes=bool(thread_ids))
    return bool(allowed)
