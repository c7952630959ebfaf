"""`States`: one state for each thread, with its history; and `CleanedStates`, which keeps only so much of it."""

from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from threadmark.interfaces.interface import Interface
from threadmark.interfaces.operations import states
from threadmark.interfaces.operations.states import STATE
from threadmark.interfaces.shapes import StatePage
from threadmark.model import RetentionReport, ThreadSort
from threadmark.retention import Retention
from threadmark.saver import SaverProtocol
from threadmark.saver.kit import check_flag, check_keep_last, expect_compression


class States(Interface):
    """The states of threads over any saver. Each that is saved becomes the newest of its thread's history.

    Every method has an asyncio version whose name begins with `a`. What is loaded is a copy. A thread that a graph made
    can be read by its id as well: its state is the values of its channels. `list`, `size` and `cleanup_old` leave such
    threads out.
    """

    _max_history: int | None = None

    def save(
        self,
        thread_id: str,
        state: Any,
        metadata: Mapping[str, Any] | None = None,
        *,
        lease_token: int | None = None,
    ) -> str:
        """Store a state as the newest of its thread. Returns its id.

        What it has in common with the one before is not stored again. Two that are saved at once are both kept, one
        after the other. Raises SerializationError where the state cannot be stored, with the place of what cannot.

        Args:
            thread_id: The thread. It begins with its first state.
            state: Whatever the saver's serializer stores; it comes back with the same types.
            metadata: JSON about this state, for listings.
            lease_token: The token of a lease of the thread, where somebody may hold one (docs/how-to/leases.md).
        """
        return self._run(states.save(self._context, thread_id, state, metadata, lease_token, self._max_history))

    def load(self, thread_id: str, state_id: str | None = None, *, default: Any = None) -> Any:
        """Return a state of a thread, by default the newest. Returns `default` if there is none."""
        return self._run(states.load(self._context, thread_id, state_id, default))

    def exists(self, thread_id: str, state_id: str | None = None) -> bool:
        """Return whether a thread has a state, or the one with this id. No value is read."""
        return self._run(states.exists(self._context, thread_id, state_id))

    def delete(self, thread_id: str, state_id: str | None = None) -> bool:
        """Remove a whole thread, or one state of its history. Returns whether it was there.

        The other states read as before. With its last state a thread is gone.
        """
        return self._run(states.delete(self._context, thread_id, state_id))

    def list(self, *, limit: int = 20, cursor: str | None = None, sort: ThreadSort = "-updated") -> StatePage:
        """Return a page of the newest states of all threads that were begun here, and the cursor of the next page.

        No value is read. `sort` is by when the thread was "updated" or "created", or by its "id"; with a minus, the
        greatest comes first. Threads that come or go meanwhile do not shift the next page.
        """
        return self._run(states.list_states(self._context, limit, cursor, sort))

    def history(self, thread_id: str, *, limit: int = 20, cursor: str | None = None) -> StatePage:
        """Return a page of the states of one thread, newest first, and the cursor of the next. No value is read."""
        return self._run(states.history(self._context, thread_id, limit, cursor))

    def size(self) -> int:
        """Return how many threads with a state there are: those that were begun here. Their metadata is read."""
        return self._run(states.size(self._context))

    def cleanup_old(self, max_age: timedelta) -> RetentionReport:
        """Remove the threads that were begun here and whose newest state is older than that. Returns what was removed.

        It is `saver.apply_retention(idle_for=max_age)` of these threads, so that expired ones go, too, and those that
        somebody holds a lease of stay.
        """
        return self._run(states.cleanup_old(self._context, max_age))

    def ping(self) -> bool:
        """Return whether the database answers: False where asking it is a StoreError. Any other error is raised."""
        return self._run(states.ping(self._context))

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def asave(
        self,
        thread_id: str,
        state: Any,
        metadata: Mapping[str, Any] | None = None,
        *,
        lease_token: int | None = None,
    ) -> str:
        """Like `save`, for asyncio."""
        return await self._arun(states.save(self._context, thread_id, state, metadata, lease_token, self._max_history))

    async def aload(self, thread_id: str, state_id: str | None = None, *, default: Any = None) -> Any:
        """Like `load`, for asyncio."""
        return await self._arun(states.load(self._context, thread_id, state_id, default))

    async def aexists(self, thread_id: str, state_id: str | None = None) -> bool:
        """Like `exists`, for asyncio."""
        return await self._arun(states.exists(self._context, thread_id, state_id))

    async def adelete(self, thread_id: str, state_id: str | None = None) -> bool:
        """Like `delete`, for asyncio."""
        return await self._arun(states.delete(self._context, thread_id, state_id))

    async def alist(self, *, limit: int = 20, cursor: str | None = None, sort: ThreadSort = "-updated") -> StatePage:
        """Like `list`, for asyncio."""
        return await self._arun(states.list_states(self._context, limit, cursor, sort))

    async def ahistory(self, thread_id: str, *, limit: int = 20, cursor: str | None = None) -> StatePage:
        """Like `history`, for asyncio."""
        return await self._arun(states.history(self._context, thread_id, limit, cursor))

    async def asize(self) -> int:
        """Like `size`, for asyncio."""
        return await self._arun(states.size(self._context))

    async def acleanup_old(self, max_age: timedelta) -> RetentionReport:
        """Like `cleanup_old`, for asyncio."""
        return await self._arun(states.cleanup_old(self._context, max_age))

    async def aping(self) -> bool:
        """Like `ping`, for asyncio."""
        return await self._arun(states.ping(self._context))

    # The end of what scripts/write_twins.py wrote.


class CleanedStates(States):
    """States of which old ones are removed: by each save, and by a `Retention` that runs from `start` to `stop`.

    As a context manager, blocking or asyncio, it is started and stopped. Threads of graphs are left alone. The saver
    stays open.
    """

    def __init__(
        self,
        saver: SaverProtocol,
        *,
        max_history: int | None = None,
        max_age: timedelta | None = None,
        interval: timedelta = timedelta(hours=1),
        compression: bool = True,
    ) -> None:
        """Make it, not yet started.

        Args:
            saver: The saver that it is over.
            max_history: How many states of a thread are kept. Each save sees to it, whether this is started or not.
            max_age: Threads whose newest state is older than that are removed.
            interval: How long to wait between two looks at all threads.
            compression: Whether it must be there: True raises MissingDependencyError where zstandard is not installed.
                What is stored is compressed wherever it is, with False, too.
        """
        super().__init__(saver)
        check_keep_last(max_history)
        check_flag(compression, "compression")
        if compression:
            expect_compression()
        self._max_history = max_history
        self.retention = Retention(self._saver, every=interval, keep_last=max_history, idle_for=max_age, metadata=STATE)
        """The service, whose `last_report` and `last_error` say what it has done."""

    def start(self) -> None:
        """Begin to look at all threads again and again, in a daemon thread."""
        self.retention.start()

    async def astart(self) -> None:
        """Like `start`, as a task of the running event loop."""
        await self.retention.astart()

    def stop(self) -> None:
        """End it, after the transaction that is under way. It may be started again."""
        self.retention.stop()

    async def astop(self) -> None:
        """Like `stop`, for what `astart` began."""
        await self.retention.astop()

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
