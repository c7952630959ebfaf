"""Entries of the cache: their keys, and their values as they are stored.

A key and a namespace are stored as digests, so they may be any text of any length. With a keyring the digests need its
secret, and every value is sealed, bound to its key and to the time at which it expires. Values are compressed where
that pays, as segments are.
"""

import struct
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from threadmark.backends import CorruptDataError
from threadmark.format.stored import announced_size, expand, shrink
from threadmark.saver.kit import HOW_TO_OPEN
from threadmark.sealing import Cipher
from threadmark.serde import Serializer
from threadmark_store.shapes import Labels

FullKey = tuple[Labels, str]
"""A namespace and a key in it."""

ENTRY_BYTES: Final = 128
"""The bytes that an entry counts for its key, columns and places in indexes, in addition to those of its value."""

_DIGEST_SIZE: Final = 16
_NAMESPACES: Final = 1024
"""How many digests of namespaces are remembered. A graph has one namespace for each node."""
_LEAST_EVICTED: Final = 16
_PLAIN, _SEALED = b"\x01", b"\x02"
_TAG_END = b"\0"
_EXPIRY = struct.Struct("!q")
_PURPOSE = b"tm.cached"


class EntryKey(NamedTuple):
    """The key of an entry."""

    key: bytes
    """A digest of the owner, the namespace and the key."""
    namespace: bytes
    """A digest of the namespace alone."""


class Entry(NamedTuple):
    """An entry as it is stored. Times are microseconds since 1970."""

    key: EntryKey
    owner: str | None
    value: bytes
    check: int
    """64 bits of a digest over the key, the value and its expiry."""
    used_at: int
    """When it was stored or last found. It is rewritten only when it is a minute old, so that a hit is a read."""
    expires_at: int | None = None

    @property
    def size(self) -> int:
        """The bytes that it counts."""
        return len(self.value) + ENTRY_BYTES


class Bound(NamedTuple):
    """How many bytes the entries of an owner may count."""

    most: int
    spare: int
    """How many more are freed if anything must be removed, so that the next entries need not count again."""


def likely_enough(freed: int, count: int, size: int) -> int:
    """Return how many of the oldest entries probably free so many bytes, if all `count` entries have `size` bytes."""
    return 2 * freed * count // max(size, 1) + _LEAST_EVICTED


class Entries:
    """Makes entries of keys and values, and values of entries."""

    def __init__(self, serde: Serializer, cipher: Cipher | None, owner: str | None) -> None:
        self._serde = serde
        self._cipher = cipher
        self._secret = b"" if cipher is None else cipher.digest_key
        self._owner = () if owner is None else (_encoded(owner),)
        self.owner = owner
        self._namespaces = lru_cache(_NAMESPACES)(self._namespace)

    def key(self, full: FullKey) -> EntryKey:
        """Return the key of an entry. Raises TypeError if it is no text."""
        labels, key = full
        namespace = self.namespace(labels)
        if not isinstance(key, str):
            raise TypeError(f"the key of a cached value must be text, not {type(key).__name__}")
        return EntryKey(self._digest(namespace, _encoded(key), *self._owner), namespace)

    def namespace(self, labels: Iterable[str]) -> bytes:
        """Return the digest of a namespace. Raises TypeError for labels that are no text."""
        if isinstance(labels, str):
            raise TypeError(f"a namespace is a tuple of labels, not the text {labels!r}: write ({labels!r},)")
        return self._namespaces(tuple(labels))

    def encoded(self, key: EntryKey, value: Any, used_at: int, expires_at: int | None) -> Entry:
        """Return an entry. Raises SerializationError for a value that cannot be stored."""
        tag, data = self._serde.dumps_typed(value)
        return self._sealed(Entry(key, self.owner, b"", 0, used_at, expires_at), shrink(tag.encode() + _TAG_END + data))

    def decoded(self, entry: Entry) -> Any:
        """Return the value of an entry. Raises CorruptDataError if it was changed since it was stored."""
        body = self._body(entry)
        tag, end, data = expand(body, announced_size(body)).partition(_TAG_END)
        if not end:
            raise CorruptDataError("the type of a value is missing")
        return self._serde.loads_typed((tag.decode("utf-8", "replace"), data))

    def is_plain(self, entry: Entry) -> bool:
        """Return whether the value of an entry was stored without a keyring."""
        return entry.value[:1] == _PLAIN

    def is_current(self, entry: Entry) -> bool:
        """Return whether the newest key of the keyring has sealed the value of an entry."""
        return self._cipher is not None and not self.is_plain(entry) and self._cipher.is_current(entry.value[1:])

    def sealed_again(self, entry: Entry) -> Entry:
        """Return an entry whose value the newest key has sealed. Raises CorruptDataError if it does not open."""
        return self._sealed(entry, self._body(entry))

    def prove(self, entry: Entry) -> None:
        """Raise CorruptDataError for an entry that was changed since it was stored. It opens only with a keyring."""
        _expect_check(entry)
        if self._cipher is not None and not self.is_plain(entry):
            self._body(entry)

    def _sealed(self, entry: Entry, body: bytes) -> Entry:
        stored = _PLAIN + body
        if self._cipher is not None:
            stored = _SEALED + self._cipher.seal(body, _location(entry.key, entry.expires_at))
        return entry._replace(value=stored, check=check_of(entry.key, stored, entry.expires_at))

    def _body(self, entry: Entry) -> bytes:
        """Return the value of an entry without its seal."""
        _expect_check(entry)
        form, body = entry.value[:1], entry.value[1:]
        if form == _SEALED:
            if self._cipher is None:
                raise CorruptDataError(f"a value is sealed: {HOW_TO_OPEN}")
            return self._cipher.open(body, _location(entry.key, entry.expires_at))
        if form != _PLAIN or self._cipher is not None:
            raise CorruptDataError("a value is not sealed" if form == _PLAIN else f"an unknown form {form!r}")
        return body

    def _namespace(self, labels: Labels) -> bytes:
        for label in labels:
            if not isinstance(label, str):
                raise TypeError(f"the labels of a namespace must be text, not {type(label).__name__}")
        return self._digest(*map(_encoded, labels))

    def _digest(self, *parts: bytes) -> bytes:
        text = b"".join([each for part in parts for each in (len(part).to_bytes(8, "big"), part)])
        return blake2b(text, key=self._secret, digest_size=_DIGEST_SIZE, person=_PURPOSE).digest()


def _expect_check(entry: Entry) -> None:
    # An entry that never expires has the digest of a time before 1970, which none has.
    if (entry.expires_at or 0) < 0 or check_of(entry.key, entry.value, entry.expires_at) != entry.check:
        raise CorruptDataError("a value and its check do not belong together")


def check_of(key: EntryKey, value: bytes, expires_at: int | None) -> int:
    """Return 64 bits of a digest over an entry's key, stored value and expiry, as a signed integer."""
    return int.from_bytes(blake2b(_location(key, expires_at) + value, digest_size=8).digest(), "big", signed=True)


def _location(key: EntryKey, expires_at: int | None) -> bytes:
    """Return the name that a value is bound to."""
    return b"cached\0" + key.key + _EXPIRY.pack(-1 if expires_at is None else expires_at)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
