"""`ForeignSaver`: the reading methods of a saver on the tables of LangGraph's own.

Threads are listed from the tables, without a value. A thread that is looked into is copied into memory once, and new
rows are added before each answer.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Self, Unpack

from threadmark import ConfigError, Saver
from threadmark.config import as_thread_id
from threadmark.ids import time_of_id
from threadmark.model import ThreadFilter, ThreadSort, ThreadStatus
from threadmark.saver.arguments import checked_count, cursor_of, place_of, thread_query, time_of
from threadmark.store.threads import ThreadOutline, ThreadRow, in_scope
from threadmark.types import ChannelStats, CheckpointRef, Stats, ThreadInfo, ThreadPage
from threadmark_cli.exits import RefusedError
from threadmark_cli.foreign.loading import LoadedThread
from threadmark_cli.foreign.rows import Beside, Namespace, Reader, Tables

_OF_A_THREAD = frozenset(
    {"history", "tree", "diff", "blame", "search", "get", "get_tuple", "get_checkpoint_ref", "extract", "extract_items"}
)
"""The methods whose first argument is a thread or a configuration that names one."""

_MOST_LOADED = 8
"""How many threads are kept in memory."""


class ForeignSaver:
    """LangGraph's own database, which is only read. Objects are always views by name and fields."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._loaded: OrderedDict[str, LoadedThread] = OrderedDict()
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on LangGraph's {self._tables.name}>"

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a reading method of the copy of the thread in its arguments. Any other method is refused."""
        if name.startswith("_") or not hasattr(Saver, name):
            raise AttributeError(name)
        if name in _OF_A_THREAD:
            return lambda thread, *args, **named: getattr(self._copy_of(thread), name)(thread, *args, **named)
        if name[1:] in _OF_A_THREAD:
            return lambda thread, *args, **named: self._awaited(name, thread, args, named)
        raise RefusedError(
            f"LangGraph's own {self._tables.name} is only read here: threadmark migrate copies its threads to a "
            "database of Threadmark's"
        )

    async def _awaited(self, name: str, thread: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        copy = await asyncio.to_thread(self._copy_of, thread)
        return await getattr(copy, name)(thread, *args, **named)

    def without_classes(self) -> Self:
        """Return this saver: it never makes an object of a class."""
        return self

    def for_owner(self, owner: str) -> Self:
        """Raise ConfigError: there are no owners."""
        raise ConfigError(f"threads of LangGraph's own saver have no owners, so none is {owner!r}'s: leave --owner out")

    def has_tables(self) -> bool:
        """Return True: they were looked for."""
        return True

    async def ahas_tables(self) -> bool:
        """Like `has_tables`, for asyncio."""
        return True

    def list_threads(
        self,
        *,
        sort: ThreadSort = "-updated",
        limit: int = 20,
        cursor: str | None = None,
        offset: int = 0,
        **filters: Unpack[ThreadFilter],
    ) -> ThreadPage:
        """Return a page of threads, without reading a value. They have no owners, titles or metadata."""
        query = thread_query(filters, sort)
        if query.scope.status == "unfinished":
            raise ConfigError(
                "LangGraph's own saver does not store which threads are unfinished in a form that can be listed: "
                "threadmark migrate copies its threads to a database of Threadmark's, which does"
            )
        limit, offset = checked_count(limit, "limit"), checked_count(offset, "offset")
        after = place_of(query, cursor)
        scope = query.scope
        selected = {
            query.place(outline): (outline, info)
            for outline, info in self._threads(None)
            if in_scope(scope, outline)
            and not query.metadata
            and scope.status in (None, info.status)
            and (scope.text is None or scope.text in info.id)
        }
        positions = sorted(selected, reverse=scope.descending)
        if after is not None:
            positions = [place for place in positions if (place < after if scope.descending else place > after)]
        found = [selected[place] for place in positions[offset : offset + limit]]
        more = len(positions) > offset + limit > 0
        return ThreadPage([info for _, info in found], cursor_of(query, found[-1][0]) if more and found else None)

    async def alist_threads(self, **filters: Any) -> ThreadPage:
        """Like `threads`, for asyncio."""
        return await asyncio.to_thread(lambda: self.list_threads(**filters))

    def count_threads(self, **filters: Any) -> int:
        """Return how many threads a listing with these arguments has."""
        return len(self.list_threads(**filters, limit=_ALL).threads)

    async def acount_threads(self, **filters: Any) -> int:
        """Like `count_threads`, for asyncio."""
        return await asyncio.to_thread(lambda: self.count_threads(**filters))

    def get_thread(self, thread_id: str) -> ThreadInfo | None:
        """Return one thread without its checkpoints. Returns None if there is none."""
        return next((info for _, info in self._threads(as_thread_id(thread_id))), None)

    async def aget_thread(self, thread_id: str) -> ThreadInfo | None:
        """Like `thread`, for asyncio."""
        return await asyncio.to_thread(self.get_thread, thread_id)

    def stats(self, thread_id: str | None = None, *, progress: object = None) -> Stats:  # noqa: ARG002 - it takes no time
        """Return how much is stored, as LangGraph stores it: each value whole. For one thread also by channel."""
        name = None if thread_id is None else as_thread_id(thread_id)
        infos = [info for _, info in self._threads(name)]
        writes = sum(each.writes for each in self._tables.read(lambda reader: reader.beside(name)).values())
        checkpoints, stored = sum(info.checkpoints for info in infos), sum(info.size_bytes for info in infos)
        channels: dict[str, ChannelStats] = {}
        if infos and name is not None:
            found: Stats = self._copy_of(name).stats(name)
            channels = {
                each: of_one._replace(bytes_stored=of_one.bytes_whole) for each, of_one in found.channels.items()
            }
        return Stats(len(infos), checkpoints, writes, 0, stored, stored, 0, channels, [])

    async def astats(self, thread_id: str | None = None, *, progress: object = None) -> Stats:
        """Like `stats`, for asyncio."""
        return await asyncio.to_thread(lambda: self.stats(thread_id, progress=progress))

    def list_checkpoint_refs(self) -> list[CheckpointRef]:
        """Return references to all checkpoints, newest first."""

        def read(reader: Reader) -> list[CheckpointRef]:
            names = {each.thread_id for each in reader.namespaces(None)}
            return [CheckpointRef(name, *ref[:3]) for name in names for ref in reader.refs(name)]

        return sorted(self._tables.read(read), key=lambda ref: (ref.id, ref.thread_id, ref.ns), reverse=True)

    def close(self) -> None:
        """Forget the copies. No connection is open between two calls."""
        with self._lock:
            self._loaded.clear()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def _copy_of(self, thread: Any) -> Any:
        """The saver in memory that has the thread as it is now."""
        raw_id = thread["configurable"]["thread_id"] if isinstance(thread, Mapping) else thread
        thread_id = as_thread_id(raw_id)
        with self._lock:
            loaded = self._tables.read(lambda reader: self._refreshed(reader, thread_id))
            self._loaded[thread_id] = loaded
            self._loaded.move_to_end(thread_id)
            if len(self._loaded) > _MOST_LOADED:
                self._loaded.popitem(last=False)
        return loaded.saver.without_classes()

    def _refreshed(self, reader: Reader, thread_id: str) -> LoadedThread:
        # If this fails halfway, or has to be done again, the copy is not known to be whole.
        loaded = self._loaded.pop(thread_id, None)
        if loaded is None or not loaded.refresh(reader):
            loaded = LoadedThread(thread_id)
            loaded.refresh(reader)
        return loaded

    def _threads(self, thread_id: str | None) -> list[tuple[ThreadOutline, ThreadInfo]]:
        return self._tables.read(lambda reader: _infos(reader, thread_id))


_ALL = 2**62


def _infos(reader: Reader, thread_id: str | None) -> list[tuple[ThreadOutline, ThreadInfo]]:
    namespaces: dict[str, list[Namespace]] = {}
    for each in reader.namespaces(thread_id):
        namespaces.setdefault(each.thread_id, []).append(each)
    beside = reader.beside(thread_id)
    channels: dict[str, set[str]] = {}
    for name, channel in reader.heads(thread_id):
        channels.setdefault(name, set()).add(channel)
    return [
        _info(name, some, beside.get(name, Beside()).bytes, channels.get(name, set()))
        for name, some in namespaces.items()
    ]


def _info(name: str, some: list[Namespace], beside: int, channels: set[str]) -> tuple[ThreadOutline, ThreadInfo]:
    newest = next((each.newest for each in some if each.ns == ""), None)
    # Without the graph's own namespace, as after a prune, any tells more than none.
    updated = time_of_id(newest or max(each.newest for each in some)) or 0
    created = time_of_id(min(each.oldest for each in some)) or 0
    status: ThreadStatus = "error" if "__error__" in channels else "interrupted" if channels else "idle"
    info = ThreadInfo(
        name,
        owner=None,
        title=None,
        metadata={},
        created_at=time_of(created),
        updated_at=time_of(updated),
        status=status,
        checkpoints=sum(each.checkpoints for each in some),
        namespaces=len(some),
        size_bytes=sum(each.bytes for each in some) + beside,
        newest=newest,
        next=[],
        expires_at=None,
        extracted={},
        problems=[],
    )
    return ThreadOutline(ThreadRow(name, created), updated), info
