"""Programs and flows: the work, written once, with no I/O in it.

A *program* is a generator that yields steps, is sent the answer to each and returns its result. A step is its
backend's choice: a statement with its parameters, or a call on the dictionaries of the memory backend. A driver
runs a whole program inside one transaction: it commits when the program returns and rolls back when it raises.

A *flow* is a generator that yields requests, each with an answer: a transaction, a pause, a call of a cache. Between
two of them it may compute for as long as it likes: no lock and no connection is held then. Every method of a saver is
a flow of transactions, an *operation*. `play` and `aplay` play any flow for the two APIs; no flow knows which of them
it serves.

Both kinds call others with `yield from`, which gives a result of a known type: `read` and `write` for a transaction,
and a function of the backend's own for a step. So a `yield from` that was forgotten is an error of types.

A driver whose server is away tries a transaction again: `Attempts` says for how long, and when.
"""

import random
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from types import MappingProxyType
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, Protocol, TypeVar, cast

T = TypeVar("T")
P = ParamSpec("P")
Asked = TypeVar("Asked")
Other = TypeVar("Other")


class Step:
    """A request of a program to its driver. Each backend has its own classes."""

    __slots__ = ()


Program = Generator[Step, Any, T]


class Transaction(NamedTuple, Generic[T]):
    """A request: a program to run whole or not at all, as a value that says which one and with which arguments."""

    program: Callable[..., Program[T]]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = MappingProxyType({})
    writes: bool = False
    reclaims_space: bool = False
    """Whether it may delete so much that the driver should reclaim disk space afterwards."""
    creates_tables: bool = True
    """Whether to create missing tables (and a missing file) first. If not, the result without tables is None."""
    proves: bool = False
    """Whether only the database itself may answer, and no cache."""

    def begin(self) -> Program[T]:
        """Return the program's generator. Each attempt begins a new one."""
        return self.program(*self.args, **self.kwargs)

    def through(
        self,
        program: Callable[Concatenate[Callable[[], Program[T]], P], Program[Other]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> "Transaction[Other]":
        """Return a transaction that runs this one through another program, called with `begin` and these arguments."""
        return cast("Transaction[Other]", self)._replace(program=program, args=(self.begin, *args), kwargs=kwargs)


class Pause(NamedTuple):
    """A request to let some time pass, with no connection held. It is answered by None."""

    seconds: float


Flow = Generator[Asked, Any, T]
Operation = Flow[Transaction[Any], T]


def read(program: Callable[P, Program[T]], *args: P.args, **kwargs: P.kwargs) -> Operation[T]:
    """Have a program run that only reads. Returns its result."""
    result: T = yield Transaction(program, args, kwargs)
    return result


def read_itself(program: Callable[P, Program[T]], *args: P.args, **kwargs: P.kwargs) -> Operation[T]:
    """Like `read`, but from the database itself: no cache may answer."""
    result: T = yield Transaction(program, args, kwargs, proves=True)
    return result


def read_existing(program: Callable[P, Program[T]], *args: P.args, **kwargs: P.kwargs) -> Operation[T | None]:
    """Like `read`, but never creates tables. Returns None if there are none."""
    result: T | None = yield Transaction(program, args, kwargs, creates_tables=False)
    return result


def write(program: Callable[P, Program[T]], *args: P.args, **kwargs: P.kwargs) -> Operation[T]:
    """Have a program run that may write. Returns its result."""
    result: T = yield Transaction(program, args, kwargs, writes=True)
    return result


def write_and_reclaim(program: Callable[P, Program[T]], *args: P.args, **kwargs: P.kwargs) -> Operation[T]:
    """Like `write`, of a program that removes: the driver reclaims disk space afterwards."""
    result: T = yield Transaction(program, args, kwargs, writes=True, reclaims_space=True)
    return result


class Driver(Protocol):
    """Runs transactions on a real database, for both APIs.

    Its text (`__str__`) says which database, for the `repr` of savers. It shows no password.
    """

    def run(self, transaction: Transaction[T]) -> T:
        """Run the program in one transaction and return its result."""

    async def arun(self, transaction: Transaction[T]) -> T:
        """Like `run`, for asyncio."""

    def close(self) -> None:
        """Close all connections. Further calls raise ClosedError."""

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""


def play(generator: Generator[Asked, Any, T], answer: Callable[[Asked], Any]) -> T:
    """Answer everything that a generator yields until it returns. Errors of `answer` are thrown into it."""
    try:
        asked = next(generator)
        while True:
            try:
                result = answer(asked)
            except Exception as error:  # noqa: BLE001 - it may handle it; if not, the error passes through
                asked = generator.throw(error)
            else:
                asked = generator.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # a generator's result is untyped in StopIteration
    finally:
        generator.close()


def run(driver: Driver, operation: Operation[T]) -> T:
    """Drive an operation on the caller's thread."""
    return play(operation, driver.run)


async def arun(driver: Driver, operation: Operation[T]) -> T:
    """Like `run`, for asyncio."""
    return await aplay(operation, driver.arun)


async def aplay(generator: Generator[Asked, Any, T], answer: Callable[[Asked], Awaitable[Any]]) -> T:
    """Like `play`, with answers that are awaited."""
    try:
        asked = next(generator)
        while True:
            try:
                result = await answer(asked)
            except Exception as error:  # noqa: BLE001 - it may handle it; if not, the error passes through
                asked = generator.throw(error)
            else:
                asked = generator.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # a generator's result is untyped in StopIteration
    finally:
        generator.close()


def relay(
    generator: Generator[Asked, Any, T], answer: Callable[[Asked], Generator[Other, Any, Any]]
) -> Generator[Other, Any, T]:
    """Like `play`, as a generator itself: its driver is asked for everything that an answer needs."""
    try:
        asked = next(generator)
        while True:
            try:
                result = yield from answer(asked)
            except Exception as error:  # noqa: BLE001 - it may handle it; if not, the error passes through
                asked = generator.throw(error)
            else:
                asked = generator.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # a generator's result is untyped in StopIteration
    finally:
        generator.close()


_FIRST_WAIT, _LONGEST_WAIT = 0.02, 2.0


class Attempts:
    """The attempts at one operation. Each wait is longer than the one before, and all end after `timeout` seconds."""

    def __init__(self, timeout: float) -> None:
        self._until = time.monotonic() + timeout
        self._wait = 0.0

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return max(self._until - time.monotonic(), 0.0)

    def _longer_wait(self) -> float:
        """Return the seconds to wait this time, which are never more than are left."""
        wait = min(self._wait * random.uniform(0.5, 1.0), self.left)  # noqa: S311 - spreads callers, hides nothing
        # The first attempt that fails may just have met a connection that was closed long ago.
        self._wait = min(max(2 * self._wait, _FIRST_WAIT), _LONGEST_WAIT)
        return wait
