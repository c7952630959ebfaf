"""The requests of replication's flows: a transaction on one of two databases, or a pause."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, ParamSpec, TypeVar

from threadmark.program import Driver, Flow, Pause, Program, Transaction
from threadmark.replication.model import SideName
from threadmark.store.replica import ReplicaStore

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(eq=False)
class Side:
    """One of the two databases."""

    name: SideName
    store: ReplicaStore
    driver: Driver
    tables: set[str] = field(default_factory=set, repr=False)
    """Names of further tables that were seen."""
    created: set[str] = field(default_factory=set, repr=False)
    """Names of those that a transaction has created which may be undone."""

    @property
    def number(self) -> int:
        """0 for the primary, 1 for the secondary."""
        return int(self.name == "secondary")

    @property
    def may_hang(self) -> bool:
        """Whether a transaction may hang: a server may stop answering. The driver of a file says that it cannot."""
        return getattr(self.driver, "may_hang", True)

    def __str__(self) -> str:
        return f"the {self.name} ({self.driver})"


class On(NamedTuple):
    """A transaction on one side. It is answered by its result, or by its error."""

    side: Side
    transaction: Transaction[Any]


PairFlow = Flow[On | Pause, T]


def on(side: Side, transaction: Transaction[T]) -> PairFlow[T]:
    """Have a transaction run on a side. Returns its result."""
    try:
        result: T = yield On(side, transaction)
    except BaseException:
        side.tables.clear()  # it may have seen tables that it created itself, which are gone now
        raise
    side.created.clear()
    return result


def read_on(side: Side, program: Callable[P, Program[T]], *args: P.args, **kwargs: P.kwargs) -> PairFlow[T]:
    """Have a program run on a side that only reads. Returns its result."""
    return on(side, Transaction(program, args, kwargs))


def write_on(side: Side, program: Callable[P, Program[T]], *args: P.args, **kwargs: P.kwargs) -> PairFlow[T]:
    """Have a program run on a side that may write. Returns its result."""
    return on(side, Transaction(program, args, kwargs, writes=True))


def pause(seconds: float) -> PairFlow[None]:
    """Let some time pass."""
    yield Pause(seconds)
