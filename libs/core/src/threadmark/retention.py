"""`Retention`: a service that repeats `saver.apply_retention` in a thread, or as a task of an event loop."""

import logging
import random
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from threadmark.errors import ClosedError, ConfigError, short_repr
from threadmark.model import Duration, Progress, RetentionReport
from threadmark.runtime.logs import log
from threadmark.runtime.processes import close_at_exit, reset_after_fork, was_closed
from threadmark.saver import SaverProtocol
from threadmark.saver.operations.retaining import retention_rule
from threadmark.saver.options import checked_duration

if TYPE_CHECKING:
    import asyncio

_FIRST_PAUSE = 1.0
"""Seconds after the first failure. Each further failure doubles the pause, up to `every`."""


class RetentionRules(TypedDict, total=False):
    """The arguments of `Saver.apply_retention` that select the checkpoints to remove."""

    keep_last: int | None
    older_than: Duration | None
    idle_for: Duration | None
    max_bytes: int | None
    owner: str | None
    metadata: Mapping[str, Any] | None


class Retention:
    """Calls `saver.apply_retention` with the same rules, again and again, from `start` to `stop`.

    `start` runs it in a daemon thread, `astart` as a task of the running event loop; `with` and `async with` start and
    stop it. An error is logged, and the retention is tried again after a growing pause; only a closed saver ends it
    early. Several may serve one database.

    `every` is the time from the end of one retention to the beginning of the next. A random part of up to `jitter` of
    it is added, so that processes that start together do not all begin at once; the first retention waits only for such
    a part.
    """

    def __init__(
        self,
        saver: SaverProtocol,
        *,
        every: Duration = timedelta(hours=1),
        jitter: float = 0.1,
        **rules: Unpack[RetentionRules],
    ) -> None:
        if isinstance(jitter, bool) or not isinstance(jitter, (int, float)) or not 0 <= jitter <= 1:
            raise ConfigError(f"jitter must be a number from 0 to 1, a part of `every`, not {short_repr(jitter)}")
        unknown = sorted(rules.keys() - RetentionRules.__annotations__.keys())
        if unknown:
            raise ConfigError(
                f"unknown rule {unknown[0]!r}: Retention takes {', '.join(RetentionRules.__annotations__)}"
            )
        retention_rule(**{name: rules.get(name) for name in RetentionRules.__annotations__})  # type: ignore[arg-type]  # checked there
        self._saver = saver
        self._every = checked_duration(every, "every").total_seconds()
        self._jitter = jitter
        self._rules = rules
        self._failures = 0
        self._stop: Callable[[], None] | None = None
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None
        self.last_report: RetentionReport | None = None
        """The report of the last retention that finished."""
        self.last_error: Exception | None = None
        """The error of the last retention; None if it did not fail."""
        reset_after_fork(self)

    def start(self) -> None:
        """Begin in a daemon thread. If the interpreter ends during a retention, it stops between two transactions."""
        self._expect_not_started()
        stopping = _Stopping()
        self._stop = stopping.set
        self._thread = threading.Thread(target=self._run, args=(stopping,), name="threadmark-retention", daemon=True)
        self._thread.start()
        close_at_exit(self)

    def stop(self) -> None:
        """Stop at once if it sleeps, otherwise after the running transaction. You may start it again."""
        thread = self._thread
        if self._stop is not None and thread is not None:
            self._stop()
            if thread is not threading.current_thread():
                thread.join()
            self._thread = self._stop = None
            was_closed(self)

    def close(self) -> None:
        """Like `stop`."""
        self.stop()

    async def astart(self) -> None:
        """Like `start`, as a task of the running event loop."""
        import asyncio

        self._expect_not_started()
        stopping = asyncio.Event()
        self._stop = stopping.set
        self._task = asyncio.get_running_loop().create_task(self._arun(stopping), name="threadmark-retention")

    async def astop(self) -> None:
        """Like `stop`, for a retention that `astart` began. Call it in the same event loop."""
        import asyncio

        task = self._task
        if self._stop is not None and task is not None:
            self._stop()
            await asyncio.wait([task])
            self._task = self._stop = None

    def _reset_after_fork(self) -> None:
        """In the child of a fork, which has neither the thread nor the event loop."""
        self._thread = self._task = self._stop = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await self.astart()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.astop()

    def _expect_not_started(self) -> None:
        running = (self._thread is not None and self._thread.is_alive()) or (
            self._task is not None and not self._task.done()
        )
        if running:
            raise ConfigError("this Retention is started already: stop it first, or make another one")

    def _run(self, stopping: "_Stopping") -> None:
        pause: float | None = self._part()
        while pause is not None and not stopping.wait(pause):
            try:
                report = self._saver.apply_retention(**self._rules, progress=_ends_when(stopping.is_set))
            except Exception as error:  # noqa: BLE001 - whatever it is, the next one may succeed
                pause = self._failed(error)
            else:
                pause = self._succeeded(report)

    async def _arun(self, stopping: "asyncio.Event") -> None:
        pause: float | None = self._part()
        while pause is not None and not await _waited(stopping.wait, pause):
            try:
                report = await self._saver.aapply_retention(**self._rules, progress=_ends_when(stopping.is_set))
            except Exception as error:  # noqa: BLE001 - whatever it is, the next one may succeed
                pause = self._failed(error)
            else:
                pause = self._succeeded(report)

    def _succeeded(self, report: RetentionReport) -> float:
        self._failures = 0
        self.last_report, self.last_error = report, None
        level = logging.WARNING if report.problems else logging.DEBUG
        log.write(level, "retention: %s", str(report))
        return self._every + self._part()

    def _failed(self, error: Exception) -> float | None:
        """Note an error. Returns the pause before the next attempt, None if there is none."""
        if isinstance(error, _StopError):
            return None
        self.last_error = error
        if isinstance(error, ClosedError):
            log.write(logging.INFO, "retention: it ends, because its saver was closed")
            return None
        pause = min(self._every, _FIRST_PAUSE * 2.0 ** min(self._failures, 32))
        self._failures += 1
        what = f"{type(error).__name__}: {error}"
        log.write(logging.ERROR, "retention failed, and is tried again in %.0f s: %s", pause, what)
        return pause + self._jitter * pause * random.random()  # noqa: S311 - no secret

    def _part(self) -> float:
        return self._every * self._jitter * random.random()  # noqa: S311 - no secret


class _StopError(Exception):
    """Ends a retention between two transactions."""


class _Stopping:
    """Wakes the thread that sleeps. Unlike an Event, it leaves no lock held if its setter is interrupted."""

    def __init__(self) -> None:
        self._set = False
        self._sleep = threading.Lock()
        self._sleep.acquire()

    def set(self) -> None:
        self._set = True
        with suppress(RuntimeError):  # it was set before, by a `stop` that was interrupted
            self._sleep.release()

    def is_set(self) -> bool:
        return self._set

    def wait(self, seconds: float) -> bool:
        """Sleep, but only until it is set. Returns whether it is set."""
        if not self._set:
            self._sleep.acquire(timeout=min(seconds, threading.TIMEOUT_MAX))
        return self._set


def _ends_when(is_set: Callable[[], bool]) -> Callable[[Progress], None]:
    def progress(_: Progress) -> None:
        if is_set():
            raise _StopError

    return progress


async def _waited(wait: Callable[[], Awaitable[object]], seconds: float) -> bool:
    """Wait for an event for this many seconds. Returns whether it was set."""
    import asyncio

    try:
        await asyncio.wait_for(wait(), seconds)
    except TimeoutError:
        return False
    return True
