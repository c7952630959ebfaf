"""States that are remembered between calls: in this process, and in a cache that several processes share.

The key of an entry is a digest of everything in the state, never its thread alone. A cache does not decide which state
is the newest: the store is asked each time. So an entry can be evicted, but never outdated.
"""

import logging
import time
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import msgpack

from threadmark.errors import ConfigError, CorruptDataError, short_repr
from threadmark.interfaces.shapes import Conversation
from threadmark.model import Duration
from threadmark.program import Flow, Transaction
from threadmark.runtime.logs import log
from threadmark.saver.kit import BoundedCache, Header, checked_duration, proof

_LEFT_OUT = 30.0
"""Seconds for which a shared cache is not asked after it failed."""


@runtime_checkable
class SharedCache(Protocol):
    """A cache that several processes share, such as one on Redis. Its answers are verified, and may be missing.

    The blocking methods serve `Conversations.get_state` and similar methods, the others their `a` twins.
    """

    def get(self, key: str) -> bytes | None:
        """Return the bytes under a key, or None if they are gone."""

    def set(self, key: str, data: bytes, ttl: float) -> None:
        """Keep bytes for at most this many seconds."""

    def delete(self, key: str) -> None:
        """Forget the bytes under a key."""

    async def aget(self, key: str) -> bytes | None:
        """Like `get`, for asyncio."""

    async def aset(self, key: str, data: bytes, ttl: float) -> None:
        """Like `set`, for asyncio."""

    async def adelete(self, key: str) -> None:
        """Like `delete`, for asyncio."""


class CacheCall(NamedTuple):
    """A call of a shared cache. If it fails, the answer is None."""

    method: str
    arguments: tuple[Any, ...]


class Sharing:
    """A shared cache that may fail. A failure costs speed and nothing else."""

    def __init__(self, cache: SharedCache | None) -> None:
        if cache is not None and not isinstance(cache, SharedCache):
            raise ConfigError(
                f"cache must have get, set and delete, and aget, aset and adelete: a {type(cache).__name__} has not"
            )
        self._cache = cache
        self._left_out_until = 0.0
        self._failing = False

    @property
    def is_there(self) -> bool:
        """Whether there is a cache and it is worth asking now."""
        return self._cache is not None and time.monotonic() >= self._left_out_until

    def call(self, asked: CacheCall) -> Any:
        """Call the cache. Returns its answer, or None if it fails."""
        try:
            answer = getattr(self._cache, asked.method)(*asked.arguments)
        except Exception as error:  # noqa: BLE001 - whatever it raises is no reason to fail
            return self._failed(error)
        self._failing = False
        return answer

    async def acall(self, asked: CacheCall) -> Any:
        """Like `call`, for asyncio."""
        try:
            answer = await getattr(self._cache, f"a{asked.method}")(*asked.arguments)
        except Exception as error:  # noqa: BLE001 - see above
            return self._failed(error)
        self._failing = False
        return answer

    def _failed(self, error: Exception) -> None:
        self._left_out_until = time.monotonic() + _LEFT_OUT
        if not self._failing:
            self._failing = True
            # Only the error's class: its text may quote the state.
            log.write(
                logging.WARNING,
                "the shared cache of states failed (%s): states are read from the database until it answers again",
                type(error).__name__,
            )


class StateCache:
    """Encoded values of states, bounded in bytes, entries and time. The least recently used are evicted first."""

    def __init__(self, most_bytes: int, most_entries: int, ttl: Duration) -> None:
        for number, name in ((most_bytes, "cache_bytes"), (most_entries, "cache_entries")):
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise ConfigError(f"{name} must be a number from 0 on, not {short_repr(number)}")
        self.ttl = checked_duration(ttl, "cache_ttl").total_seconds()
        self._entries = BoundedCache(most_bytes, most_entries=most_entries)

    def get(self, name: str) -> Mapping[bytes, bytes] | None:
        """Return the values of a state by their digests."""
        values, ends = self._entries.get(name) or (None, 0.0)
        if values is not None and ends <= time.monotonic():
            self.delete(name)
            return None
        return values

    def set(self, name: str, values: Mapping[bytes, bytes]) -> None:
        """Keep the values of a state."""
        self._entries.set((name, (values, time.monotonic() + self.ttl), sum(map(len, values.values()))))

    def delete(self, name: str) -> None:
        """Forget a state."""
        self._entries.forget(name)


