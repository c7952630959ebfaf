"""The live stream: tells a browser when a thread that it shows has changed, or when the list of threads has.

A database does not call back, so a watch asks again and again: one for each thread that is open in any browser and one
for the list, however many browsers look. A watch ends when its last browser leaves.
"""

import asyncio
import json
import logging
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from threadmark import SaverProtocol, ThreadmarkError
from threadmark.types import HistoryEntry, ThreadInfo
from threadmark_cli.page.shapes import thread_shape, time_text

_LOOKED_AT = 8
"""How many of the newest checkpoints are compared. Those of a subgraph that runs may stand before the graph's own."""

_TOTALS_EVERY = 10
"""After so many looks the whole thread is counted, too: a removal need not change the newest rows."""

_THREADS = 50
"""How many of the threads that were used last are compared."""

_LIST_EVERY = 2
"""The list of threads is looked at less often than a thread, by this factor."""

_log = logging.getLogger("threadmark.page")


class Live:
    """The watches of one server."""

    def __init__(self, saver: SaverProtocol, *, every: float = 1.0, heartbeat: float = 15.0) -> None:
        self._saver = saver
        self._every = every
        self._heartbeat = heartbeat
        self._watches: dict[str | None, _Watch] = {}
        self._closed = False

    @property
    def watched(self) -> list[str]:
        """The threads that are open in a browser."""
        return [thread for thread in self._watches if thread is not None]

    @property
    def looks(self) -> int:
        """How often the threads that are open now were looked at."""
        return sum(watch.looks for thread, watch in self._watches.items() if thread is not None)

    @property
    def looks_at_list(self) -> int:
        """How often the list of threads was looked at, since it is open in a browser."""
        return self._watches[None].looks if None in self._watches else 0

    async def events(self, thread: str | None, *, with_list: bool = False) -> AsyncIterator[str]:
        """Yield the lines of a stream of events about a thread, about the list of threads, or both.

        The stream ends when the server stops, or, unless it has the list, when the thread is gone.
        """
        wanted = [*([] if thread is None else [thread]), *([None] if with_list else [])]
        if self._closed or not wanted:
            return
        inbox: _Inbox = asyncio.Queue()
        joined = {self._watch_of(each) for each in wanted}
        for watch in joined:
            watch.join(inbox)
        try:
            yield ": watching\n\n"  # not said before it does
            while joined:
                try:
                    event = await asyncio.wait_for(inbox.get(), self._heartbeat)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if isinstance(event, str):
                    yield event
                else:
                    joined.discard(event)
        finally:
            for watch in joined:
                watch.leave(inbox)

    def close(self) -> None:
        """End all streams, so that the server can stop."""
        self._closed = True
        for watch in list(self._watches.values()):
            watch.end()

    def _watch_of(self, thread: str | None) -> "_Watch":
        """Return the watch of a thread, or of the list."""
        watch = self._watches.get(thread)
        if watch is None:
            if thread is None:
                watch = _ListWatch(self._saver, self._every * _LIST_EVERY, self._forget)
            else:
                watch = _ThreadWatch(self._saver, thread, self._every, self._forget)
            self._watches[thread] = watch
        return watch

    def _forget(self, watch: "_Watch") -> None:
        for thread in [key for key, each in self._watches.items() if each is watch]:
            del self._watches[thread]


_Inbox = asyncio.Queue["str | _Watch"]
"""The queue of a browser's events. The watch itself is the last one that it puts there."""


