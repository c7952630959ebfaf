"""Cached entries in Redis: three keys for each owner, or for each part of an owner's entries in a cluster.

A hash has the entries and their bytes, a sorted set the times at which they were used, another one those at which they
expire. Scripts keep the bound, so it holds at any time, with any number of processes. A server may evict any of the
keys: without the hash its entries are gone, and without times they are all removed when room is needed.
"""

import struct
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterator, Sequence
from hashlib import blake2b, sha1
from typing import Any, Final, TypeVar

from threadmark.backends import Program
from threadmark_redis.steps import Script, all_keys, commands, run
from threadmark_store.entries import ENTRY_BYTES, Bound, Entry, EntryKey

_UNBOUNDED: Final = 1 << 52
_PARTS: Final = 16
"""How many slots of a cluster have the entries of an owner. Each part has its share of the bound."""

_HEAD = struct.Struct("!qq")
"""The check, and the time of expiry or -1."""


def _script(name: str, text: str) -> Script:
    return Script(name, text, sha1(text.encode(), usedforsecurity=False).hexdigest())


_REMOVE = f"""
local entries, used, expiries = KEYS[1], KEYS[2], KEYS[3]
local size = tonumber(redis.call('HGET', entries, 'size') or '0')

local function remove(field)
    if redis.call('HEXISTS', entries, field) == 1 then
        size = size - redis.call('HSTRLEN', entries, field) + {_HEAD.size - ENTRY_BYTES}
        redis.call('HDEL', entries, field)
    end
    redis.call('ZREM', used, field)
    redis.call('ZREM', expiries, field)
end

local function note_size()
    if size > 0 then
        redis.call('HSET', entries, 'size', string.format('%.0f', size))
    else
        redis.call('UNLINK', entries, used, expiries)
    end
end
"""
"""The common beginning of scripts. KEYS: the hash of the entries, the sets of the times of use and of expiry."""

_ADD = _script(
    "store_cached_add",
    _REMOVE
    + f"""
-- Add entries. ARGV: the most bytes, the time, and for each entry its field, its value, and its expiry or ''. Returns
-- how many more bytes the bound leaves. A bound that was lowered is reached in several calls, so that none takes long.
local most, now = tonumber(ARGV[1]), ARGV[2]
for _, field in ipairs(redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'LIMIT', 0, 1000)) do
    remove(field)
end
local added = 0
for at = 3, #ARGV, 3 do
    remove(ARGV[at])
    added = added + #ARGV[at + 1] + {ENTRY_BYTES - _HEAD.size}
end
local evictions = 10000
while size > 0 and size + added > most and evictions > 0 do
    local oldest = redis.call('ZRANGE', used, 0, 0)[1]
    if oldest then
        remove(oldest)
        evictions = evictions - 1
    else
        redis.call('UNLINK', entries, expiries)
        size = 0
    end
end
for at = 3, #ARGV, 3 do
    redis.call('HSET', entries, ARGV[at], ARGV[at + 1])
    redis.call('ZADD', used, now, ARGV[at])
    if ARGV[at + 2] ~= '' then
        redis.call('ZADD', expiries, ARGV[at + 2], ARGV[at])
    end
end
size = size + added
note_size()
return string.format('%.0f', most - size)
""",
)

_TOUCH = _script(
    "store_cached_touch",
    """
-- Note that entries were used. KEYS: the hash of the entries, and the set of the times. ARGV: the time, and fields.
for at = 2, #ARGV do
    if redis.call('HEXISTS', KEYS[1], ARGV[at]) == 1 then
        redis.call('ZADD', KEYS[2], ARGV[1], ARGV[at])
    end
end
return 1
""",
)

_DROP = _script(
    "store_cached_drop",
    _REMOVE
    + """
-- Remove those of the fields that have expired. ARGV: the time, and fields.
for at = 2, #ARGV do
    local expiry = redis.call('ZSCORE', expiries, ARGV[at])
    if expiry and tonumber(expiry) <= tonumber(ARGV[1]) then
        remove(ARGV[at])
    end
end
note_size()
return 1
""",
)

_SWEEP = _script(
    "store_cached_sweep",
    _REMOVE
    + """
-- Remove entries that have expired. ARGV: the time, and how many at most. Returns how many.
local expired = redis.call('ZRANGEBYSCORE', expiries, '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, field in ipairs(expired) do
    remove(field)
end
note_size()
return #expired
""",
)

_CLEAR = _script(
    "store_cached_clear",
    _REMOVE
    + """
-- Remove the entries of namespaces, some at each call. ARGV: the cursor of HSCAN, and the beginnings of their fields.
-- Returns the next cursor.
local asked = {}
for at = 2, #ARGV do
    asked[ARGV[at]] = true
end
local scanned = redis.call('HSCAN', entries, ARGV[1], 'COUNT', 1000)
for at = 1, #scanned[2], 2 do
    local field = scanned[2][at]
    if asked[string.sub(field, 1, #ARGV[2])] then
        remove(field)
    end
end
note_size()
return scanned[1]
""",
)

