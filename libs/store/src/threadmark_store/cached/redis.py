"""Cached entries in Redis: three keys for each owner, or for each part of an owner's entries in a cluster.

A hash has the entries and their bytes, a sorted set the times at which they were used, another one those at which they
expire. A script keeps the bound, so it holds at any time, with any number of processes. A server may evict any of the
keys: without the hash its entries are gone, and without times they are all removed when room is needed.
"""

import struct
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final, TypeVar

from threadmark.backends import Program
from threadmark_redis.columns import to_bytes
from threadmark_redis.keys import literally
from threadmark_redis.steps import all_keys, commands, run
from threadmark_redis.store import RedisStore
from threadmark_store.cached.contract import Placed
from threadmark_store.entries import ENTRY_BYTES, Bound, Entry, EntryKey
from threadmark_store.shapes import Cursor
from threadmark_store.tables.redis import RedisTable, script

_UNBOUNDED: Final = 1 << 52
_PARTS: Final = 16
"""How many slots of a cluster have the entries of an owner. Each part has its share of the bound."""

_SCANNED: Final = 64

_HEAD = struct.Struct("!qq")
"""The check, and the time of expiry or -1."""

Keys = tuple[bytes, bytes, bytes]
T = TypeVar("T")


class RedisEntries(RedisTable):
    """Entries in hashes."""

    knows_size = True

    def __init__(self, rows: RedisStore) -> None:
        super().__init__(rows)
        self.parts = _PARTS if self._clustered else 1

    def find(self, keys: Sequence[EntryKey], owner: str | None) -> Program[list[Entry]]:
        asked = [(each, self._keys(owner, self._part(each))) for each in keys]
        replies = yield from commands(
            [
                *((b"HGET", where[0], _field(key)) for key, where in asked),
                *((b"ZSCORE", where[1], _field(key)) for key, where in asked),
            ]
        )
        stored, used = replies[: len(asked)], replies[len(asked) :]
        return [
            _entry(key, owner, columns, used_at)
            for key, columns, used_at in zip(keys, stored, used, strict=True)
            if columns is not None and len(columns) >= _HEAD.size
        ]

    def add(self, entries: Sequence[Entry], owner: str | None, bound: Bound | None, now: int) -> Program[int | None]:
        most = (_UNBOUNDED if bound is None else bound.most) // self.parts
        left = []
        for part, some in self._by_part(entries, [entry.key for entry in entries]):
            args: list[bytes | int] = [most, now]
            for entry in some:
                expiry: bytes | int = b"" if entry.expires_at is None else entry.expires_at
                args += (_field(entry.key), _columns(entry), expiry)
            left.append(int((yield from self._change(self._keys(owner, part), b"add", *args))))
        return min(left) if bound else None

    def note(self, used: Sequence[EntryKey], expired: Sequence[EntryKey], owner: str | None, now: int) -> Program[None]:
        for change, keys in ((b"touch", used), (b"drop", expired)):
            for part, some in self._by_part(keys, keys):
                yield from self._change(self._keys(owner, part), change, now, *map(_field, some))

    def clear(self, namespaces: Collection[bytes] | None, owner: str | None) -> Program[None]:
        for keys in (yield from self._all_keys(owner)):
            if namespaces is None:
                yield from self._change(keys, b"clear_all")
                continue
            cursor = b"0"
            while True:
                cursor = yield from self._change(keys, b"clear", cursor, *namespaces)
                if cursor == b"0":
                    break

    def sweep(self, owner: str | None, now: int, limit: int) -> Program[int]:
        removed = 0
        for keys in (yield from self._all_keys(owner)):
            if removed < limit:
                removed += int((yield from self._change(keys, b"sweep", now, limit - removed)))
        return removed

    def page(self, owner: str | None, cursor: Cursor | None) -> Program[tuple[list[Placed], Cursor | None]]:
        """Return the entries of one call of HSCAN. The cursor has the keys that are left, and the call's own."""
        at, *starts = cursor or (b"0", *(keys[0][:-1] for keys in (yield from self._all_keys(owner))))
        if not starts:
            return [], None
        keys = _keys_at(bytes(starts[0]))  # type: ignore[arg-type]  # what `page` put into the cursor
        ((after, columns),) = yield from commands([(b"HSCAN", keys[0], at, b"COUNT", _SCANNED)])
        found = [
            Placed((keys, field), _entry(_key_in(field), owner, value, None))
            for field, value in zip(columns[::2], columns[1::2], strict=True)
            if field != b"size" and len(value) >= _HEAD.size
        ]
        left = starts if after != b"0" else starts[1:]
        return found, (after, *left) if left else None

    def replace(self, old: Placed, new: Entry | None) -> Program[bool]:
        keys, field = old.place
        columns = b"" if new is None else _columns(new)
        return bool((yield from self._change(keys, b"replace", field, _columns(old.entry), columns)))

    def size(self, owner: str | None) -> Program[tuple[int, int]]:
        where = yield from self._all_keys(owner)
        asked = [
            *((b"HLEN", keys[0]) for keys in where),
            *((b"HGET", keys[0], b"size") for keys in where),
        ]
        replies = yield from commands(asked)
        counts, sizes = replies[: len(where)], replies[len(where) :]
        return sum(max(count - 1, 0) for count in counts), sum(int(size or 0) for size in sizes)

    def _change(self, keys: Keys, *args: bytes | int) -> Program[Any]:
        """Run the script."""
        change, *others = args
        return run(script("cached"), keys, [change, ENTRY_BYTES - _HEAD.size, *others])

    def _part(self, key: EntryKey) -> int:
        return key.key[0] % self.parts

    def _by_part(self, things: Sequence[T], keys: Sequence[EntryKey]) -> Iterator[tuple[int, list[T]]]:
        """Yield the things whose keys belong to each part."""
        parts = [self._part(key) for key in keys]
        for part in sorted(set(parts)):
            yield part, [thing for thing, each in zip(things, parts, strict=True) if each == part]

    def _keys(self, owner: str | None, part: int) -> Keys:
        name = b"" if owner is None else urlsafe_b64encode(blake2b(to_bytes(owner), digest_size=15).digest())
        return _keys_at(b"%b{cached-%d-%b}" % (self._prefix, part, name))

    def _all_keys(self, owner: str | None) -> Program[list[Keys]]:
        """Return the keys of all parts of an owner's entries, or of everyone's."""
        if owner is not None:
            return [self._keys(owner, part) for part in range(self.parts)]
        found = yield from all_keys(literally(self._prefix) + b"{cached-*}[eux]")
        return [_keys_at(start) for start in sorted({key[:-1] for key in found})]


rows_over = RedisEntries


def _keys_at(start: bytes) -> Keys:
    return start + b"e", start + b"u", start + b"x"


def _field(key: EntryKey) -> bytes:
    return key.namespace + key.key


def _key_in(field: bytes) -> EntryKey:
    half = len(field) // 2
    return EntryKey(field[half:], field[:half])


def _columns(entry: Entry) -> bytes:
    return _HEAD.pack(entry.check, -1 if entry.expires_at is None else entry.expires_at) + entry.value


def _entry(key: EntryKey, owner: str | None, columns: bytes, used_at: Any) -> Entry:
    check, expires_at = _HEAD.unpack_from(columns)
    used = 0 if used_at is None else int(float(used_at))
    return Entry(key, owner, columns[_HEAD.size :], check, used, None if expires_at == -1 else expires_at)
