"""Programs and operations are driven to their end, whatever happens on the way."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from threadmark.errors import StoreError
from threadmark.program import Operation, Program, Step, Transaction, arun, play, run


@dataclass
class Query(Step):
    """A step of no backend."""

    text: str
    params: tuple[int, ...] = ()


class Scripted:
    """A driver that answers each transaction from a list; an exception in it is raised."""

    def __init__(self, *answers: Any) -> None:
        self._answers = iter(answers)
        self.asked: list[Transaction[Any]] = []

    def run(self, transaction: Transaction[Any]) -> Any:
        self.asked.append(transaction)
        answer = next(self._answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def arun(self, transaction: Transaction[Any]) -> Any:
        await asyncio.sleep(0)
        return self.run(transaction)

    def close(self) -> None:
        raise NotImplementedError

    async def aclose(self) -> None:
        raise NotImplementedError


def _blocking(driver: Scripted, operation: Operation[Any]) -> Any:
    return run(driver, operation)


def _asyncio(driver: Scripted, operation: Operation[Any]) -> Any:
    return asyncio.run(arun(driver, operation))


APIS = pytest.mark.parametrize("drive", [_blocking, _asyncio])
Drive = Callable[[Scripted, Operation[Any]], Any]


def _nothing() -> Program[str]:
    yield Query("never run")
    return "never returned"


ONE = Transaction(_nothing, writes=False)
TWO = Transaction(_nothing, writes=True)


def _twice(begin: Callable[[], Program[str]], separator: str, *, ends: str) -> Program[str]:
    return (yield from begin()) + separator + (yield from begin()) + ends


def _echoed(text: str, *, mark: str) -> Program[str]:
    yield from ()
    return text + mark


def test_a_transaction_says_what_it_runs_and_begins_it_each_time() -> None:
    transaction: Transaction[str] = Transaction(_echoed, ("a",), {"mark": "!"}, writes=True)
    assert (transaction.program, *transaction.args) == (_echoed, "a")
    around = transaction.through(_twice, "-", ends=".")
    assert around.writes
    for each, result in ((transaction, "a!"), (transaction, "a!"), (around, "a!-a!."), (around, "a!-a!.")):
        assert play(each.begin(), lambda step: step) == result


@APIS
def test_an_operation_is_sent_what_its_transactions_return(drive: Drive) -> None:
    def operation() -> Operation[list[Any]]:
        first = yield ONE
        second = yield TWO
        return [first, second]

    driver = Scripted("a", "b")
    assert drive(driver, operation()) == ["a", "b"]
    assert driver.asked == [ONE, TWO]


@APIS
def test_an_operation_without_transactions_returns(drive: Drive) -> None:
    def operation() -> Operation[int]:
        yield from ()
        return 7

    driver = Scripted()
    assert drive(driver, operation()) == 7
    assert driver.asked == []


@APIS
def test_an_error_is_thrown_into_the_operation(drive: Drive) -> None:
    def operation() -> Operation[str]:
        try:
            yield ONE
        except StoreError:
            answer = yield TWO
            return f"after the error: {answer}"
        return "no error came"

    assert drive(Scripted(StoreError("lost"), "again"), operation()) == "after the error: again"


@APIS
def test_an_error_that_nobody_expects_passes_through(drive: Drive) -> None:
    ended = []

    def operation() -> Operation[None]:
        try:
            yield ONE
        finally:
            ended.append(True)

    with pytest.raises(StoreError, match="lost"):
        drive(Scripted(StoreError("lost")), operation())
    assert ended == [True]


@APIS
def test_an_interruption_ends_the_operation(drive: Drive) -> None:
    ended = []

    def operation() -> Operation[None]:
        try:
            yield ONE
        finally:
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        drive(Scripted(KeyboardInterrupt()), operation())
    assert ended == [True]


def test_a_cancelled_operation_is_ended() -> None:
    ended = []

    def operation() -> Operation[None]:
        try:
            yield ONE
        finally:
            ended.append(True)

    async def main() -> None:
        task = asyncio.ensure_future(arun(Scripted(None), operation()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended == [True]


def test_a_program_is_sent_the_rows_of_its_steps() -> None:
    def program() -> Program[list[Any]]:
        first = yield Query("one", (1,))
        second = yield Query("two")
        return [first, second]

    asked: list[Step] = []

    def execute(step: Step) -> Any:
        asked.append(step)
        return len(asked)

    assert play(program(), execute) == [1, 2]
    assert asked == [Query("one", (1,)), Query("two", ())]


def test_an_error_of_a_step_is_thrown_into_the_program() -> None:
    def program() -> Program[Any]:
        try:
            yield Query("fails")
        except ValueError:
            answer = yield Query("works")
            return answer
        return None

    def execute(step: Step) -> Any:
        if step == Query("fails"):
            raise ValueError
        return "rows"

    assert play(program(), execute) == "rows"


def test_a_program_is_ended_when_a_step_fails() -> None:
    ended = []

    def steps() -> Iterator[Step]:
        try:
            yield Query("fails")
        finally:
            ended.append(True)

    def program() -> Program[None]:
        yield from steps()

    def execute(_: Step) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(program(), execute)
    assert ended == [True]
