"""Signals whose handler raises an exception in the main thread, at any moment of a call.

CPython runs a handler between two instructions of the main thread, and not between all of them: it looks for signals
when a call returns, when a function begins and when a loop jumps back. `Step` marks a signal as arrived at the n-th
instruction of a call and leaves it to the interpreter when to notice; so whatever n is, the exception comes where a
real one can come, and all n together are all the places where one can. `Moment` waits for a while, as a user does.
"""

import _thread
import asyncio
import inspect
import random
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol


class Strike(Protocol):
    """Raises in a call."""

    def begin(self) -> None:
        """From now on."""

    def end(self) -> None:
        """Not any more."""


class Interruptions:
    """Runs calls that a signal interrupts, or not: whatever it does, it does not come after the call."""

    def __init__(self, raised: type[BaseException], *, asynchronous: bool = False, cancels: bool = False) -> None:
        self._raised = raised
        self._asynchronous = asynchronous
        self._cancels = cancels
        self._on = False
        self.raised = 0
        signal.signal(signal.SIGALRM, self._handle)

    def during(self, call: Callable[[], Any], strike: Strike) -> tuple[bool, Any]:
        """Whether the call returned, and its result."""
        returned, result = False, None
        try:
            try:
                self._on = True
                strike.begin()
                result = call()
                returned = True
            finally:
                self._on = False
                strike.end()
        except BaseException as error:
            if not _comes_of(error, (self._raised, KeyboardInterrupt, asyncio.CancelledError)):
                raise
        return returned, result

    def _handle(self, _: int, frame: FrameType | None) -> None:
        if not self._on:
            return
        if self._asynchronous and not _may_strike(frame):
            signal.setitimer(signal.ITIMER_REAL, 2e-5)
            return
        self.raised += 1
        if self._cancels:  # asyncio.run has taken SIGINT over, and cancels its task
            signal.raise_signal(signal.SIGINT)
        else:
            raise self._raised


def _may_strike(frame: FrameType | None) -> bool:
    """Whether an event loop survives an exception here: in a task, and while it waits.

    Elsewhere asyncio itself is left half-way: a callback taken from its list and not called, a loop half-made. So too
    if a task is made: it may begin, and is not among those that are waited for before the loop is closed.
    """
    if frame is not None and frame.f_code.co_name == "select":
        return True
    while frame is not None and frame.f_code.co_name != "create_task":
        if frame.f_code.co_flags & inspect.CO_COROUTINE:
            return True
        frame = frame.f_back
    return False


def _comes_of(error: BaseException | None, kinds: tuple[type[BaseException], ...]) -> bool:
    """Whether an exception is one of these, or was made of one."""
    while error is not None:
        if isinstance(error, kinds):
            return True
        error = error.__cause__ or error.__context__
    return False


class Moment:
    """A signal after a number of seconds, and perhaps more signals shortly afterwards."""

    def __init__(self, delay: float, again: float = 0.0) -> None:
        self._delay = max(delay, 1e-6)
        self._again = again

    def begin(self) -> None:
        """From now on."""
        signal.setitimer(signal.ITIMER_REAL, self._delay, self._again)

    def end(self) -> None:
        """Not any more."""
        signal.setitimer(signal.ITIMER_REAL, 0)


class Moments:
    """Random moments within the time that calls of one kind take."""

    def __init__(self, seed: int, *, once: bool) -> None:
        self._random = random.Random(seed)
        self._once = once
        self._took: dict[str, float] = {}

    def next(self, kind: str) -> Moment:
        """One of them; a quarter strike again and again until the call is over, unless once is enough."""
        delay = self._random.uniform(0, 1.2) * self._took.get(kind, 0.001)
        repeats = self._random.random() < 0.25 and not self._once
        return Moment(delay, self._random.uniform(2e-5, 2e-4) if repeats else 0.0)

    def timed(self, kind: str, call: Callable[[], Any]) -> Any:
        """The result of the call, whose time is recorded."""
        start = time.perf_counter()
        result = call()
        took = time.perf_counter() - start
        self._took[kind] = took if kind not in self._took else 0.7 * self._took[kind] + 0.3 * took
        return result


class _Arrived:
    """`arrived[number]` marks a signal as arrived, and no handler runs before the caller's next instruction."""

    __getitem__: Any = _thread.interrupt_main  # a function that is no method: it gets the number only


_arrived = _Arrived()


class Step:
    """A signal at the n-th instruction."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.reached = False

    def begin(self) -> None:
        """From now on."""
        # From Python 3.12 on, settrace asks for instructions only if a frame has asked for them before.
        sys._getframe().f_trace_opcodes = True
        sys.settrace(self._trace)

    def end(self) -> None:
        """Not any more."""
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "call":
            frame.f_trace = self._trace  # Python 3.13 takes note of f_trace_opcodes only if f_trace is set
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event != "opcode":
            return self._trace
        self._number -= 1
        if self._number > 0:
            return self._trace
        self.reached = True
        sys.settrace(None)
        frame.f_trace = None
        return _arrived[signal.SIGALRM]  # last, and by a subscription: after a call, the handler would run in here
