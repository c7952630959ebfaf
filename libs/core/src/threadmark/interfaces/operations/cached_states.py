"""The names and the stored form of states that are remembered, and what proves that bytes are those of a state."""

from collections.abc import Generator, Mapping
from hashlib import blake2b
from typing import Any, TypeVar

import msgpack

from threadmark.digests import proof
from threadmark.errors import CorruptDataError
from threadmark.header import Header
from threadmark.interfaces.conversation_config import Conversation
from threadmark.interfaces.state_cache import CacheCall, Sharing, StateCache
from threadmark.program import Transaction

T = TypeVar("T")

CachedOperation = Generator[Transaction[Any] | CacheCall, Any, T]
"""An operation that may also ask a shared cache, between two transactions."""

_PREFIX = "threadmark:state:"


class Caches:
    """What remembers the states of conversations."""

    def __init__(self, local: StateCache, shared: Sharing) -> None:
        self.local = local
        self.shared = shared

    def get(self, conversation: Conversation, header: Header) -> CachedOperation[Mapping[bytes, bytes] | None]:
        """Return the values of the state with this header, proven. Returns None if they are not remembered."""
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
    """The name of a state in caches: a digest of its thread, its owner, and what each channel holds.

    A value is named by the digest of its bytes, which is in the header, or is in the header itself. With a keyring the
    digest is keyed, so that nobody can find out by guessing what a state is.
    """
    values = [(channel, each.tag, each.digest or each.packed) for channel, each in sorted(header.values.items())]
    about = (conversation.thread_id, conversation.context.threads.owner, values)
    packed: bytes = msgpack.packb(about, unicode_errors="surrogatepass")
    keyring = conversation.context.keyring
    return _PREFIX + blake2b(packed, digest_size=32, key=keyring.digest_key if keyring else b"").hexdigest()


def _are_those_of(header: Header, values: Mapping[Any, Any]) -> bool:
    """Whether these are all values of the state, and every byte of them is what was stored."""
    wanted = {value.digest for value in header.values.values() if value.digest}
    return values.keys() == wanted and all(
        type(data) is bytes and proof(data).digest == digest for digest, data in values.items()
    )


def _packed(conversation: Conversation, name: str, values: Mapping[bytes, bytes]) -> bytes:
    """What a shared cache keeps: sealed where the rows of the database are."""
    packed: bytes = msgpack.packb(dict(values))
    keyring = conversation.context.keyring
    return packed if keyring is None else keyring.seal(packed, name.encode())


def _opened(conversation: Conversation, name: str, data: bytes) -> Mapping[bytes, bytes] | None:
    """What `_packed` packed; None for anything else."""
    keyring = conversation.context.keyring
    try:
        plain = data if keyring is None else keyring.open(data, name.encode())
        values = msgpack.unpackb(plain, strict_map_key=False)
    except (CorruptDataError, ValueError, TypeError, MemoryError):
        return None
    return values if isinstance(values, dict) else None
