"""Two databases, and savers whose changes wait in the outbox of theirs."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from threadmark.memory import MemorySaver
from threadmark.memory.rows import entries, tables_of
from threadmark.model import CheckpointTuple
from threadmark.program import Program, Transaction
from threadmark.replica_store import ReplicaStore, Summary
from threadmark.replication.entries import Touched
from threadmark.replication.model import SideName
from threadmark.replication.steps import Side
from threadmark.saver import Saver
from threadmark.saver.context import context_of
from threadmark.store import Added, Change, Store

T = TypeVar("T")

TERM = 1
"""That of every change here, unless a test says otherwise."""


class RecordingStore:
    """A store whose changes have entries. It stands for what a replicated saver does on the active side."""

    def __init__(self, store: Store, term: int = TERM) -> None:
        self._store = cast("ReplicaStore", store)
        self._term = term
        self.made: list[tuple[Change, Added]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def add(self, change: Change) -> Program[Added]:
        """Add with the keys of the rows as the entry."""
        touched = Touched(
            frozenset(row.outline.key for row in change.checkpoints),
            frozenset((row.ns, row.checkpoint_id) for row in change.writes),
            frozenset(change.segments),
        )
        return self._change(self._store.add, change, touched)

    def replace(self, change: Change) -> Program[Added]:
        """Replace, with all to be compared."""
        return self._change(self._store.replace, change, Touched(everything=True))

    def remove(self, thread_id: str, *args: Any) -> Program[int]:
        """Remove, with all to be compared."""
        return self._also(self._store.remove(thread_id, *args), thread_id, Touched(everything=True))

    def rewrite(self, thread_id: str, *args: Any) -> Program[None]:
        """Write over rows, with all to be compared."""
        return self._also(self._store.rewrite(thread_id, *args), thread_id, Touched(everything=True))

    def copy_segments(self, source: str, target: str) -> Program[None]:
        """Copy, with all to be compared."""
        return self._also(self._store.copy_segments(source, target), target, Touched(everything=True))

    def drop(self, thread_id: str, now: int) -> Program[None]:
        """Drop, and say so."""
        return self._also(self._store.drop(thread_id, now), thread_id, Touched(dropped=True))

    def set_thread(self, row: Any) -> Program[None]:
        """Set the thread's own row, and say so."""
        return self._also(self._store.set_thread(row), row.thread_id, Touched(thread=True))

    def _change(self, method: Callable[[Change], Program[Added]], change: Change, touched: Touched) -> Program[Added]:
        change = change._replace(term=self._term, entry=touched.to_bytes())
        added = yield from method(change)
        if added.position:
            self.made.append((change, added))
        return added

    def _also(self, program: Program[T], thread_id: str, touched: Touched) -> Program[T]:
        result = yield from program
        yield from self._store.record(thread_id, touched.to_bytes(), self._term)
        return result


def recorded(saver: Saver, term: int = TERM) -> RecordingStore:
    """Let what a saver changes wait in its outbox. Returns the store that does so."""
    store = RecordingStore(saver._store, term)
    saver._store = cast("Store", store)
    saver._context = context_of(saver._store, saver._options)
    return store


def side(saver: Saver, name: SideName = "primary") -> Side:
    """The database of a saver, below what records its changes."""
    store = saver._store
    return Side(
        name,
        getattr(store, "_store", store) if isinstance(store, RecordingStore) else cast("Any", store),
        saver._driver,
    )


def pair_in_memory(**options: Any) -> tuple[Saver, Saver]:
    """Two savers in memory whose changes are recorded."""
    savers = MemorySaver(**options), MemorySaver(**options)
    for saver in savers:
        recorded(saver)
    return savers


def stored(saver: Saver) -> list[Any]:
    """Everything that a saver in memory has, for `with_stored`."""
    return entries(saver._driver._tables)  # type: ignore[attr-defined]  # a MemoryDriver


def with_stored(kept: list[Any]) -> Saver:
    """Return a new saver in memory that has all this, and remembers nothing of it."""
    saver = MemorySaver()
    saver._driver._tables = tables_of(kept)  # type: ignore[attr-defined]  # as above
    recorded(saver)
    return saver


def in_store(of: Side, program: Callable[..., Program[T]], *args: Any) -> T:
    """Run a program on a side."""
    return of.driver.run(Transaction(partial(program, *args), writes=True))


def summaries(of: Side) -> list[Summary]:
    """The summaries of all threads, but for what differs between two databases that have the same."""
    found = in_store(of, of.store.summaries, "", 10_000)
    return [each._replace(epoch=0, position=0) for each in found]


def assert_equal(one: Saver, other: Saver) -> None:
    """Fail unless both have the same, and nothing of it is damaged."""
    assert summaries(side(one)) == summaries(side(other))
    for each in summaries(side(one)):
        assert in_store(side(one), side(one).store.marks, each.thread_id) == in_store(
            side(other), side(other).store.marks, each.thread_id
        )
    for saver in (one, other):
        verified = saver.verify(decode=True)
        assert (verified.problems, verified.unreadable) == ([], [])
    assert threads_of(one) == threads_of(other)


def threads_of(saver: Saver) -> list[Any]:
    """What a listing shows of all threads, and the checkpoints of each."""
    threads = list(saver.list_threads())
    return [(thread, items(saver, thread.thread_id)) for thread in threads]


def items(saver: Saver, thread_id: str) -> list[CheckpointTuple]:
    """All checkpoints of a thread."""
    return list(saver.list({"configurable": {"thread_id": thread_id}}))
