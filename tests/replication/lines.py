"""Two databases whose connections fail or hang on command, and pairs of them."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from patience import PATIENCE, wait_until
from threadmark import Saver, TransientStoreError, replicated
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark.program import Driver, Transaction
from threadmark.store.replica import ReplicaStore
from threadmark.types import ReplicatedSaver


class Line:
    """The line to a real driver: it can be cut, and it can be so that nothing comes back."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.cut = False
        self.asked = 0
        """How many transactions were asked for."""
        self.before: Callable[[Transaction[Any]], None] | None = None
        """Called with each transaction before it runs."""
        self.after: Callable[[Transaction[Any]], None] | None = None
        """Called with each transaction after it was carried out."""
        self._free = threading.Event()
        self._free.set()

    def __str__(self) -> str:
        return str(self.driver)

    def hang(self) -> None:
        """Let nothing come back until `resume`."""
        self._free.clear()

    def resume(self) -> None:
        """Go on."""
        self._free.set()

    def run(self, transaction: Transaction[Any]) -> Any:
        self.asked += 1
        assert self._free.wait(PATIENCE)
        if self.cut:
            raise TransientStoreError("connection refused")
        if self.before is not None:
            self.before(transaction)
        result = self.driver.run(transaction)
        if self.after is not None:
            self.after(transaction)
        return result

    async def arun(self, transaction: Transaction[Any]) -> Any:
        while not self._free.is_set():  # noqa: ASYNC110 - it is set by whatever thread
            await asyncio.sleep(0.001)
        return self.run(transaction)

    def close(self) -> None:
        """Leave the driver open: other pairs use it, as other processes would."""

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""


class Database:
    """A database in memory, and lines to it."""

    def __init__(self, make_driver: Callable[[], Driver] = MemoryDriver, store: ReplicaStore | None = None) -> None:
        self.driver = make_driver()
        self.store = MemoryStore() if store is None else store

    def saver(self) -> Saver:
        """A separate saver, which is not replicated: it looks into this database only."""
        return Saver(self.store, self.driver)

    def line(self) -> Line:
        """A line to it."""
        return Line(self.driver)


class Opened:
    """A replicated saver, as one process has it, and its two lines."""

    def __init__(self, primary: Database, secondary: Database, **options: Any) -> None:
        self.primary, self.secondary = primary.line(), secondary.line()
        options = {"health_interval": 0.01, "drain_timeout": 5.0} | options
        self.saver: ReplicatedSaver = replicated(
            Saver(primary.store, self.primary), Saver(secondary.store, self.secondary), **options
        )

    def set_deadline(self, seconds: float) -> None:
        """Let each transaction take so long from now on: a short deadline only while a database hangs.

        On a busy machine one that answers may miss it as well.
        """
        driver: Any = self.saver._driver
        driver._player._deadline = seconds

    def end_background(self) -> None:
        """Copy the waiting changes and end the thread that does so: from now on, only the test makes transactions."""
        driver: Any = self.saver._driver
        assert driver._background.finish(PATIENCE, PATIENCE) == 0


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until something is true."""
    wait_until(condition, "it never came true")


def config(thread_id: str = "thread") -> dict[str, Any]:
    """The configuration of a thread."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def checkpoint(number: int) -> Any:
    """A checkpoint; greater numbers are newer."""
    return {
        "v": 4,
        "id": f"{number:032x}",
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": {"n": number, "text": "some text " * 50},
        "channel_versions": {"n": number, "text": 1},
        "versions_seen": {},
    }


def put(saver: Saver, number: int, thread_id: str = "thread") -> dict[str, Any]:
    """Put a checkpoint that continues nothing."""
    return saver.put(config(thread_id), checkpoint(number), {"step": number}, {"n": number, "text": 1})


def number_in(saver: Saver, thread_id: str = "thread") -> int | None:
    """The number of the newest checkpoint."""
    found = saver.get(config(thread_id))
    return None if found is None else found["channel_values"]["n"]
