"""Keys: the few hashes of a thread, and the index of threads.

All keys of a thread have the same hash tag, so that they are in one slot of a cluster, and one script writes them. The
tag is a digest of the thread's id: the id may have any length, and braces in it would break the tag.
"""

from base64 import urlsafe_b64encode
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from threadmark.backends import ConfigError, short_repr

PREFIX = "threadmark:"
"""The default beginning of every key."""

SHARDS = 16
"""How many parts the index of threads has, so that in a cluster no node has all of it."""

_DIGEST_SIZE = 15


class ThreadKeys(NamedTuple):
    """The keys of one thread, in the order in which every script has them; docs/reference/format.md describes each."""

    head: bytes
    checkpoints: bytes
    ranks: bytes
    writes: bytes
    segments: bytes

    @property
    def companions(self) -> tuple[bytes, ...]:
        """All keys except the head."""
        return self[1:]


class IndexKeys(NamedTuple):
    """The sorted sets of one shard of the index, in the order in which every script has them."""

    ids: bytes
    created: bytes
    updated: bytes
    owners: bytes
    expiries: bytes


class ReplicaKeys(NamedTuple):
    """The keys of a thread's data for replication, in the order of lua/add.lua.

    In a cluster only the outbox is in the thread's slot.
    """

    outbox: bytes
    term: bytes
    pending: bytes


@lru_cache(1024)
def thread_keys(prefix: bytes, thread_id: str) -> ThreadKeys:
    """Return the keys of a thread."""
    start = b"%b{%b}" % (prefix, urlsafe_b64encode(_digest(thread_id)))
    return ThreadKeys(start + b"h", start + b"c", start + b"r", start + b"w", start + b"s")


@lru_cache(1024)
def replica_keys(prefix: bytes, thread_id: str) -> ReplicaKeys:
    """Return the keys of a thread's data for replication."""
    outbox = thread_keys(prefix, thread_id).head[:-1] + b"e"
    return ReplicaKeys(outbox, term_key(prefix), pending_key(prefix))


def term_key(prefix: bytes) -> bytes:
    """Return the key of the state of the pair that the database belongs to."""
    return prefix + b"{replica}t"


def pending_key(prefix: bytes) -> bytes:
    """Return the key of the index of the threads that have something in their outbox."""
    return prefix + b"{replica}p"


def format_key(prefix: bytes) -> bytes:
    """Return the key of the database's format."""
    return prefix + b"{format}f"


def index_keys(prefix: bytes, shard: int) -> IndexKeys:
    """Return the keys of one shard of the index of threads."""
    start = b"%b{index-%d}" % (prefix, shard)
    return IndexKeys(start + b"i", start + b"c", start + b"u", start + b"o", start + b"x")


def shard_of(thread_id: str) -> int:
    """Return the shard of the index that a thread is in."""
    return _digest(thread_id)[0] % SHARDS


def heads_pattern(prefix: bytes) -> bytes:
    """Return the pattern of all threads' heads and outboxes."""
    return literally(prefix) + b"{*}[eh]"


def checked_prefix(prefix: Any) -> str:
    """Return the beginning of every key. Raises ConfigError if it is not allowed."""
    if not isinstance(prefix, str):
        raise ConfigError(f"prefix must be a string, not {short_repr(prefix)}")
    if "{" in prefix or "}" in prefix:
        raise ConfigError(
            f"prefix must have no braces, because what stands in them chooses a slot, not {short_repr(prefix)}"
        )
    return prefix


def literally(text: bytes) -> bytes:
    """Return the pattern that matches only this text."""
    return b"".join(b"\\" + bytes([each]) if each in b"*?[]^-\\" else bytes([each]) for each in text)


def _digest(thread_id: str) -> bytes:
    return blake2b(thread_id.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_SIZE).digest()