T = TypeVar("T")

CachedOperation = Flow[Transaction[Any] | CacheCall, T]
"""An operation that may also ask a shared cache, between two transactions."""

_PREFIX = "threadmark:state:"


class Caches:
    """The caches of conversations' states."""

    def __init__(self, local: StateCache, shared: Sharing) -> None:
        self.local = local
        self.shared = shared

    def get(self, conversation: Conversation, header: Header) -> CachedOperation[Mapping[bytes, bytes] | None]:
        """Return the proven values of the state with this header, or None if they are not remembered."""
        name = _name(conversation, header)
        values = self.local.get(name)
        if values is not None or not self.shared.is_there:
            return values
        data = yield CacheCall("get", (name,))
        values = _opened(conversation, name, data) if isinstance(data, bytes) else None
        if values is None or not _are_those_of(header, values):
            return None
        self.local.set(name, values)
        return values

    def set(self, conversation: Conversation, header: Header, values: Mapping[bytes, bytes]) -> CachedOperation[None]:
        """Remember the values of the state with this header."""
        name = _name(conversation, header)
        own = {value.digest: values[value.digest] for value in header.values.values() if value.digest}
        self.local.set(name, own)
        if self.shared.is_there:
            yield CacheCall("set", (name, _packed(conversation, name, own), self.local.ttl))

    def delete(self, conversation: Conversation, header: Header) -> CachedOperation[None]:
        """Forget the state with this header."""
        name = _name(conversation, header)
        self.local.delete(name)
        if self.shared.is_there:
            yield CacheCall("delete", (name,))


def _name(conversation: Conversation, header: Header) -> str:
    """Return the name of a state in caches: a digest of its thread, its owner, and the content of each channel.

    The header names a value by the digest of its bytes, or holds the value itself. With a keyring the digest is keyed,
    so that a state cannot be found out by guessing.
    """
    values = [(channel, each.tag, each.digest or each.packed) for channel, each in sorted(header.values.items())]
    about = (conversation.thread_id, conversation.context.threads.owner, values)
    packed: bytes = msgpack.packb(about, unicode_errors="surrogatepass")
    cipher = conversation.context.cipher
    return _PREFIX + blake2b(packed, digest_size=32, key=cipher.digest_key if cipher else b"").hexdigest()


def _are_those_of(header: Header, values: Mapping[Any, Any]) -> bool:
    """Return whether these are all values of the state, and every byte of them is as stored."""
    needed = {value.digest for value in header.values.values() if value.digest}
    return values.keys() == needed and all(
        type(data) is bytes and proof(data).digest == digest for digest, data in values.items()
    )


def _packed(conversation: Conversation, name: str, values: Mapping[bytes, bytes]) -> bytes:
    """Return the bytes for a shared cache: sealed if the rows of the database are."""
    packed: bytes = msgpack.packb(dict(values))
    cipher = conversation.context.cipher
    return packed if cipher is None else cipher.seal(packed, name.encode())


def _opened(conversation: Conversation, name: str, data: bytes) -> Mapping[bytes, bytes] | None:
    """Return the values that `_packed` packed, or None for anything else."""
    cipher = conversation.context.cipher
    try:
        plain = data if cipher is None else cipher.open(data, name.encode())
        values = msgpack.unpackb(plain, strict_map_key=False)
    except (CorruptDataError, ValueError, TypeError, MemoryError):
        return None
    return values if isinstance(values, dict) else None
