"""`Lease`: the right to write to a thread during a `with` or `async with` block."""

import logging
import math
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from threadmark.errors import ClosedError, ConfigError, ThreadNotFoundError
from threadmark.leases.renewal import RenewalThread, Renewing
from threadmark.leases.taking import LeaseRequest, Taken, acquire, release, renew
from threadmark.program import Driver, arun, run
from threadmark.runtime.logs import log
from threadmark.runtime.processes import reset_after_fork
from threadmark.saver.kit import SaverContext, busy_error, lost_error
from threadmark.store.threads import LeaseRow

if TYPE_CHECKING:
    from threadmark.leases.renewal_aio import RenewalTask

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two checks of a lease that another holder has. Each pause is twice as long as the one before."""


class Lease:
    """The right to write to a thread, which one holder at a time has. `Saver.lease` returns one.

    `with` or `async with` takes the lease. During the block it is renewed in the background, and by everything that is
    stored under it; the end of the block releases it.
    """

    def __init__(
        self,
        driver: Driver,
        context: SaverContext,
        request: LeaseRequest,
        timeout: float | None,
        on_lost: "Callable[[Lease], object] | None",
    ) -> None:
        self._driver = driver
        self._context = context
        self._request = request
        self._timeout = timeout
        self._on_lost = on_lost
        self._entered = False
        self._taken: Taken | None = None
        self._renewing: Renewing | None = None
        self._renewal: RenewalThread | RenewalTask | None = None
        self._over = False
        self._notified = threading.Lock()
        self.lost = threading.Event()
        """Set as soon as the lease is known to be lost, or could not be renewed in time."""
        reset_after_fork(self)

    def __repr__(self) -> str:
        token = self._taken.token if self._taken else None
        return f"<Lease of thread {self.thread_id!r} for {self.holder!r}, token {token}>"

    @property
    def thread_id(self) -> str:
        """The id of the thread."""
        return self._request.thread_id

    @property
    def holder(self) -> str:
        """The name that others see when they find the thread busy."""
        return self._request.holder

    @property
    def token(self) -> int:
        """A number greater than that of every earlier lease of the thread."""
        return self._have().token

    @property
    def config(self) -> Any:
        """The configuration to start a run with: it names the thread and has the token for everything that is stored.

        After a rollback it may also name the checkpoint to go back to. Each access returns a new dictionary. (Its type
        is `Any`, because each engine has its own type for it.)
        """
        configurable: dict[str, Any] = {"thread_id": self.thread_id, "lease_token": self.token}
        if self._have().checkpoint_id is not None:
            configurable["checkpoint_id"] = self._have().checkpoint_id
        return {"configurable": configurable}

    def renew(self) -> None:
        """Extend the lease to its full time from now. Raises LeaseLostError if it is lost.

        The background renewal does this for you. Call it when you want to be certain that you still hold the lease.
        """
        token, sent = self.token, time.monotonic()
        self._renewed(sent, lives=run(self._driver, renew(self._context, self.thread_id, token, self._request.ttl)))

    async def arenew(self) -> None:
        """Like `renew`, for asyncio."""
        token, sent = self.token, time.monotonic()
        lives = await arun(self._driver, renew(self._context, self.thread_id, token, self._request.ttl))
        self._renewed(sent, lives=lives)

    def release(self) -> bool:
        """End the lease before its block ends. Returns False if it was lost or released before."""
        token = self.token
        if self._over:
            return False
        if self._renewal is not None:
            self._renewal.stop()
        return self._released(was_last=run(self._driver, release(self._context, self.thread_id, token)))

    async def arelease(self) -> bool:
        """Like `release`, for asyncio."""
        token = self.token
        if self._over:
            return False
        if self._renewal is not None:
            await self._renewal.astop()
        return self._released(was_last=await arun(self._driver, release(self._context, self.thread_id, token)))

    def __enter__(self) -> Self:
        self._enter()
        try:
            self._keep(self._take(), RenewalThread)
        except BaseException as error:
            self._exit(error)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit(error)

    async def __aenter__(self) -> Self:
        from threadmark.leases.renewal_aio import RenewalTask

        self._enter()
        try:
            self._keep(await self._atake(), RenewalTask)
        except BaseException as error:
            await self._aexit(error)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._aexit(error)

    def _reset_after_fork(self) -> None:
        """In the child of a fork: the lease belongs to the parent, which renews and releases it."""
        self._over, self._renewal = True, None
        self._notified, self.lost = threading.Lock(), threading.Event()

    def _enter(self) -> None:
        if self._entered:
            raise ConfigError("a lease is entered once: ask the saver for another one")
        self._entered = True

    def _take(self) -> float:
        """Take the lease. Returns the time at which it was asked for."""
        waiting = _Waiting(self._request, self._timeout)
        while True:
            sent = time.monotonic()
            found = run(self._driver, acquire(self._context, self._request))
            if isinstance(found, Taken):
                self._taken = found
                return sent
            time.sleep(waiting.pause(found))

    async def _atake(self) -> float:
        import asyncio

        waiting = _Waiting(self._request, self._timeout)
        while True:
            sent = time.monotonic()
            found = await arun(self._driver, acquire(self._context, self._request))
            if isinstance(found, Taken):
                self._taken = found
                return sent
            await asyncio.sleep(waiting.pause(found))

    def _keep(self, sent: float, kind: "type[RenewalThread | RenewalTask]") -> None:
        """Begin to renew the lease that was just taken."""
        renewing = partial(renew, self._context, self.thread_id, self.token, self._request.ttl)
        self._renewing = Renewing(self._driver, self._request.ttl / 1e6, sent, renewing)
        self._renewal = kind(self._renewing, self._lose)
        self._renewal.start()

    def _renewed(self, sent: float, *, lives: bool) -> None:
        if not lives:
            self._lose()
            raise lost_error(self.thread_id, self.token, None)
        if self._renewing is not None:
            self._renewing.schedule.renewed(sent)

    def _released(self, *, was_last: bool) -> bool:
        if not was_last:
            self._lose()
        self._over = True
        return was_last

    def _exit(self, error: BaseException | None) -> None:
        try:
            if self._taken is not None:
                self.release()
        except Exception as failure:
            if not self._may_leave(error, failure):
                raise

    async def _aexit(self, error: BaseException | None) -> None:
        try:
            if self._taken is not None:
                await self.arelease()
        except Exception as failure:
            if not self._may_leave(error, failure):
                raise

    def _may_leave(self, error: BaseException | None, failure: Exception) -> bool:
        """Return whether the block may end although the release failed: the lease then ends when its time is over."""
        if isinstance(failure, (ClosedError, ThreadNotFoundError)):  # there is nothing left to release
            self._lose()
        elif not self.lost.is_set():
            place, kind = str(self._driver), type(failure).__name__
            log.write(logging.WARNING, "%s: a lease could not be released (%s) and ends by itself", place, kind)
            return error is not None
        return True

    def _lose(self) -> None:
        if self._over:
            return
        self.lost.set()
        if self._notified.acquire(blocking=False) and self._on_lost is not None:
            try:
                self._on_lost(self)
            except Exception as error:  # noqa: BLE001 - the user's, which must not end its caller
                trace = "".join(traceback.format_exception(error))
                log.write(logging.ERROR, "%s: on_lost of a lease raised an error\n%s", str(self._driver), trace)

    def _have(self) -> Taken:
        if self._taken is None:
            raise ConfigError(
                f"the lease of thread {self.thread_id!r} is not taken yet: `with` or `async with` takes it"
            )
        return self._taken


class _Waiting:
    """How long to wait for a lease, and how long between two checks."""

    def __init__(self, request: LeaseRequest, timeout: float | None) -> None:
        self._thread_id = request.thread_id
        self._until = math.inf if timeout is None else time.monotonic() + timeout
        self._pause = _FIRST_PAUSE

    def pause(self, held: LeaseRow) -> float:
        """Return how long to wait before the next check. Raises ThreadBusyError when the time is over."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise busy_error(self._thread_id, held)
        pause = min(self._pause, held.left / 1e6, left)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return pause