_CLEAR_ALL = _script("store_cached_clear_all", "return redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])")

Keys = tuple[bytes, bytes, bytes]
T = TypeVar("T")


def rows_over(rows: Any) -> "RedisEntries":
    """Return the cached entries in the database of a saver's rows."""
    return RedisEntries(rows.settings.prefix, _PARTS if rows.settings.clustered else 1)


class RedisEntries:
    """Entries in hashes."""

    knows_size = True

    def __init__(self, prefix: bytes, parts: int) -> None:
        self._prefix = prefix
        self.parts = parts

    def exists(self) -> Program[bool]:
        yield from ()
        return True

    def create(self) -> Program[None]:
        yield from ()

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
            left.append(int((yield from run(_ADD, self._keys(owner, part), args))))
        return min(left) if bound else None

    def touch(self, keys: Sequence[EntryKey], owner: str | None, now: int) -> Program[None]:
        for part, some in self._by_part(keys, keys):
            entries, used, _ = self._keys(owner, part)
            yield from run(_TOUCH, (entries, used), [now, *map(_field, some)])

    def drop(self, keys: Sequence[EntryKey], owner: str | None, now: int) -> Program[None]:
        for part, some in self._by_part(keys, keys):
            yield from run(_DROP, self._keys(owner, part), [now, *map(_field, some)])

    def clear(self, namespaces: Collection[bytes] | None, owner: str | None) -> Program[None]:
        for keys in (yield from self._all_keys(owner)):
            if namespaces is None:
                yield from run(_CLEAR_ALL, keys, [])
                continue
            cursor = b"0"
            while True:
                cursor = yield from run(_CLEAR, keys, [cursor, *namespaces])
                if cursor == b"0":
                    break

    def sweep(self, owner: str | None, now: int, limit: int) -> Program[int]:
        removed = 0
        for keys in (yield from self._all_keys(owner)):
            if removed < limit:
                removed += int((yield from run(_SWEEP, keys, [now, limit - removed])))
        return removed

    def size(self, owner: str | None) -> Program[tuple[int, int]]:
        where = yield from self._all_keys(owner)
        asked = [
            *((b"HLEN", keys[0]) for keys in where),
            *((b"HGET", keys[0], b"size") for keys in where),
        ]
        replies = yield from commands(asked)
        counts, sizes = replies[: len(where)], replies[len(where) :]
        return sum(max(count - 1, 0) for count in counts), sum(int(size or 0) for size in sizes)

    def _part(self, key: EntryKey) -> int:
        return key.key[0] % self.parts

    def _by_part(self, things: Sequence[T], keys: Sequence[EntryKey]) -> Iterator[tuple[int, list[T]]]:
        """Yield the things whose keys belong to each part."""
        parts = [self._part(key) for key in keys]
        for part in sorted(set(parts)):
            yield part, [thing for thing, each in zip(things, parts, strict=True) if each == part]

    def _keys(self, owner: str | None, part: int) -> Keys:
        name = b"" if owner is None else urlsafe_b64encode(blake2b(_bytes(owner), digest_size=15).digest())
        return _keys_at(b"%b{cached-%d-%b}" % (self._prefix, part, name))

    def _all_keys(self, owner: str | None) -> Program[list[Keys]]:
        """Return the keys of all parts of an owner's entries, or of everyone's."""
        if owner is not None:
            return [self._keys(owner, part) for part in range(self.parts)]
        found = yield from all_keys(_literally(self._prefix) + b"{cached-*}[eux]")
        return [_keys_at(start) for start in sorted({key[:-1] for key in found})]


def _keys_at(start: bytes) -> Keys:
    return start + b"e", start + b"u", start + b"x"


def _field(key: EntryKey) -> bytes:
    return key.namespace + key.key


def _columns(entry: Entry) -> bytes:
    return _HEAD.pack(entry.check, -1 if entry.expires_at is None else entry.expires_at) + entry.value


def _entry(key: EntryKey, owner: str | None, columns: bytes, used_at: Any) -> Entry:
    check, expires_at = _HEAD.unpack_from(columns)
    used = 0 if used_at is None else int(float(used_at))
    return Entry(key, owner, columns[_HEAD.size :], check, used, None if expires_at == -1 else expires_at)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _literally(text: bytes) -> bytes:
    """Return the pattern that matches only this text."""
    return b"".join(b"\\" + bytes([each]) if each in b"*?[]^-\\" else bytes([each]) for each in text)