class _Watch:
    """Looks at something, and tells all who joined."""

    def __init__(self, name: str, every: float, on_end: Callable[["_Watch"], None]) -> None:
        self._name = name
        self._every = every
        self._on_end = on_end
        self.looks = 0
        self._inboxes: set[_Inbox] = set()
        self._task = asyncio.create_task(self._look_on(), name=f"watch of {name}")

    def join(self, inbox: _Inbox) -> None:
        """Put events there from now on."""
        self._inboxes.add(inbox)

    def leave(self, inbox: _Inbox) -> None:
        """Take no more events. With the last one who leaves, the looking ends."""
        self._inboxes.discard(inbox)
        if not self._inboxes:
            self.end()

    def end(self) -> None:
        """Tell all that there is nothing more to come."""
        self._task.cancel()
        self._on_end(self)
        for inbox in self._inboxes:
            inbox.put_nowait(self)

    @abstractmethod
    async def look(self) -> bool:
        """Look once, and send the changes. Returns whether there will be more to see."""

    def tell(self, event: str) -> None:
        """Put an event into every inbox."""
        for inbox in self._inboxes:
            inbox.put_nowait(event)

    async def _look_on(self) -> None:
        is_failing = False
        while True:
            try:
                if not await self.look():
                    self.end()
                    return
                self.looks += 1
                is_failing = False
            except Exception as error:  # noqa: BLE001 - a browser must not be left waiting for nothing
                if not is_failing:  # the database may be away for a while
                    unexpected = not isinstance(error, ThreadmarkError)
                    _log.warning("looking at %s failed: %s", self._name, error, exc_info=unexpected)
                is_failing = True
            await asyncio.sleep(self._every)


class _ThreadWatch(_Watch):
    """Looks at the newest checkpoints of one thread."""

    def __init__(self, saver: SaverProtocol, thread: str, every: float, on_end: Callable[[_Watch], None]) -> None:
        self._saver = saver
        self._thread = thread
        self._seen: tuple[Any, ...] | None = None
        self._totals: Any = None
        super().__init__(f"thread {thread!r}", every, on_end)

    async def look(self) -> bool:
        """Look once: at totals only if the newest checkpoints have changed, or now and then."""
        page = await self._saver.ahistory(self._thread, ns=None, limit=_LOOKED_AT)
        now = tuple(map(_marks, page.entries))
        if self._seen is None or now != self._seen or not now or self.looks % _TOTALS_EVERY == 0:
            info = await self._saver.aget_thread(self._thread)
            if info is None:
                self.tell(_event("gone", {}))
                return False
            totals = (info.checkpoints, info.size_bytes, info.status, info.newest)
            if self._seen is not None and (now != self._seen or totals != self._totals):
                self.tell(_change(page.entries, info))
            self._seen, self._totals = now, totals
        return True


class _ListWatch(_Watch):
    """Looks at the threads that were used last."""

    def __init__(self, saver: SaverProtocol, every: float, on_end: Callable[[_Watch], None]) -> None:
        self._saver = saver
        self._seen: dict[str, ThreadInfo] | None = None
        super().__init__("the list of threads", every, on_end)

    def join(self, inbox: _Inbox) -> None:
        """Put events there from now on, beginning with all that is known."""
        super().join(inbox)
        if self._seen is not None:
            inbox.put_nowait(_listed(self._seen.values(), ()))

    async def look(self) -> bool:
        """Look once. The first look tells everything: the list may have changed since the browser has fetched it."""
        page = await self._saver.alist_threads(sort="-updated", limit=_THREADS)
        now = {info.id: info for info in page.threads}
        seen = self._seen or {}
        changed = [info for info in page.threads if seen.get(info.id) != info]
        gone = [info.id for info in seen.values() if info.id not in now and _is_missed(info, page.threads)]
        if self._seen is None or changed or gone:
            self.tell(_listed(changed, gone))
        self._seen = now
        return True


def _is_missed(info: ThreadInfo, now: Sequence[ThreadInfo]) -> bool:
    """Whether a thread that is not among those of now was removed: it did not only come after the last of them."""
    return len(now) < _THREADS or info.updated_at > now[-1].updated_at


def _marks(entry: HistoryEntry) -> tuple[Any, ...]:
    """The parts of a checkpoint that change when anything of it does."""
    return entry.ns, entry.id, entry.size_bytes, tuple(entry.writes)


def _change(entries: Sequence[HistoryEntry], info: ThreadInfo) -> str:
    newest: dict[str, str] = {}
    for entry in entries:
        newest.setdefault(entry.ns, entry.id)
    return _event("change", {"newest": newest, "checkpoints": info.checkpoints, "updated": time_text(info.updated_at)})


def _listed(changed: Iterable[ThreadInfo], gone: Sequence[str]) -> str:
    """Return the event for rows of the list, which need no metadata."""
    threads = [{**thread_shape(info), "metadata": {}} for info in changed]
    return _event("threads", {"threads": threads, "gone": list(gone)})


def _event(kind: str, data: Mapping[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"
