"""The interface of a cache: bytes by thread key and entry key. `caching.memory` and `threadmark_redis` implement it.

A *thread key* is sixteen bytes that stand for a thread of a database: a digest of the database's name and the thread's
id. A cache need not know what an entry is. A reader proves that its thread stored an entry under its key, and goes to
the database if there is none. A cache has to keep one promise: bytes that were read before a thread was
forgotten never come back. So each thread has a *token*, which a reader gets before it asks the database, and gives back
with the bytes that it read there. Forgetting a thread ends its token.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

from threadmark.errors import CorruptDataError, MissingDependencyError
from threadmark.program import Flow, Transaction
from threadmark.saver.kit import announced_size, expand, pack_plain, segment_key
from threadmark.sealing import Keyring, cipher_of, opens_segment


class CacheRequest(NamedTuple):
    """A request for entries of one thread."""

    epoch: int
    """The thread's epoch, from its database. Entries from an earlier epoch are removed, because the thread has lost
    rows since; a reader with an earlier epoch gets no token."""
    keys: Sequence[bytes]


class Got(NamedTuple):
    """The entries that one thread has."""

    token: bytes
    """Give it back with the entries that you add to the thread later. It is empty if nothing may be added."""
    entries: Mapping[bytes, bytes]
    """The requested entries that are there."""


class Filling(NamedTuple):
    """Entries to add to one thread."""

    token: bytes
    entries: Mapping[bytes, bytes]


@runtime_checkable
class Cache(Protocol):
    """Keeps bytes for a while. Every method has a twin for asyncio.

    A call that fails, or takes longer than `within` seconds, raises an error, and the caller goes on without the cache.
    Its text (`__str__`) names the cache for log lines, without a password.
    """

    def get(self, requests: Mapping[bytes, CacheRequest], ttl: float, within: float) -> dict[bytes, Got]:
        """Return the entries that these threads have. A new thread is removed after `ttl` seconds."""

    async def aget(self, requests: Mapping[bytes, CacheRequest], ttl: float, within: float) -> dict[bytes, Got]:
        """Like `get`, for asyncio."""

    def set(self, fillings: Mapping[bytes, Filling], within: float) -> None:
        """Add entries to threads. A thread whose token has changed stays as it is."""

    async def aset(self, fillings: Mapping[bytes, Filling], within: float) -> None:
        """Like `set`, for asyncio."""

    def forget(self, thread_keys: Collection[bytes], within: float) -> None:
        """Remove all entries of these threads, and end their tokens."""

    async def aforget(self, thread_keys: Collection[bytes], within: float) -> None:
        """Like `forget`, for asyncio."""

    def close(self) -> None:
        """Close its connections."""

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""


T = TypeVar("T")


class CacheCall(NamedTuple):
    """A method of `Cache` with its arguments. The answer is its result or its error."""

    method: Literal["get", "set", "forget"]
    args: tuple[Any, ...]

    def on(self, cache: Cache) -> Any:
        """Call it."""
        return getattr(cache, self.method)(*self.args)

    async def aon(self, cache: Cache) -> Any:
        """Like `on`, for asyncio."""
        return await getattr(cache, f"a{self.method}")(*self.args)


CachedFlow = Flow[Transaction[Any] | CacheCall, T]


def on_database(transaction: Transaction[T]) -> CachedFlow[T]:
    """Run a transaction on the database. Returns its result."""
    result: T = yield transaction
    return result


_SIZE = 16
_PURPOSE = b"threadmark.cache"
"""BLAKE2b's `person` field, so that no other use of a keyring's secret gives the same digests."""


class CacheKeys:
    """The thread keys of one database, as savers with one keyring see it.

    With a keyring, its secret is the key of the digest. Then a thread key does not reveal its thread, and savers with
    another keyring, or with none, have other thread keys.
    """

    def __init__(self, name: str, keyring: Keyring | None) -> None:
        self._name = name
        self._secret = b"" if keyring is None else cipher_of(keyring).digest_key

    def key(self, thread_id: str) -> bytes:
        """Return the key of a thread."""
        what = pack_plain([self._name, thread_id])
        return blake2b(what, digest_size=_SIZE, key=self._secret, person=_PURPOSE).digest()


LARGEST = 16 * 1024 * 1024
"""Larger segments are not cached: to expand a forged one could otherwise take 128 times its length in memory."""

SegmentProof = Callable[[str, bytes, bytes], bool]
"""Takes a thread's id, a key and bytes. Returns whether they are the segment of that thread with that key."""


def segment_proof(keyring: Keyring | None) -> SegmentProof:
    """Return the proof for entries of a saver with this keyring.

    The key of a segment that is not sealed is a digest of its bytes. A sealed segment opens only in its thread and
    under its key. Neither proof relies on the cache, so no entry can be forged, cut short or moved.
    """
    return _is_named_by_digest if keyring is None else partial(opens_segment, cipher_of(keyring))


def proven(proof: SegmentProof, thread_id: str, entries: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return those entries that are proven."""
    return {key: data for key, data in entries.items() if proof(thread_id, key, data)}


def _is_named_by_digest(_: str, key: bytes, data: bytes) -> bool:
    try:
        size = announced_size(data)
        return size <= LARGEST and segment_key(expand(data, size)) == key
    except (CorruptDataError, MissingDependencyError):  # if the database has the same bytes, it raises this
        return False
