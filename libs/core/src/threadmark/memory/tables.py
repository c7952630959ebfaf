"""The dictionaries that stand for tables, with a journal that undoes a transaction, and the one step there is."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from threadmark.program import Program, Step
from threadmark.store.contract import CheckpointRow, Key, WriteRow
from threadmark.store.replica import Replica
from threadmark.store.threads import LeaseRow, ThreadRow

T = TypeVar("T")


class Lease(NamedTuple):
    """A lease, and when it ends by the clock of `clock`."""

    row: LeaseRow
    ttl: int
    ends: int


_NEVER = Lease(LeaseRow(0), 0, 0)


def clock() -> int:
    """Microseconds, by a clock that cannot be set: it stands for the clock of a database."""
    return time.monotonic_ns() // 1000


class Thread:
    """One thread's rows. Dictionaries are changed through `Tables.set` and `Tables.unset` only."""

    def __init__(self, thread_id: str, epoch: int, *, live: bool = True, deleted_up_to: str = "") -> None:
        self.state: dict[str, Any] = {
            "epoch": epoch,
            "live": live,
            "row": ThreadRow(thread_id, epoch),
            "updated": epoch,
            "removed_up_to": "",
            "lease": _NEVER,
            "position": 0,
            "copied": None,
        }
        self.deleted_up_to = deleted_up_to
        self.checkpoints: dict[Key, CheckpointRow] = {}
        self.heads: dict[str, Key] = {}
        """The key of the checkpoint with the greatest rank of each namespace."""
        self.writes: dict[Key, dict[tuple[str, int], WriteRow]] = {}
        """By the key of their checkpoint, then by task_id and idx."""
        self.segments: dict[bytes, bytes] = {}
        self.outbox: dict[int, bytes] = {}
        """The entries to copy to another database, by position."""

    @property
    def every_write(self) -> Iterator[WriteRow]:
        """The writes of all checkpoints."""
        return chain.from_iterable(some.values() for some in self.writes.values())

    @property
    def epoch(self) -> int:
        """Grows whenever rows are removed."""
        return int(self.state["epoch"])

    @property
    def removed_up_to(self) -> str:
        """The greatest id of a checkpoint that was removed since the thread began."""
        return str(self.state["removed_up_to"])

    @property
    def live(self) -> bool:
        """Whether the thread is there: it was begun, and not deleted since."""
        return bool(self.state["live"])

    @property
    def row(self) -> ThreadRow:
        """The thread's own row."""
        row: ThreadRow = self.state["row"]
        return row

    @property
    def updated_at(self) -> int:
        """When something was last stored that listings go by."""
        return int(self.state["updated"])

    @property
    def lease(self) -> "Lease":
        """The last lease."""
        lease: Lease = self.state["lease"]
        return lease

    @property
    def position(self) -> int:
        """That of the last entry of the outbox, 0 if there never was one."""
        return int(self.state["position"])


class Tables:
    """All rows, and a journal of the running transaction's changes.

    A change is in the journal before it is made, and to undo it twice does no harm. So a transaction may end at any
    instruction, if a signal's handler raises or if the process is forked; the next one undoes the rest of it.
    """

    def __init__(self) -> None:
        self.threads: dict[str, Thread] = {}
        self.pair: dict[str, Replica] = {"replica": Replica()}
        self.others: dict[str, dict[Any, Any]] = {}
        """Tables of other packages, by name."""
        self._journal: list[Callable[[], object]] = []

    def set(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Change or add one row."""
        before = partial(table.__setitem__, key, table[key]) if key in table else partial(table.pop, key, None)
        self._journal.append(before)
        table[key] = value

    def unset(self, table: dict[Any, Any], key: Any) -> None:
        """Remove one row, if it is there."""
        if key in table:
            self._journal.append(partial(table.__setitem__, key, table[key]))
            table.pop(key, None)

    def commit(self) -> None:
        """Keep the changes."""
        self._journal.clear()

    @property
    def changes(self) -> int:
        """How many changes there were since the last commit."""
        return len(self._journal)

    def roll_back(self, changes: int = 0) -> None:
        """Undo the changes since the last commit but the first `changes`, last first."""
        while len(self._journal) > changes:
            self._journal[-1]()
            self._journal.pop()


@dataclass(slots=True)
class Call(Step):
    """A function that is called with the tables."""

    function: Callable[[Tables], Any]


def execute(tables: Tables, step: Step) -> Any:
    """Execute one step. Returns its answer."""
    if not isinstance(step, Call):
        raise TypeError(f"the memory backend has no {type(step).__name__}")
    return step.function(tables)


def with_tables(function: Callable[[Tables], T]) -> Program[T]:
    """Call a function with the tables. Returns its result."""
    result: T = yield Call(function)
    return result


def newest(thread: Thread, ns: str) -> CheckpointRow | None:
    """The checkpoint with the greatest rank of a namespace."""
    key = thread.heads.get(ns)
    return thread.checkpoints[key] if key is not None else None


def heads_of(thread: Thread) -> dict[str, Key]:
    """The key of the checkpoint with the greatest rank of each namespace, found by a look at all."""
    ranked = sorted((row.outline for row in thread.checkpoints.values()), key=lambda outline: outline.rank)
    return {outline.ns: outline.key for outline in ranked}
