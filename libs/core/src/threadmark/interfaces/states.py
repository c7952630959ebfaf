"""`States`: one state for each thread, with its history; and `CleanedStates`, which limits the history and the age."""

from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from threadmark.interfaces.interface import Interface
from threadmark.interfaces.operations import states
from threadmark.interfaces.operations.states import STATE
from threadmark.interfaces.shapes import StatePage
from threadmark.model import Duration, RetentionReport, ThreadSort
from threadmark.retention import Retention
from threadmark.saver import SaverProtocol
from threadmark.saver.kit import check_flag, check_keep_last, checked_duration, expect_compression


class States(Interface):
    """The states of threads over any saver. A saved state becomes the newest in its thread's history.

    Every method has an asyncio twin whose name begins with `a`. Loaded states are copies. You can also read a thread
    that a graph made, by its id: its state is the values of its channels. `list`, `size` and `cleanup_old` leave such
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

        Parts that it shares with the state before are not stored again. Two states that are saved at once are both
        kept, one after the other. Raises SerializationError, with the place of the part, if the state cannot be stored.

        Args:
            thread_id: The thread. It begins with its first state.
            state: Any value that the saver's serializer stores; it comes back with the same types.
            metadata: JSON about this state, for listings.
            lease_token: The token of your lease of the thread, if threads are leased (docs/how-to/leases.md).
        """
        return self._run(states.save(self._context, thread_id, state, metadata, lease_token, self._max_history))

    def load(self, thread_id: str, state_id: str | None = None, *, default: Any = None) -> Any:
        """Return a state of a thread, by default the newest, or `default` if there is none."""
        return self._run(states.load(self._context, thread_id, state_id, default))

    def exists(self, thread_id: str, state_id: str | None = None) -> bool:
        """Return whether a thread has a state, or the state with this id. Reads no value."""
        return self._run(states.exists(self._context, thread_id, state_id))

    def delete(self, thread_id: str, state_id: str | None = None) -> bool:
        """Remove a whole thread, or one state of its history. Returns whether it existed.

        The other states read as before. A thread ends with its last state.
        """
        return self._run(states.delete(self._context, thread_id, state_id))

    def list(self, *, limit: int = 20, cursor: str | None = None, sort: ThreadSort = "-updated") -> StatePage:
        """Return a page of the newest states of all threads that this interface began, and the cursor of the next page.

        Reads no value. `sort` is the time of the thread's last update ("updated") or of its beginning ("created"), or
        its "id"; a minus puts the greatest first. Threads that appear or disappear between two calls do not shift the
        next page.
        """
        return self._run(states.list_states(self._context, limit, cursor, sort))

    def history(self, thread_id: str, *, limit: int = 20, cursor: str | None = None) -> StatePage:
        """Return a page of the states of one thread, newest first, and the cursor of the next page. Reads no value."""
        return self._run(states.history(self._context, thread_id, limit, cursor))

    def size(self) -> int:
        """Return the number of threads with a state that this interface began. Reads their metadata."""
        return self._run(states.size(self._context))

    def cleanup_old(self, max_age: Duration) -> RetentionReport:
        """Remove the threads that this interface began whose newest state is older than `max_age`. Returns a report.

        It calls `saver.apply_retention(idle_for=max_age)` for these threads: expired threads are removed, too, and
        threads with a live lease stay.
        """
        return self._run(states.cleanup_old(self._context, max_age))

    def ping(self) -> bool:
        """Return whether the database answers: False if the attempt raises StoreError. Any other error is raised."""
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

    async def acleanup_old(self, max_age: Duration) -> RetentionReport:
        """Like `cleanup_old`, for asyncio."""
        return await self._arun(states.cleanup_old(self._context, max_age))

    async def aping(self) -> bool:
        """Like `ping`, for asyncio."""
        return await self._arun(states.ping(self._context))

    # The end of the part that scripts/write_twins.py wrote.


class CleanedStates(States):
    """States that are removed when they are old: by each save, and by a `Retention` that runs from `start` to `stop`.

    `with` and `async with` start and stop it. Threads of graphs are left alone. The saver stays open.
    """

    def __init__(
        self,
        saver: SaverProtocol,
        *,
        max_history: int | None = None,
        max_age: Duration | None = None,
        interval: Duration = timedelta(hours=1),
        compression: bool = True,
    ) -> None:
        """Make it without starting it.

        Args:
            saver: The saver that stores the states.
            max_history: The number of states of a thread to keep. Each save applies it, even if this is not started.
            max_age: Threads whose newest state is older than this are removed.
            interval: The time between two checks of all threads.
            compression: Whether compression is required: True raises MissingDependencyError if zstandard is not
                installed. If it is installed, data is compressed in either case.
        """
        super().__init__(saver)
        check_keep_last(max_history, "max_history", "leave it out to keep all states")
        checked_duration(interval, "interval")
        if max_age is not None:
            checked_duration(max_age, "max_age")
        check_flag(compression, "compression")
        if compression:
            expect_compression()
        self._max_history = max_history
        self.retention = Retention(self._saver, every=interval, keep_last=max_history, idle_for=max_age, metadata=STATE)
        """The service. Its `last_report` and `last_error` show its results."""

    def start(self) -> None:
        """Begin to check all threads regularly, in a daemon thread."""
        self.retention.start()

    async def astart(self) -> None:
        """Like `start`, as a task of the running event loop."""
        await self.retention.astart()

    def stop(self) -> None:
        """Stop after the running transaction. You may start it again."""
        self.retention.stop()

    async def astop(self) -> None:
        """Like `stop`, for a service that `astart` began."""
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
