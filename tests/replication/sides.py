"""Two databases, and savers whose changes wait in the outbox of theirs."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from threadmark.memory import MemorySaver
from threadmark.persistent.kept_memory import entries, tables_of
from threadmark.program import Program, Transaction
from threadmark.replication.copying import copy_all
from threadmark.replication.entries import Touched
from threadmark.replication.model import SideName
from threadmark.replication.playing import play_flow
from threadmark.replication.steps import Side
from threadmark.saver import Saver
from threadmark.store.contract import Added, Change, Key, Store
from threadmark.store.replica import ReplicaStore, Summary
from threadmark.store.threads import ThreadOutline

T = TypeVar("T")

TERM = 1
"""That of every change here, unless a test says otherwise."""


class RecordingStore:
    """A store whose changes have entries. It stands for a replicated saver on the active side."""

    def __init__(self, store: Store, term: int = TERM) -> None:
        self.behind = cast("ReplicaStore", store)
        self._term = term
        self.made: list[tuple[Change, Added]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)

    def add(self, change: Change) -> Program[Added]:
        """Add with the keys of the rows as the entry."""
        touched = Touched(
            frozenset(row.outline.key for row in change.checkpoints),
            frozenset((row.ns, row.checkpoint_id) for row in change.writes),
            frozenset(change.segments),
        )
        return self._change(self.behind.add, change, touched)

    def replace(self, change: Change) -> Program[Added]:
        """Replace, with all to be compared."""
        return self._change(self.behind.replace, change, Touched(everything=True))

    def remove(self, thread_id: str, *args: Any) -> Program[int]:
        """Remove, with all to be compared."""
        return self._also(self.behind.remove(thread_id, *args), thread_id, Touched(everything=True))

    def forget(self, thread_id: str, keys: Sequence[Key], *, removes: bool) -> Program[None]:
        """Say which checkpoints are to be gone."""
        program = self.behind.forget(thread_id, keys, removes=removes)
        return self._also(program, thread_id, Touched(removed=frozenset(keys)))

    def rewrite(self, thread_id: str, *args: Any) -> Program[None]:
        """Write over rows, with all to be compared."""
        return self._also(self.behind.rewrite(thread_id, *args), thread_id, Touched(everything=True))

    def copy_segments(self, source: str, target: str) -> Program[None]:
        """Copy, with all to be compared."""
        return self._also(self.behind.copy_segments(source, target), target, Touched(everything=True))

    def drop(self, thread_id: str, now: int) -> Program[int | None]:
        """Drop, and say so."""
        return self._also(self.behind.drop(thread_id, now), thread_id, Touched(dropped=True))

    def set_thread(self, row: Any) -> Program[None]:
        """Set the thread's own row, and say so."""
        return self._also(self.behind.set_thread(row), row.thread_id, Touched(thread=True))

    def _change(self, method: Callable[[Change], Program[Added]], change: Change, touched: Touched) -> Program[Added]:
        change = change._replace(term=self._term, entry=touched.to_bytes())
        added = yield from method(change)
        if added.position:
            self.made.append((change, added))
        return added

    def _also(self, program: Program[T], thread_id: str, touched: Touched) -> Program[T]:
        result = yield from program
        yield from self.behind.record(thread_id, touched.to_bytes(), self._term)
        return result


def recorded(saver: Saver, term: int = TERM) -> RecordingStore:
    """Let a saver's changes wait in its outbox. Returns the store that does so."""
    store = RecordingStore(saver._store, term)
    saver._store = cast("Store", store)
    saver._context = saver._new_context()
    return store


def side(saver: Saver, name: SideName = "primary") -> Side:
    """The database of a saver, below the store that records its changes."""
    store: Any = saver._store
    return Side(name, store.behind if isinstance(store, RecordingStore) else store, saver._driver)


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
    return of.driver.run(Transaction(program, args, writes=True))


def copied_both_ways(one: Side, other: Side, term: int = TERM) -> None:
    """Copy until nothing waits on either side."""
    for _ in range(8):
        here = play_flow(copy_all(one, other, term))
        there = play_flow(copy_all(other, one, term))
        if not here and not there:
            return
    raise AssertionError("something is copied forth and back again and again")


def summaries(of: Side) -> list[Summary]:
    """The summaries of all threads, but for the parts that differ between equal databases."""
    return [each._replace(epoch=0, position=0) for each in in_store(of, of.store.summaries, "", 10_000)]


def rows(of: Side) -> dict[str, Any]:
    """Everything that is stored of every live thread, byte for byte, and when listings say that it was updated."""
    found = {}
    for thread_id in in_store(of, of.store.threads, "", 10_000):
        marks = in_store(of, of.store.marks, thread_id)
        stored = in_store(of, of.store.rows, thread_id, sorted(marks.checkpoints))
        found[thread_id] = (
            _outline(in_store(of, of.store.thread, thread_id)),
            {row.outline.key: (row.outline, row.header, row.check) for row in stored},
            {row[:4]: row for row in in_store(of, of.store.writes, thread_id, None)},
            in_store(of, of.store.segments, thread_id, sorted(marks.segments)),
        )
    return found


def _outline(outline: ThreadOutline | None) -> ThreadOutline | None:
    """A thread without its creation time: if it began on both sides, the times differ."""
    return outline and outline._replace(row=outline.row._replace(created_at=0))


def assert_sound(saver: Saver) -> None:
    """Fail if anything is damaged or unreadable."""
    verified = saver.verify(decode=True)
    assert ([each for each in verified.problems if each.kind != "orphan"], verified.unreadable) == ([], [])


def assert_equal(one: Saver, other: Saver) -> None:
    """Fail unless both have the same, byte for byte, and nothing of it is damaged."""
    assert summaries(side(one)) == summaries(side(other))
    assert rows(side(one)) == rows(side(other))
    assert_sound(one)
    assert_sound(other)
    assert_same_answers(one, other)


def assert_same_answers(one: Saver, other: Saver) -> None:
    """Fail unless listings show the same."""
    assert list(one.list(None)) == list(other.list(None))
    shown, also = (saver.list_threads(sort="id", limit=1000).threads for saver in (one, other))
    for mine, theirs in zip(shown, also, strict=True):
        assert mine == theirs._replace(created_at=mine.created_at)
