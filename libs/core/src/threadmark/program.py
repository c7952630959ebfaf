"""Programs and operations: what is to be done, written once, with no I/O in it.

A *program* is a generator that yields steps (a statement with its parameters, or a call on the dictionaries of the
memory backend), is sent the rows of each and returns its result. A driver runs a whole program inside one
transaction: it commits when the program returns and rolls back when it raises.

An *operation* is a generator that yields transactions and is sent their results. Between two of its transactions
it may compute for as long as it likes: no lock and no connection is held then. Every method of a saver is one
operation. `run` and `arun` play it for the two APIs; no operation knows which of them it serves.
"""

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")
Asked = TypeVar("Asked")

Row = tuple[Any, ...]
Rows = list[Row]


class Query(NamedTuple):
    """One statement. Its rows are sent back, an empty list if it returns none."""

    sql: str
    params: Sequence[Any] = ()
    likely_last: bool = False
    """Whether the program most likely ends with this statement.

    A driver may then run it as a transaction of its own, and start the program anew in a whole transaction should
    it go on; so such a statement changes nothing unless the program ends with it. Elsewhere it is like any other.
    """


class Many(NamedTuple):
    """One statement, executed for each item of `params`. An empty list is sent back."""

    sql: str
    params: Sequence[Sequence[Any]]


class Call(NamedTuple):
    """A function that is called with the memory backend's tables. Its result is sent back."""

    function: Callable[[Any], Any]


Step = Query | Many | Call
Program = Generator[Step, Any, T]


class Transaction(NamedTuple):
    """A program to run whole or not at all. It is a factory, because a retry needs a fresh generator."""

    program: Callable[[], Program[Any]]
    writes: bool
    reclaims_space: bool = False
    """Whether it may delete so much that the driver should reclaim disk space afterwards."""
    creates_tables: bool = True
    """Whether to create missing tables (and a missing file) first. If not, the result without tables is None."""


Operation = Generator[Transaction, Any, T]


class Driver(Protocol):
    """What runs transactions on a real database, for both APIs.

    Its text (`__str__`) says which database, for the `repr` of savers. It shows no password.
    """

    def run(self, transaction: Transaction) -> Any:
        """Run the program in one transaction and return its result."""

    async def arun(self, transaction: Transaction) -> Any:
        """Like `run`, for asyncio."""

    def close(self) -> None:
        """Close all connections. Further calls raise ClosedError."""

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""


def run(driver: Driver, operation: Operation[T]) -> T:
    """Drive an operation on the caller's thread."""
    return play(operation, driver.run)


async def arun(driver: Driver, operation: Operation[T]) -> T:
    """Like `run`, for asyncio."""
    return await aplay(operation, driver.arun)


def play(generator: Generator[Asked, Any, T], answer: Callable[[Asked], Any]) -> T:
    """Answer everything that a generator yields until it returns. Errors of `answer` are thrown into it."""
    try:
        asked = next(generator)
        while True:
            try:
                result = answer(asked)
            except Exception as error:  # noqa: BLE001 - it may know what to do; if not, the error passes through
                asked = generator.throw(error)
            else:
                asked = generator.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # what a generator returns is untyped in StopIteration
    finally:
        generator.close()


async def aplay(generator: Generator[Asked, Any, T], answer: Callable[[Asked], Awaitable[Any]]) -> T:
    """Like `play`, with answers that are awaited."""
    try:
        asked = next(generator)
        while True:
            try:
                result = await answer(asked)
            except Exception as error:  # noqa: BLE001 - it may know what to do; if not, the error passes through
                asked = generator.throw(error)
            else:
                asked = generator.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # what a generator returns is untyped in StopIteration
    finally:
        generator.close()
