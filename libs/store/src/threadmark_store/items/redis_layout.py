"""Keys, members and bytes of items on Redis. `items.redis` says why they are as they are.

Text is UTF-8 whose bytes sort as Python sorts text. No such text has the byte 0xff, so `escaped` texts with a NUL
behind them sort like the texts alone, whatever follows.
"""

import re
import struct
from typing import NamedTuple

from threadmark_redis.columns import cut, from_bytes, measured, to_bytes
from threadmark_redis.keys import SHARDS, shard_of
from threadmark_store.namespaces import bounds_below
from threadmark_store.shapes import ItemKey, ItemRow, Place, Scope

Range = tuple[bytes, bytes]
"""A least and a greatest member, as ZRANGEBYLEX takes them."""

LONGEST_NAMESPACE = 65_535
"""In bytes."""

VERSION = b"\xff"
"""The field among a namespace's items that differs after each change. No key has this byte."""

_PARTS = re.compile(rb"((?:[^\0]|\0\xff)*)\0(.*)", re.DOTALL)
_FIXED = struct.Struct(">ccQqq")
_ENDING = struct.Struct(">qq")
_NEVER, _ENDS, _LIVES_ON = b"-", b"x", b"l"
_TEXT, _BYTES = b"t", b"b"
_NEWEST = 2**63 - 1


class Shard(NamedTuple):
    """The keys of one shard that are about all of its namespaces."""

    namespaces: bytes
    """The buckets of every namespace, by name."""
    owners: bytes
    """The namespaces of every owner, by owner and name."""
    expiries: bytes
    """The items that expire, by when."""


class Bucket(NamedTuple):
    """The items of a namespace that have one owner, or none."""

    namespace: str
    mark: bytes
    order: bytes
    """The key of its items' places, the most recently updated first."""


def has_short_namespace(key: ItemKey) -> bool:
    """Return whether Redis can have an item. The length of a namespace is in two bytes where items expire."""
    return len(to_bytes(key.namespace)) <= LONGEST_NAMESPACE


def start_of(prefix: bytes, shard: int) -> bytes:
    """Return the beginning of all keys of a shard."""
    return b"%b{item-%d}" % (prefix, shard)


def shard_keys(prefix: bytes, shard: int) -> Shard:
    """Return the keys of a shard."""
    start = start_of(prefix, shard)
    return Shard(start + b"n", start + b"o", start + b"x")


def shards_of(prefix: bytes) -> list[Shard]:
    """Return the keys of all shards."""
    return [shard_keys(prefix, shard) for shard in range(SHARDS)]


def items_key(prefix: bytes, namespace: str) -> bytes:
    """Return the key of the hash with the items of a namespace."""
    return b"%b:%bi" % (start_of(prefix, shard_of(namespace)), to_bytes(namespace))


def names_key(prefix: bytes, namespace: str) -> bytes:
    """Return the key of the sorted set with the keys of a namespace's items."""
    return b"%b:%bk" % (start_of(prefix, shard_of(namespace)), to_bytes(namespace))


def bucket_of(prefix: bytes, namespace: str, mark: bytes) -> Bucket:
    """Return a bucket."""
    return Bucket(namespace, mark, b"%b:%b\0%bu" % (start_of(prefix, shard_of(namespace)), escaped(namespace), mark))


def mark_of(owner: str | None) -> bytes:
    """Return the mark of an owner: empty for none."""
    return b"" if owner is None else b"o" + to_bytes(owner)


def owner_of(mark: bytes) -> str | None:
    """Return the owner of a mark."""
    return from_bytes(mark[1:]) if mark else None


def escaped(text: str) -> bytes:
    """Return bytes of a text in which no NUL is a separator."""
    return to_bytes(text).replace(b"\0", b"\0\xff")


# Members of the indexes of namespaces.


def namespace_member(namespace: str, mark: bytes) -> bytes:
    """Return the member of a bucket among the namespaces."""
    return b"%b\0%b" % (escaped(namespace), mark)


def owner_member(namespace: str, mark: bytes) -> bytes:
    """Return the member of a bucket among the namespaces of owners."""
    return _lead(owner_of(mark)) + namespace_member(namespace, b"")


def bucket_in(prefix: bytes, scope: Scope, member: bytes) -> Bucket:
    """Return the bucket of a member of the index that a scope reads."""
    name, mark = _parts(member[len(_lead(scope.owner)) :])
    return bucket_of(prefix, name, mark if scope.owner is None else mark_of(scope.owner))


