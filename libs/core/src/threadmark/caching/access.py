"""The way to a cache, none of whose errors reach a caller: without the cache everything works, only slower.

After a failure the cache is not asked for a while, then one caller tries again. Places that it has to forget are
remembered here meanwhile, and are the first thing that it is told when it is back.
"""

import logging
import threading
import time
from collections.abc import Collection, Mapping

from threadmark.caching.cache import Cache, Filling, Got, Wanted
from threadmark.caching.steps import CacheCall, Exchange
from threadmark.forks import begin_anew_after_fork
from threadmark.logs import log

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
"""Seconds for which a cache is not asked after the first failure, and at most. Each further failure doubles them."""

MOST_PENDING = 100_000
"""How many places are remembered for a cache that is away. Of more, the oldest are given up, and only expire."""


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
        begin_anew_after_fork(self)

    @property
    def is_open(self) -> bool:
        """Whether the cache may be asked. To read this begins no attempt."""
        return time.monotonic() >= self._until

    def get(self, wanted: Mapping[bytes, Wanted]) -> Exchange[dict[bytes, Got]]:
        """Return what the cache has of these places, nothing where it cannot be asked."""
        if not (yield from self._forget_pending()):
            return {}
        found: dict[bytes, Got] | None = yield from self._asked(CacheCall("get", (wanted, self._ttl, self._within)))
        return found or {}

    def set(self, fillings: Mapping[bytes, Filling]) -> Exchange[None]:
        """Add entries, where the cache can be asked."""
        if fillings and (yield from self._forget_pending()):
            yield from self._asked(CacheCall("set", (fillings, self._within)))

    def forget(self, places: Collection[bytes]) -> Exchange[None]:
        """Have the cache forget places: now, or as soon as it can be asked."""
        self.forget_later(places)
        yield from self._forget_pending()

    def forget_later(self, places: Collection[bytes]) -> None:
        """Remember that places are to be forgotten before the cache is asked for anything."""
        until = time.monotonic() + self._ttl + self._within
        with self._lock:
            self._pending.update(dict.fromkeys(places, until))
            while len(self._pending) > MOST_PENDING:
                del self._pending[next(iter(self._pending))]

    def begin_anew(self) -> None:
        """In the child of a fork, where another thread may have held the lock. What is pending stays so in both."""
        self._lock = threading.Lock()

    def _forget_pending(self) -> Exchange[bool]:
        """Tell the cache what it still has to forget. Returns whether it may be asked for more."""
        if not self._claim_attempt():
            return False
        places = self._take_pending()
        if not places:
            return True
        told = False
        try:
            yield CacheCall("forget", (list(places), self._within))
            told = True
            self._succeeded()
        except Exception as error:  # noqa: BLE001 - an error of the cache must not reach a caller
            self._failed(error)
        finally:  # a caller may be cancelled
            if not told:
                with self._lock:
                    self._pending = {**places, **self._pending}
        return told

    def _asked(self, call: CacheCall) -> Exchange[dict[bytes, Got] | None]:
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
        return {place: until for place, until in pending.items() if until > now}

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
