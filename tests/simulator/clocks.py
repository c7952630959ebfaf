"""Simulated time: an event loop that skips every wait, clocks of machines that jump and drift, and seeded chance.

While a world runs, `time`, `random`, `secrets` and ids answer from its seed, so that the same seed gives the same run.
"""

import asyncio
import heapq
import random
import secrets
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from typing import Any
from unittest import mock

from threadmark import ids
from threadmark.effects import holder, table
from threadmark.effects.holder import Holder

BEGINNING = 1_780_000_000.0
"""The time of day at which every world begins, in seconds since 1970."""


class StuckError(AssertionError):
    """Nothing will ever happen any more, and something is still awaited."""


class _NoFiles:
    """Stands for the selector of an event loop: to wait is to set the clock forward."""

    def __init__(self, loop: "SimulatedLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise StuckError("all tasks wait for something that never comes")
        self._loop.now += timeout
        return []


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop whose time passes only while nothing can be done."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._selector = _NoFiles(self)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        """Return the seconds since the world began."""
        return self.now

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no files."""

    def _write_to_self(self) -> None:
        """No other thread wakes this one."""

    def forget_all(self) -> None:
        """Forget every callback that is still to come."""
        heapq.heapify(self._scheduled)
        self._scheduled.clear()
        self._ready.clear()

    _scheduled: list[Any]
    _ready: Any


class Host:
    """A computer with processes, which knows those that run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.processes: dict[int, str] = {}
        """When each began, by its number, which the next one may have."""


class Machine:
    """The clocks of one process or server: they may be wrong, and run too fast or too slow."""

    def __init__(self, name: str, loop: SimulatedLoop, chance: random.Random, host: "Host | None" = None) -> None:
        self.name = name
        self.loop = loop
        self.host = host or Host(name)
        self.holder = Holder(self.host.name, 0, name, name)
        self.claims: set[str] = set()
        """Those of effects whose calls run in this process."""
        self.entropy = random.Random(f"{name} {chance.random()}")
        self.offset = 0.0
        """By how many seconds its time of day is wrong."""
        self._rate = 1.0
        self._since, self._shown = loop.now, 1000.0 + loop.now
        self.ids = ids._Clock()

    def begin(self, number: int) -> None:
        """Begin the process, whose number another one may have had before."""
        self.holder = self.holder._replace(process=number)
        self.host.processes[number] = self.name

    @property
    def monotonic(self) -> float:
        """Seconds of a clock that cannot be set, but may drift."""
        return self._shown + (self.loop.now - self._since) * self._rate

    @property
    def wall(self) -> float:
        """The time of day, in seconds since 1970."""
        return BEGINNING + self.monotonic + self.offset

    def drift(self, rate: float) -> None:
        """Let its clocks run at another rate from now on."""
        self._shown, self._since, self._rate = self.monotonic, self.loop.now, rate


HERE: ContextVar[Machine] = ContextVar("machine")
"""The machine on which the running code is."""


class _Ids:
    """Stands for the clock of ids, of which each process has one."""

    def ticks(self) -> int:
        return HERE.get().ids.ticks()


class _Claims:
    """Stands for the claims whose calls run in the process."""

    def add(self, claim: str) -> None:
        HERE.get().claims.add(claim)

    def discard(self, claim: str) -> None:
        HERE.get().claims.discard(claim)

    def __contains__(self, claim: str) -> bool:
        return claim in HERE.get().claims


@cache
def _imported_by_name() -> list[tuple[Any, str, Any]]:
    """Return the places where modules have imported a function itself, each with its replacement."""
    stands: list[tuple[Any, Any]] = [
        (time.monotonic, _monotonic),
        (uuid.uuid4, _uuid4),
        (secrets.token_bytes, _token_bytes),
        (table.moment, _moment),
        (holder.this_process, lambda: HERE.get().holder),
        (holder._began, lambda process: HERE.get().host.processes.get(process, "")),
        (holder.running, _Claims()),
    ]
    return [
        (module, name, answer)
        for path, module in list(sys.modules.items())
        if path.startswith("threadmark")
        for name, value in vars(module).items()
        for function, answer in stands
        if value is function
    ]


@contextmanager
def simulated_time(outside: Machine) -> Iterator[None]:
    """Answer from the machines of a world. Code that belongs to no machine runs `outside`."""
    token, state = HERE.set(outside), random.getstate()
    random.seed(outside.entropy.random())
    with ExitStack() as patched:

        def patch(place: Any, name: str, answer: Any) -> None:
            patched.enter_context(mock.patch.object(place, name, answer))

        for module, name, answer in _imported_by_name():
            patch(module, name, answer)
        patch(time, "monotonic", _monotonic)
        patch(time, "monotonic_ns", lambda: int(HERE.get().monotonic * 1e9))
        patch(time, "time_ns", lambda: int(HERE.get().wall * 1e9))
        patch(time, "time", lambda: HERE.get().wall)
        patch(secrets, "randbits", _randbits)
        patch(ids, "_clock", _Ids())
        try:
            yield
        finally:
            random.setstate(state)
            HERE.reset(token)


def _monotonic() -> float:
    return HERE.get().monotonic


def _moment() -> str:
    return datetime.fromtimestamp(HERE.get().wall, UTC).isoformat()


def _uuid4() -> uuid.UUID:
    return uuid.UUID(int=HERE.get().entropy.getrandbits(128), version=4)


def _randbits(bits: int) -> int:
    return HERE.get().entropy.getrandbits(bits)


def _token_bytes(count: int = 32) -> bytes:
    return HERE.get().entropy.randbytes(count)
