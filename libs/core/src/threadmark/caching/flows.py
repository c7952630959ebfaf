"""The flow of a cached saver's transaction: which parts the cache answers, and which the database.

Rows always come from the database, so it alone decides which checkpoint is the newest. Segments come from the cache if
it has them. They never change, and each is proven when it is read, so they may be older or younger than the rows.

The flows here request transactions on the database and calls of the cache. The driver plays them for both APIs.

No error of a cache reaches a caller: without the cache everything works, only slower. After a failure the cache is not
asked for a while, then one caller tries again. Places to forget are remembered here until then, and are the first
request when the cache is back.
"""

import logging
import threading
import time
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from threadmark.around.deferred import resolved
from threadmark.caching.cache import (
    Cache,
    CacheCall,
    CachedFlow,
    CacheKeys,
    CacheRequest,
    Filling,
    Got,
    SegmentProof,
    on_database,
    proven,
)
from threadmark.caching.programs import (
    Begun,
    Done,
    Segments,
    answer_to,
    fetched,
    lacking,
    needed_by,
    noting_removals,
    until_segments,
    wants_segments,
    with_segments,
)
from threadmark.program import Transaction, aplay, play
from threadmark.runtime.logs import log
from threadmark.runtime.processes import reset_after_fork
from threadmark.saver import Saver
from threadmark.store.contract import Store

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
"""Seconds for which a cache is not asked after the first failure, and at most. Each further failure doubles them."""

MOST_PENDING = 100_000
"""How many threads are remembered for a cache that is away. The oldest beyond that are given up, and only expire."""


