"""The dictionaries that stand for tables, with a journal that undoes a transaction, and the one step there is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from threadmark.program import Program, Step
from threadmark.store import CheckpointRow, Key, WriteRow

T = TypeVar("T")

WriteKey = tuple[str, str, str, int]
"""(namespace, checkpoint_id, task_id, idx)"""


class Thread:
    """One thread's rows. Dictionaries are changed through `Tables.set` and `Tables.unset` only."""

    def __init__(self, epoch: int, deleted_up_to: str = "") -> None:
        self.state: dict[str, Any] = {"epoch": epoch, "live": not deleted_up_to}
        self.deleted_up_to = deleted_up_to
        self.checkpoints: dict[Key, CheckpointRow] = {}
        self.writes: dict[WriteKey, WriteRow] = {}
        self.segments: dict[bytes, bytes] = {}

    @property
    def epoch(self) -> int:
        """Grows whenever rows are removed."""
        return int(self.state["epoch"])


class Tables:
    """All rows, and a journal of what the running transaction changed.

    A change is in the journal before it is made, and to undo it twice does no harm. So a transaction may end at any
    instruction, where a signal's handler raises or where the process is forked; the next one undoes what is left of it.
    """

    def __init__(self) -> None:
        self.threads: dict[str, Thread] = {}
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
        """Keep what was changed."""
        self._journal.clear()

    def roll_back(self) -> None:
        """Undo what was changed since the last commit, last first."""
        while self._journal:
            self._journal[-1]()
            self._journal.pop()


@dataclass(slots=True)
class Call(Step):
    """A function that is called with the tables."""

    function: Callable[[Tables], Any]


def with_tables(function: Callable[[Tables], T]) -> Program[T]:
    """Call a function with the tables. Returns its result."""
    result: T = yield Call(function)
    return result
