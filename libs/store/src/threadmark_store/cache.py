"""`Cache`: LangGraph's interface to the results of nodes, over a Threadmark saver and in its database."""

import logging
import math
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from langgraph.cache.base import BaseCache

from threadmark.backends import ConfigError, StoreError, arun, now, reset_after_fork, run, short_repr
from threadmark.program import Operation, read, write, write_and_reclaim
from threadmark.saver.kit import check_keyring, checked_serde
from threadmark.serde import Serializer
from threadmark_store.backends import checked_saver, rows_over
from threadmark_store.cached.contract import CachedStore
from threadmark_store.entries import Bound, Entries, Entry, EntryKey, FullKey
from threadmark_store.log import log
from threadmark_store.over_saver import OverSaver
from threadmark_store.shapes import MINUTE, Labels

CACHE_BYTES: Final = 64 * 1024 * 1024
"""The default bound of the entries, in bytes."""

_SECOND = 1_000_000
_SWEPT_AT_ONCE = 1000
_LONGEST_TTL = 100 * 365 * 24 * 3600
"""In seconds. An entry with a longer one never expires."""


class Cache(OverSaver, BaseCache[Any]):
    """Keeps the results of nodes in the database of a saver, and uses its connections, serializer, keyring and owner.

    `saver` is a Threadmark saver, also under LangGraph's name. Values come back with the types that you cached. Both
    APIs work on one cache, from any thread and any event loop. Closing the cache closes the saver only if the cache
    made it.

    The entries count at most `max_bytes`: their stored bytes, and 128 bytes more for each. To make room, those go that
    have expired, and then those that were not used for longest. A use is noted when the last one is a minute old, so
    most hits only read. On SQLite and Postgres a cache counts what is stored when it has added an eighth of the bound,
    or less if less is left; so together, several processes may exceed the bound by an eighth for each further one. In a
    cluster of Redis, an entry may take up to a sixteenth of the bound.

    With a saver that is limited to an owner the cache has only this owner's entries, within a bound of its own. With
    any other saver it finds the entries that have no owner, and `clear`, `sweep` and `size` are about all entries.

    An entry that is damaged, or that this process cannot load, is a miss, and the first of each kind is logged.
    """

    _misses_outages = False
    """Whether a database that fails is a miss."""

    serde: Serializer
    """The serializer of results: the saver's, or the one that you passed."""

    def __init__(self, saver: Any, *, max_bytes: int = CACHE_BYTES, serde: Serializer | None = None) -> None:
        if type(max_bytes) is not int or max_bytes < 1:
            raise ConfigError(f"max_bytes must be a number of bytes from 1 on, not {short_repr(max_bytes)}")
        self.saver = checked_saver(saver)
        context = self.saver._context  # noqa: SLF001 - it works on the saver's database as the saver itself does
        super().__init__(serde=context.serde if serde is None else checked_serde(serde))
        self._entries = Entries(self.serde, context.cipher, context.threads.owner)
        self._owner = context.threads.owner
        self._stored: CachedStore = rows_over(self.saver, "cached", "cache of nodes")
        self._driver = self.saver._driver  # noqa: SLF001 - see above
        self._room = _Room(max_bytes, always_counts=self._stored.knows_size)
        self._largest = max_bytes // self._stored.parts
        self._logged: set[str] = set()
        self._is_ready = self._keys_fit = False

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """Return the values of those keys that have one."""
        return run(self._driver, self._get(keys))

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """Like `get`, for asyncio."""
        return await arun(self._driver, self._get(keys))

    def set(self, pairs: Mapping[FullKey, tuple[Any, int | None]]) -> None:
        """Store values, each with the seconds for which it lives, or None for no end. Values of these keys go.

        Raises SerializationError for a value that cannot be stored.
        """
        run(self._driver, self._set(pairs))

    async def aset(self, pairs: Mapping[FullKey, tuple[Any, int | None]]) -> None:
        """Like `set`, for asyncio."""
        await arun(self._driver, self._set(pairs))

    def clear(self, namespaces: Sequence[Labels] | None = None) -> None:
        """Remove the values of these namespaces, but not of those below them; without an argument, all values."""
        run(self._driver, self._clear(namespaces))

    async def aclear(self, namespaces: Sequence[Labels] | None = None) -> None:
        """Like `clear`, for asyncio."""
        await arun(self._driver, self._clear(namespaces))

    def sweep(self) -> int:
        """Remove expired entries. Returns how many. To make room and a `get` of their keys remove them, too."""
        return run(self._driver, self._sweep())

    async def asweep(self) -> int:
        """Like `sweep`, for asyncio."""
        return await arun(self._driver, self._sweep())

    def size(self) -> tuple[int, int]:
        """Return how many entries there are, and how many bytes they count."""
        return run(self._driver, self._size())

    async def asize(self) -> tuple[int, int]:
        """Like `size`, for asyncio."""
        return await arun(self._driver, self._size())

    def _prepared(self) -> Operation[None]:
        if not self._keys_fit:
            yield from check_keyring(self.saver._context, creates_tables=False)  # noqa: SLF001 - see above
            self._keys_fit = True
        if not (yield from self._exists()):
            yield from write(self._stored.create)
            self._is_ready = True

    def _exists(self) -> Operation[bool]:
        """Return whether there are tables. Reads create none."""
        if not self._is_ready:
            self._is_ready = yield from read(self._stored.exists)
        return self._is_ready

    def _get(self, keys: Sequence[FullKey]) -> Operation[dict[FullKey, Any]]:
        asked = {self._entries.key(full): (tuple(full[0]), full[1]) for full in keys}
        if not asked:
            return {}
        try:
            if not (yield from self._exists()):
                return {}
            entries = yield from read(self._stored.find, list(asked), self._owner)
        except StoreError as error:
            self._miss_outage(error)
            return {}
        moment, values = now(), {}
        used, expired = [], []
        for entry in entries:
            if entry.expires_at is not None and entry.expires_at <= moment:
                expired.append(entry.key)
                continue
            try:
                values[asked[entry.key]] = self._entries.decoded(entry)
            except Exception as error:  # noqa: BLE001 - stored bytes and a serializer of yours may raise anything
                self._log_once(type(error).__name__, "an entry is treated as a miss", error)
            else:
                if entry.used_at <= moment - MINUTE:
                    used.append(entry.key)
        yield from self._note_use(used, expired, moment)
        return {full: values[full] for full in asked.values() if full in values}

    def _note_use(self, used: Sequence[EntryKey], expired: Sequence[EntryKey], moment: int) -> Operation[None]:
        """Note the use of entries, and remove expired ones. The values are there, so a failure is only logged."""
        try:
            if used or expired:
                yield from write(self._stored.note, used, expired, self._owner, moment)
        except StoreError as error:
            self._log_once("use", "uses of entries are not noted", error)

    def _set(self, pairs: Mapping[FullKey, tuple[Any, int | None]]) -> Operation[None]:
        moment = now()
        entries = [self._encoded(full, value, ttl, moment) for full, (value, ttl) in pairs.items()]
        if not entries:
            return
        try:
            yield from self._prepared()
            for some in self._fitting(entries):
                bound = self._room.bound_for(sum(entry.size for entry in some))
                left = yield from write(self._stored.add, some, self._owner, bound, moment)
                if left is not None:
                    self._room.counted(left)
        except StoreError as error:
            self._miss_outage(error)

    def _encoded(self, full: FullKey, value: Any, ttl: object, moment: int) -> Entry:
        expires_at = None
        if ttl is not None:
            if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or math.isnan(ttl):
                raise TypeError(f"the ttl of a cached value must be a number of seconds or None, not {short_repr(ttl)}")
            if ttl <= _LONGEST_TTL:
                expires_at = moment + max(int(ttl * _SECOND), 0)
        return self._entries.encoded(self._entries.key(full), value, moment, expires_at)

    def _fitting(self, entries: Iterable[Entry]) -> Iterator[list[Entry]]:
        """Yield groups of entries for which the bound leaves room."""
        group: list[Entry] = []
        size = 0
        for given in {entry.key: entry for entry in entries}.values():
            entry = given
            if entry.size > self._largest:
                problem = f"it counts {entry.size} bytes, and the bound leaves {self._largest}: raise max_bytes"
                self._log_once("size", "an entry is not stored", problem)
                entry = self._entries.encoded(entry.key, None, entry.used_at, 0)  # it replaces an earlier one
            if group and size + entry.size > self._largest:
                yield group
                group, size = [], 0
            group.append(entry)
            size += entry.size
        if group:
            yield group

    def _clear(self, namespaces: Sequence[Labels] | None) -> Operation[None]:
        digests = None if namespaces is None else sorted({self._entries.namespace(labels) for labels in namespaces})
        if digests == []:
            return
        try:
            if (yield from self._exists()):
                yield from write_and_reclaim(self._stored.clear, digests, self._owner)
        except StoreError as error:
            self._miss_outage(error)

    def _sweep(self) -> Operation[int]:
        removed, last = 0, _SWEPT_AT_ONCE
        while last == _SWEPT_AT_ONCE and (yield from self._exists()):
            last = yield from write_and_reclaim(self._stored.sweep, self._owner, now(), _SWEPT_AT_ONCE)
            removed += last
        return removed

    def _size(self) -> Operation[tuple[int, int]]:
        if not (yield from self._exists()):
            return 0, 0
        return (yield from read(self._stored.size, self._owner))

    def _miss_outage(self, error: StoreError) -> None:
        """Log that the database failed, if that is a miss. Raises the error if it is not."""
        self._is_ready = False  # another file may be at the path by now
        if not self._misses_outages:
            raise error
        self._log_once("outage", "the database fails, which is a miss", error)

    def _log_once(self, kind: str, what: str, why: object) -> None:
        """Log a warning, unless there was one of this kind."""
        if kind not in self._logged:
            self._logged.add(kind)
            log.write(logging.WARNING, "%s: %s (more of this kind are not logged): %s", repr(self), what, str(why))


class _Room:
    """How many bytes may be added before the stored ones are counted. Entries that are replaced count twice."""

    def __init__(self, most: int, *, always_counts: bool) -> None:
        self._bound = Bound(most, 0 if always_counts else most // 16)
        self._always_counts = always_counts
        self._left = 0
        self._changing = threading.Lock()
        reset_after_fork(self)

    def bound_for(self, size: int) -> Bound | None:
        """Take room for so many bytes. Returns the bound if it is time to count."""
        with self._changing:
            self._left -= size
            return self._bound if self._always_counts or self._left < 0 else None

    def counted(self, left: int) -> None:
        """Note how many bytes are left."""
        with self._changing:
            self._left = min(left, self._bound.most // 8)

    def _reset_after_fork(self) -> None:
        """In the child of a fork, replace the lock: a thread that does not exist there may hold it."""
        self._changing = threading.Lock()