class Access:
    """The way to one cache, for all threads and event loops of a saver."""

    def __init__(self, cache: Cache, ttl: float, within: float) -> None:
        self._cache = cache
        self._ttl = ttl
        self._within = within
        self._lock = threading.Lock()
        self._pause = 0.0
        self._until = 0.0
        self._pending: dict[bytes, float] = {}
        """Places to be forgotten, each with the time at which its entries have expired anyway."""
        reset_after_fork(self)

    @property
    def is_open(self) -> bool:
        """Whether the cache may be asked. To read this begins no attempt."""
        return time.monotonic() >= self._until

    def get(self, needed: Mapping[bytes, CacheRequest]) -> CachedFlow[dict[bytes, Got]]:
        """Return the cache's entries for these threads, none if it cannot be asked."""
        if not (yield from self._forget_pending()):
            return {}
        found: dict[bytes, Got] | None = yield from self._asked(CacheCall("get", (needed, self._ttl, self._within)))
        return found or {}

    def set(self, fillings: Mapping[bytes, Filling]) -> CachedFlow[None]:
        """Add entries if the cache can be asked."""
        if fillings and (yield from self._forget_pending()):
            yield from self._asked(CacheCall("set", (fillings, self._within)))

    def forget(self, cache_keys: Collection[bytes]) -> CachedFlow[None]:
        """Have the cache forget threads: now, or as soon as it can be asked."""
        self.forget_later(cache_keys)
        yield from self._forget_pending()

    def forget_later(self, cache_keys: Collection[bytes]) -> None:
        """Remember that threads are to be forgotten before the cache is asked for anything."""
        until = time.monotonic() + self._ttl + self._within
        with self._lock:
            self._pending.update(dict.fromkeys(cache_keys, until))
            while len(self._pending) > MOST_PENDING:
                del self._pending[next(iter(self._pending))]

    def _reset_after_fork(self) -> None:
        """Reset the child of a fork: another thread may have held the lock. Pending places stay pending in both."""
        self._lock = threading.Lock()

    def _forget_pending(self) -> CachedFlow[bool]:
        """Have the cache forget the pending places. Returns whether it may be asked for more."""
        if not self._claim_attempt():
            return False
        cache_keys = self._take_pending()
        if not cache_keys:
            return True
        sent = False
        try:
            yield CacheCall("forget", (list(cache_keys), self._within))
            sent = True
            self._succeeded()
        except Exception as error:  # noqa: BLE001 - an error of the cache must not reach a caller
            self._failed(error)
        finally:  # a caller may be cancelled
            if not sent:
                with self._lock:
                    self._pending = {**cache_keys, **self._pending}
        return sent

    def _asked(self, call: CacheCall) -> CachedFlow[dict[bytes, Got] | None]:
        try:
            answer: dict[bytes, Got] | None = yield call
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(error)
            return None
        self._succeeded()
        return answer

    def _claim_attempt(self) -> bool:
        """Return whether the cache may be asked.

        While it is away only one caller tries at the end of each pause, and the others go on without it.
        """
        now = time.monotonic()
        with self._lock:
            if now < self._until:
                return False
            if self._pause:
                self._until = now + self._pause
            return True

    def _take_pending(self) -> dict[bytes, float]:
        if not self._pending:
            return {}
        now = time.monotonic()
        with self._lock:
            pending, self._pending = self._pending, {}
        return {cache_key: until for cache_key, until in pending.items() if until > now}

    def _succeeded(self) -> None:
        if not self._pause:
            return
        with self._lock:
            was_away, self._pause, self._until = bool(self._pause), 0.0, 0.0
        if was_away:
            log.write(logging.INFO, "the cache in %s is used again", str(self._cache))

    def _failed(self, error: Exception) -> None:
        with self._lock:
            was_here = not self._pause
            self._pause = min(max(FIRST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
            self._until = time.monotonic() + self._pause
        if was_here:
            log.write(
                logging.WARNING,
                "the cache in %s is left out until it answers: %s: %s",
                str(self._cache),
                type(error).__name__,
                str(error),
            )


T = TypeVar("T")


class Flows:
    """Makes flows of transactions, for one saver."""

    def __init__(self, store: Store, access: Access, cache_keys: CacheKeys, proof: SegmentProof) -> None:
        self._store = store
        self._access = access
        self._cache_keys = cache_keys
        self._proof = proof

    def flow(self, transaction: Transaction[T]) -> CachedFlow[T]:
        """Run a transaction."""
        if transaction.writes:
            return self._write(transaction)
        if transaction.proves or not self._access.is_open:
            return on_database(resolved(transaction, self._store))
        return self._read(transaction)

    def forget_pending(self) -> CachedFlow[None]:
        """Have the cache forget the pending places, if it can be asked."""
        return self._access.forget(())

    def _write(self, transaction: Transaction[T]) -> CachedFlow[T]:
        """Run a transaction that writes. The cache forgets all that it removed, or may have removed if it failed."""
        shortened: set[str] = set()
        noted = transaction.through(noting_removals, shortened)
        try:
            result = yield from on_database(resolved(noted, self._store))
        except Exception:
            yield from self._access.forget(self._cache_keys_of(shortened))
            raise
        except BaseException:  # an interrupt, or a cancellation
            self._access.forget_later(self._cache_keys_of(shortened))
            raise
        if shortened:
            yield from self._access.forget(self._cache_keys_of(shortened))
        return result

    def _read(self, transaction: Transaction[T]) -> CachedFlow[T]:
        begun: Begun[T] | Done[T] | None = yield transaction.through(until_segments, self._store)
        if begun is None:  # there are no tables
            return None  # type: ignore[return-value]  # as every driver answers then
        if isinstance(begun, Done):
            whole: T = begun.value
            return whole
        loader = _SegmentLoader(self._store, self._access, self._cache_keys, self._proof, begun.epochs)
        try:
            done = yield from self._continued(begun, loader)
        finally:
            begun.steps.close()
        if done is None:
            done = yield transaction.through(with_segments, self._store, loader.found)
            if done is None:
                return None  # type: ignore[return-value]  # as above
            loader.add(done.read)
        yield from loader.fill()
        return done.value

    def _continued(self, begun: Begun[T], loader: "_SegmentLoader") -> CachedFlow[Done[T] | None]:
        """Continue a program after its transaction. Returns None if all of it must run again, in a new one.

        This happens if it asks for more than segments, or if the cache has no segment of the checkpoint that is
        read, which the database then returns whole.
        """
        call = begun.call
        try:
            while call is not None:
                if wants_segments(call):
                    yield from loader.ask_cache(needed_by(call))
                    if begun.finds and not any(loader.found.values()):
                        return None
                    if not (yield from loader.ask_database(needed_by(call))):
                        return None
                    answer = answer_to(call, loader.found)
                elif (known := begun.answered(call)) is not None:
                    (answer,) = known
                else:
                    return None
                call = begun.next_call(answer)
        except StopIteration as stop:
            return Done(stop.value, {})
        return None

    def _cache_keys_of(self, thread_ids: Collection[str]) -> list[bytes]:
        return [self._cache_keys.key(thread_id) for thread_id in thread_ids]


class _SegmentLoader:
    """The segments that one transaction needs, as they are found."""

    def __init__(
        self, store: Store, access: Access, cache_keys: CacheKeys, proof: SegmentProof, epochs: Mapping[str, int]
    ) -> None:
        self.found: dict[str, dict[bytes, bytes]] = {}
        self._store = store
        self._access = access
        self._cache_keys = cache_keys
        self._proof = proof
        self._epochs = epochs
        self._tokens: dict[str, bytes] = {}
        self._new: dict[str, dict[bytes, bytes]] = {}

    def ask_cache(self, needed: Mapping[str, Collection[bytes]]) -> CachedFlow[None]:
        """Find segments in the cache."""
        keys = lacking(needed, self.found)
        cache_keys = {self._cache_keys.key(thread_id): thread_id for thread_id in keys}
        asked = {
            cache_key: CacheRequest(self._epochs.get(name, 0), keys[name]) for cache_key, name in cache_keys.items()
        }
        found = (yield from self._access.get(asked)) if asked else {}
        for cache_key, got in found.items():
            thread_id = cache_keys[cache_key]
            self._tokens.setdefault(thread_id, got.token)
            self.found.setdefault(thread_id, {}).update(proven(self._proof, thread_id, got.entries))

    def ask_database(self, needed: Mapping[str, Collection[bytes]]) -> CachedFlow[bool]:
        """Read the segments that are not found yet. Returns whether all are there."""
        keys = lacking(needed, self.found)
        if keys:
            self.add((yield from on_database(Transaction(fetched, (self._store, keys)))))
        return not lacking(needed, self.found)

    def add(self, read: Segments) -> None:
        """Add segments read from the database."""
        for thread_id, segments in read.items():
            self.found.setdefault(thread_id, {}).update(segments)
            self._new.setdefault(thread_id, {}).update(segments)

    def fill(self) -> CachedFlow[None]:
        """Give the cache the entries that it lacked."""
        fillings = {}
        for thread_id, segments in self._new.items():
            token = self._tokens.get(thread_id)
            entries = proven(self._proof, thread_id, segments) if token else {}
            if token and entries:
                fillings[self._cache_keys.key(thread_id)] = Filling(token, entries)
        yield from self._access.set(fillings)


class CachedDriver:
    """Runs transactions on a saver's database, and asks a cache for the segments."""

    def __init__(self, saver: Saver, cache: Cache, flows: Flows, *, owns_cache: bool) -> None:
        self._saver = saver
        self._driver = saver._driver  # noqa: SLF001 - this saver is made of the other's parts
        self._cache = cache
        self._flows = flows
        self._owns_cache = owns_cache

    def __str__(self) -> str:
        return f"{self._driver}, cached in {self._cache}"

    def run(self, transaction: Transaction[T]) -> T:
        """Run the program and return its result."""
        return play(self._flows.flow(transaction), self._answer)

    async def arun(self, transaction: Transaction[T]) -> T:
        """Like `run`, for asyncio."""
        return await aplay(self._flows.flow(transaction), self._aanswer)

    def close(self) -> None:
        """Close the saver, and the cache if no other saver has it."""
        play(self._flows.forget_pending(), self._answer)
        try:
            self._saver.close()
        finally:
            if self._owns_cache:
                self._cache.close()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await aplay(self._flows.forget_pending(), self._aanswer)
        try:
            await self._saver.aclose()
        finally:
            if self._owns_cache:
                await self._cache.aclose()

    def _answer(self, asked: Transaction[Any] | CacheCall) -> Any:
        return asked.on(self._cache) if isinstance(asked, CacheCall) else self._driver.run(asked)

    async def _aanswer(self, asked: Transaction[Any] | CacheCall) -> Any:
        return await (asked.aon(self._cache) if isinstance(asked, CacheCall) else self._driver.arun(asked))
