"""The live stream: who looks at a thread is told when something in it changes.

Nothing in a database calls back, so a watch asks again and again: one for each thread that anybody looks at, however
many look, until the last one leaves.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

from threadmark import SaverProtocol, ThreadmarkError
from threadmark.types import HistoryEntry
from threadmark_cli.page.shapes import time_text

_LOOKED_AT = 8
"""How many of the newest checkpoints are compared. Those of a subgraph that runs may stand before the graph's own."""

_TOTALS_EVERY = 10
"""After so many looks the whole thread is counted, too: what was removed may be no newer than anything."""

_log = logging.getLogger("threadmark.page")


class Live:
    """The watches of one server."""

    def __init__(self, saver: SaverProtocol, *, every: float = 1.0, heartbeat: float = 15.0) -> None:
        self._saver = saver
        self._every = every
        self._heartbeat = heartbeat
        self._watches: dict[str, _Watch] = {}
        self._closed = False

    @property
    def watched(self) -> list[str]:
        """The threads that somebody looks at."""
        return list(self._watches)

    @property
    def looks(self) -> int:
        """How often the threads that somebody looks at now were looked at."""
        return sum(watch.looks for watch in self._watches.values())

    async def events(self, thread: str) -> AsyncIterator[str]:
        """Yield the lines of a stream of events, until the thread is gone or the server stops."""
        if self._closed:
            return
        watch = self._watches.get(thread)
        if watch is None:
            watch = self._watches[thread] = _Watch(self._saver, thread, self._every, self._forget)
        inbox = watch.join()
        try:
            yield ": watching\n\n"  # not said before it does
            while True:
                try:
                    event = await asyncio.wait_for(inbox.get(), self._heartbeat)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if event is None:
                    return
                yield event
        finally:
            watch.leave(inbox)

    def close(self) -> None:
        """End all streams, so that the server can stop."""
        self._closed = True
        for watch in list(self._watches.values()):
            watch.end()

    def _forget(self, watch: "_Watch") -> None:
        if self._watches.get(watch.thread) is watch:
            del self._watches[watch.thread]


class _Watch:
    """Looks at one thread, and tells everybody who joined."""

    def __init__(self, saver: SaverProtocol, thread: str, every: float, on_end: Callable[["_Watch"], None]) -> None:
        self.thread = thread
        self._saver = saver
        self._every = every
        self._on_end = on_end
        self.looks = 0
        self._inboxes: set[asyncio.Queue[str | None]] = set()
        self._task = asyncio.create_task(self._look_on(), name=f"watch of {thread!r}")

    def join(self) -> "asyncio.Queue[str | None]":
        """Return where events will be put; None is the last one."""
        inbox: asyncio.Queue[str | None] = asyncio.Queue()
        self._inboxes.add(inbox)
        return inbox

    def leave(self, inbox: "asyncio.Queue[str | None]") -> None:
        """Take no more events. With the last one who leaves, the looking ends."""
        self._inboxes.discard(inbox)
        if not self._inboxes:
            self.end()

    def end(self) -> None:
        """Tell everybody that there is nothing more to come."""
        self._task.cancel()
        self._on_end(self)
        self._tell(None)

    def _tell(self, event: str | None) -> None:
        for inbox in self._inboxes:
            inbox.put_nowait(event)

    async def _look_on(self) -> None:
        seen: tuple[Any, ...] | None = None
        totals: Any = None
        is_failing = False
        while True:
            try:
                page = await self._saver.ahistory(self.thread, ns=None, limit=_LOOKED_AT)
                now = tuple(map(_marks, page.entries))
                if seen is None or now != seen or not now or self.looks % _TOTALS_EVERY == 0:
                    info = await self._saver.aget_thread(self.thread)
                    if info is None:
                        self._tell("event: gone\ndata: {}\n\n")
                        self.end()
                        return
                    counted = (info.checkpoints, info.size_bytes, info.status, info.newest)
                    if seen is not None and (now != seen or counted != totals):
                        self._tell(_change(page.entries, info.checkpoints, time_text(info.updated_at)))
                    seen, totals = now, counted
                self.looks += 1
                is_failing = False
            except Exception as error:  # noqa: BLE001 - whoever looks on must not be left waiting for nothing
                if not is_failing:  # the database may be away for a while
                    unexpected = not isinstance(error, ThreadmarkError)
                    _log.warning("looking at thread %r failed: %s", self.thread, error, exc_info=unexpected)
                is_failing = True
            await asyncio.sleep(self._every)


def _marks(entry: HistoryEntry) -> tuple[Any, ...]:
    """What of a checkpoint changes when anything of it does."""
    return entry.ns, entry.id, entry.size_bytes, tuple(entry.writes)


def _change(entries: list[HistoryEntry], checkpoints: int, updated: str | None) -> str:
    newest: dict[str, str] = {}
    for entry in entries:
        newest.setdefault(entry.ns, entry.id)
    data = json.dumps({"newest": newest, "checkpoints": checkpoints, "updated": updated})
    return f"event: change\ndata: {data}\n\n"
