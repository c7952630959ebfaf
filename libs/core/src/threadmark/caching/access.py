"""Whether a cache is asked: not while it is away, which costs nothing but speed.

What a cache raises reaches no caller. After a failure it is left out for a while, then one caller tries again. What was
to be forgotten meanwhile is remembered here, and is the first thing that the cache hears when it is back.
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
"""Seconds for which a cache is left out after a failure. Each further one doubles it."""

MOST_PENDING = 100_000
"""So many places are remembered that a cache which is away must forget; of more, the first ones are not."""


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
        """Places to be forgotten, and when nothing of them can be left anyway."""
        begin_anew_after_fork(self)

    @property
    def is_open(self) -> bool:
        """Whether the cache may be asked. Nothing is claimed by looking."""
        return time.monotonic() >= self._until

    def get(self, wanted: Mapping[bytes, Wanted]) -> Exchange[dict[bytes, Got]]:
        """Return what is there of these places, nothing where the cache cannot be asked."""
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
        """In the child of a fork, where another thread may have held the lock. What is pending, the parent has the cache forget, too."""
        self._lock = threading.Lock()

    def _forget_pending(self) -> Exchange[bool]:
        """Pay what is pending. Returns whether the cache may be asked for more."""
        if not self._claim_attempt():
            return False
        places = self._take_pending()
        if not places:
            return True
        paid = False
        try:
            yield CacheCall("forget", (list(places), self._within))
            paid = True
            self._succeeded()
        except Exception as error:  # noqa: BLE001 - of a cache, which no caller must fail for
            self._failed(error)
        finally:  # a caller may be cancelled
            if not paid:
                with self._lock:
                    self._pending = {**places, **self._pending}
        return paid

    def _asked(self, call: CacheCall) -> Exchange[dict[bytes, Got] | None]:
        try:
            answer: dict[bytes, Got] | None = yield call
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(error)
            return None
        self._succeeded()
        return answer

    def _claim_attempt(self) -> bool:
        """Whether the cache may be asked. During an outage one caller may try, and the others wait for its luck."""
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