def ranges_of(prefix: bytes, scope: Scope, start: str = "") -> list[tuple[bytes, Range]]:
    """Return the indexes that have the namespaces of a scope, from a name on, and the range of these in each."""
    lead = _lead(scope.owner)
    keys = [shard.namespaces if scope.owner is None else shard.owners for shard in shards_of(prefix)]
    if not scope.prefix:
        return [(key, (b"[" + lead + escaped(start), b"(%b\xff" % lead)) for key in keys]
    itself = lead + namespace_member(scope.prefix, b"")
    least, beyond = bounds_below(scope.prefix)
    below = b"[" + lead + escaped(max(least, start)), b"(" + lead + escaped(beyond)
    found = [(key, below) for key in keys]
    if start <= scope.prefix:
        found.append((keys[shard_of(scope.prefix)], (b"[" + itself, b"(%b\xff" % itself)))
    return found


def _lead(owner: str | None) -> bytes:
    """Return the beginning of the members of an index: of the owners' one, the owner."""
    return b"" if owner is None else escaped(owner) + b"\0"


def _parts(member: bytes) -> tuple[str, bytes]:
    found = _PARTS.fullmatch(member)
    name, mark = found.groups() if found else (member, b"")
    return from_bytes(name.replace(b"\0\xff", b"\0")), mark


# Members of the order by update, and of the expiries.


def place_member(row: ItemRow) -> bytes:
    """Return the place of an item in its bucket."""
    return _inverted(row.updated_at) + to_bytes(row.key.key)


def place_in(namespace: str, member: bytes) -> Place:
    """Return the place of a member of a bucket's order."""
    return Place(_NEWEST - int.from_bytes(member[:8], "big"), ItemKey(namespace, from_bytes(member[8:])))


def behind(namespace: str, after: Place | None) -> bytes:
    """Return the least member of a namespace's order behind a place."""
    if after is None:
        return b"-"
    if namespace == after.key.namespace:
        return b"(" + _inverted(after.updated_at) + to_bytes(after.key.key)
    return b"[" + _inverted(after.updated_at - (namespace < after.key.namespace))


def _inverted(updated_at: int) -> bytes:
    return (_NEWEST - updated_at).to_bytes(8, "big")


def expiry_member(key: ItemKey, mark: bytes) -> bytes:
    """Return the member of an item among the expiries."""
    return measured(to_bytes(key.namespace)) + measured(mark) + to_bytes(key.key)


def expiry_in(member: bytes) -> tuple[ItemKey, bytes]:
    """Return the item's key and the owner's mark of a member of the expiries."""
    namespace, rest = cut(member)
    mark, key = cut(rest)
    return ItemKey(from_bytes(namespace), from_bytes(key)), mark


# Rows.


def row_bytes(row: ItemRow, mark: bytes) -> bytes:
    """Return the stored form of a row: first the parts that the script reads, at fixed places."""
    form, value = (_TEXT, row.value.encode()) if isinstance(row.value, str) else (_BYTES, row.value)
    ends = _NEVER if row.expires_at is None else _ENDS if row.ttl is None else _LIVES_ON
    fixed = _FIXED.pack(form, ends, _NEWEST - row.updated_at, row.created_at, row.check)
    ending = b"" if row.expires_at is None else _ENDING.pack(row.expires_at, row.ttl or 0)
    return b"".join((fixed, ending, measured(mark), value))


def row_in(key: ItemKey, stored: bytes) -> ItemRow:
    """Return the row of its stored form. A damaged one has a check that is wrong."""
    try:
        form, ends, order, created_at, check = _FIXED.unpack_from(stored)
        expires_at, ttl = (None, None) if ends == _NEVER else _ENDING.unpack_from(stored, _FIXED.size)
    except struct.error:
        return ItemRow(key, b"", 0, 0, 0)
    mark, body = cut(stored[_FIXED.size + (0 if ends == _NEVER else _ENDING.size) :])
    value = body.decode("utf-8", "replace") if form == _TEXT else body
    lives_on = ttl if ends == _LIVES_ON else None
    return ItemRow(key, value, check, created_at, _NEWEST - order, owner_of(mark), expires_at, lives_on)


def value_size(length: int, mark: bytes, *, ends: bool) -> int:
    """Return the bytes of the value in a row of this length."""
    return length - _FIXED.size - (_ENDING.size if ends else 0) - len(measured(mark))
