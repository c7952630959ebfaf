"""Blocking callers that meet: one of them commits for those who wait, whatever happens to it."""

import asyncio
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE, wait_until
from sqlite_file import see_writers
from threadmark import ClosedError, StoreError
from threadmark.program import Program, Transaction
from threadmark_conformance.engine import at, checkpoint
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.driver.callers import Callers, Lead
from threadmark_sqlite.steps import execute

ADD = "INSERT INTO threadmark_thread (thread_id, epoch, live, created_at) VALUES (?, 1, 1, 1)"
COUNT = "SELECT count(*) FROM threadmark_thread"


class Caller(threading.Thread):
    """A thread that makes one call and keeps its outcome."""

    def __init__(self, name: str, call: Callable[[], Any]) -> None:
        super().__init__(name=name, daemon=True)
        self._call = call
        self.outcome: Any = None
        self.start()

    def run(self) -> None:
        try:
            self.outcome = self._call()
        except BaseException as error:  # noqa: BLE001 - compared by the test
            self.outcome = error

    def result(self) -> Any:
        """The outcome of the call, which must have ended."""
        self.join(PATIENCE)
        assert not self.is_alive()
        return self.outcome


class Line:
    """A saver on a file, whose writer can be held up in the middle of a commit."""

    def __init__(self, saver: SqliteSaver) -> None:
        self.saver = saver
        self.writer = saver._driver._handles.writer  # type: ignore[attr-defined]  # a file's driver has one
        self.commits: list[str] = []
        """The threads that committed, in their order."""
        self._go = threading.Event()
        self._entered = threading.Event()
        self._in_commit = False

    def commit(self) -> None:
        """A commit begins."""
        self.commits.append(threading.current_thread().name)
        if self._in_commit and self.commits == ["first"]:
            self.hold()

    def hold(self) -> None:
        """Wait for the end of the block that holds a caller up."""
        self._entered.set()
        assert self._go.wait(PATIENCE)

    def go(self) -> None:
        """Let all callers go on."""
        self._go.set()

    def run(self, program: Callable[[], Program[Any]]) -> Any:
        return self.saver._driver.run(Transaction(program, writes=True))

    def call(self, name: str, program: Callable[[], Program[Any]]) -> Caller:
        """Have a thread run a program, and wait until it waits behind others."""
        waiting = len(self.writer._callers.waiting)
        caller = Caller(name, partial(self.run, program))
        wait_until(lambda: len(self.writer._callers.waiting) == waiting + 1, f"{name!r} does not come")
        return caller

    @contextmanager
    def held_up(self, failing: BaseException | None = None, *, early: bool = False) -> Iterator[Caller]:
        """A caller is in the middle of its commit until the end of the block: or `early`, still before it.

        If that is wanted it fails, before its commit.
        """
        wait_until(lambda: self.writer._jobs.idle, "what the main thread asked for is not over")
        self.commits.clear()
        self._go.clear()
        self._entered.clear()
        self._in_commit = failing is None and not early

        def held() -> Program[str]:
            yield from execute(COUNT)
            if not self._in_commit:
                self.hold()
            if failing is not None:
                raise failing
            return "held"

        caller = Caller("first", partial(self.run, held))
        assert self._entered.wait(PATIENCE)
        yield caller
        self.go()


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    found: list[Line] = []

    def traced(statement: str) -> None:
        if statement == "COMMIT" and found:
            found[0].commit()

    see_writers(monkeypatch, lambda connection: connection.set_trace_callback(traced))
    with SqliteSaver(tmp_path / "threads.db", durability="normal") as saver:
        saver.put(at("thread"), checkpoint(), {}, {})
        found.append(Line(saver))
        yield found[0]


def _add(name: str) -> Program[str]:
    yield from execute(ADD, (name,))
    return name


def _fail(error: BaseException) -> Program[None]:
    yield from execute(ADD, ("of one that fails",))
    raise error


def _stored(line: Line) -> int:
    def count() -> Program[int]:
        ((stored,),) = yield from execute(COUNT)
        return int(stored)

    return int(line.saver._driver.run(Transaction(count, writes=False)))


def test_those_who_wait_share_a_commit_and_the_first_of_them_makes_it(line: Line) -> None:
    with line.held_up() as first:
        others = [line.call(f"caller {number}", partial(_add, str(number))) for number in range(5)]
    assert [each.result() for each in (first, *others)] == ["held", "0", "1", "2", "3", "4"]
    assert line.commits == ["first", "caller 0"]
    assert _stored(line) == 6


def test_those_who_come_before_a_commit_share_it(line: Line) -> None:
    with line.held_up(early=True) as first:
        others = [line.call(f"caller {number}", partial(_add, str(number))) for number in range(5)]
    assert [each.result() for each in (first, *others)] == ["held", "0", "1", "2", "3", "4"]
    assert line.commits == ["first"]
    assert _stored(line) == 6


def test_a_commit_has_an_end_however_many_come_before_it(line: Line) -> None:
    with line.held_up(early=True) as first:
        others = [line.call(f"caller {number}", partial(_add, str(number))) for number in range(70)]
    assert [each.result() for each in (first, *others)] == ["held", *map(str, range(70))]
    assert line.commits == ["first", "caller 63"]


@pytest.mark.parametrize("error", [ValueError("wrong"), KeyboardInterrupt()], ids=lambda error: type(error).__name__)
def test_one_that_fails_in_the_commit_of_another_harms_nobody(error: BaseException, line: Line) -> None:
    with line.held_up(early=True) as first:
        failing = line.call("failing", partial(_fail, error))
        others = [line.call(f"caller {number}", partial(_add, str(number))) for number in range(3)]
    assert first.result() == "held"
    assert failing.result() is error
    assert [each.result() for each in others] == ["0", "1", "2"]
    assert _stored(line) == 4


def test_an_error_after_a_commit_reaches_all_who_shared_it(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    error = StoreError("the file is gone")

    def fail(*_: Any, **__: Any) -> None:
        raise error

    with line.held_up(early=True) as first, monkeypatch.context() as patched:
        others = [line.call(f"caller {number}", partial(_add, str(number))) for number in range(2)]
        patched.setattr(line.writer, "_finish", fail)
        line.go()
        assert [each.result() for each in (first, *others)] == [error] * 3
    assert line.commits == ["first"]
    assert _stored(line) == 3


def test_a_commit_has_an_end_however_many_wait(line: Line) -> None:
    with line.held_up() as first:
        others = [line.call(f"caller {number}", partial(_add, str(number))) for number in range(70)]
    assert [each.result() for each in (first, *others)] == ["held", *map(str, range(70))]
    assert line.commits == ["first", "caller 0", "caller 64"]


ERRORS = [ValueError("wrong"), KeyboardInterrupt(), SystemExit(1), MemoryError()]


def test_one_that_fails_leaves_the_file_to_other_processes(line: Line) -> None:
    error = ValueError("failed")
    assert Caller("failing", partial(line.run, partial(_fail, error))).result() is error
    with closing(sqlite3.connect(line.writer._settings.path, timeout=0)) as other:
        other.execute("BEGIN IMMEDIATE")


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_those_behind_one_that_fails_are_served(error: BaseException, line: Line) -> None:
    with line.held_up(error) as first:
        others = [line.call(f"caller {number}", partial(_add, str(number))) for number in range(3)]
    assert first.result() is error
    assert [each.result() for each in others] == ["0", "1", "2"]
    assert _stored(line) == 4


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_those_for_whom_one_that_fails_commits_are_served(error: BaseException, line: Line) -> None:
    with line.held_up() as first:
        failing = line.call("failing", partial(_fail, error))
        others = [line.call(f"caller {number}", partial(_add, str(number))) for number in range(3)]
    assert first.result() == "held"
    assert failing.result() is error
    assert [each.result() for each in others] == ["0", "1", "2"]
    assert _stored(line) == 4


def test_those_behind_one_that_is_stopped_before_it_commits_are_served(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead = line.writer._lead

    def stopped(*arguments: Any) -> Any:
        if threading.current_thread().name == "stopped":
            raise KeyboardInterrupt
        return lead(*arguments)

    monkeypatch.setattr(line.writer, "_lead", stopped)
    with line.held_up() as first:
        stopped_one = line.call("stopped", partial(_add, "stopped"))
        others = [line.call(f"caller {number}", partial(_add, str(number))) for number in range(3)]
    assert first.result() == "held"
    assert isinstance(stopped_one.result(), KeyboardInterrupt)
    assert [each.result() for each in others] == ["0", "1", "2"]
    assert line.commits == ["first", "caller 0"]


def test_a_full_stack_stops_only_the_one_whose_it_is(line: Line) -> None:
    limit = sys.getrecursionlimit()
    outcomes: list[Any] = []

    def add_below(frames: int, name: str) -> Any:
        return add_below(frames - 1, name) if frames else line.run(partial(_add, name))

    for frames in range(limit - 40, limit):
        with line.held_up() as first:
            deep = Caller("deep", partial(add_below, frames, f"deep {frames}"))
            wait_until(lambda deep=deep: line.writer._callers.waiting or not deep.is_alive(), "it does not come")  # type: ignore[misc]
            others = [line.call(f"caller {number}", partial(_add, f"{frames} {number}")) for number in range(2)]
        assert [each.result() for each in others] == [f"{frames} 0", f"{frames} 1"]
        assert first.result() == "held"
        outcomes.append(deep.result())
    went_well = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert 0 < len(went_well) < len(outcomes)
    assert all(isinstance(outcome, (str, RecursionError)) for outcome in outcomes)
    assert _stored(line) == 1 + len(went_well) + 2 * len(outcomes)


def test_closing_waits_for_all_who_have_come_and_refuses_others(line: Line) -> None:
    with line.held_up() as first:
        others = [line.call(f"caller {number}", partial(_add, str(number))) for number in range(3)]
        closing = Caller("closing", line.saver.close)
        wait_until(lambda: line.writer._callers._closed, "nobody closes it")
        assert isinstance(Caller("late", partial(line.run, partial(_add, "late"))).result(), ClosedError)
        assert closing.is_alive()
    assert [each.result() for each in (first, *others)] == ["held", "0", "1", "2"]
    assert closing.result() is None
    with SqliteSaver(line.saver._driver.path) as saver:  # type: ignore[attr-defined]  # a file's driver has one
        assert saver.get(at("thread")) is not None


def test_a_call_from_within_a_transaction_is_refused_and_does_not_wait_for_itself(line: Line) -> None:
    def nested() -> Program[str]:
        with pytest.raises(StoreError, match="from within a transaction of its own"):
            line.saver.put(at("nested"), checkpoint(), {}, {})
        return (yield from _add("nested"))

    assert Caller("nested", partial(line.run, nested)).result() == "nested"
    with line.held_up():
        led = line.call("led", nested)
        behind = line.call("behind", partial(_add, "behind"))
    assert isinstance(led.result(), StoreError)  # its row is there already
    assert behind.result() == "behind"


def test_callers_and_event_loops_meet(line: Line) -> None:
    async def put(number: int) -> None:
        await line.saver.aput(at(f"loop {number}"), checkpoint(), {}, {})

    async def put_some() -> None:
        await asyncio.gather(*map(put, range(40)))

    with line.held_up() as first:
        others = [line.call(f"caller {number}", partial(_add, str(number))) for number in range(5)]
        loop = Caller("loop", lambda: asyncio.run(put_some()))
        wait_until(lambda: not line.writer._jobs.idle, "no task asks for anything")
        late = Caller("late", partial(line.run, partial(_add, "late")))
    assert [each.result() for each in (first, *others)] == ["held", "0", "1", "2", "3", "4"]
    assert loop.result() is None
    assert late.result() == "late"
    assert _stored(line) == 47


class _Let:
    """A lock that lets something happen before it is released, and something before that is over."""

    def __init__(self, before: Callable[[], Any], after: Callable[[], Any]) -> None:
        self._lock = threading.Lock()
        self._before, self._after = before, after
        self.taken = 0

    def acquire(self, blocking: bool = True) -> bool:  # noqa: FBT001, FBT002 - as a lock's
        taken = self._lock.acquire(blocking)
        self.taken += taken
        return taken

    def release(self) -> None:
        before, self._before = self._before, lambda: None
        after, self._after = self._after, lambda: None
        before()
        self._lock.release()
        after()


def test_who_comes_while_the_last_one_leaves_is_answered_although_somebody_closes() -> None:
    callers = Callers()
    transaction = Transaction(_add, ("late",), writes=True)
    waiting: list[Any] = []
    closing: list[Caller] = []

    def come() -> None:
        """Wait for the caller that is about to leave, and let another close."""
        Caller("late", lambda: waiting.append(callers.enter(transaction))).result()
        closing.append(Caller("closing", callers.close))
        wait_until(lambda: callers._closed, "nobody closes it")

    callers._led = lock = _Let(come, lambda: wait_until(lambda: lock.taken == 2, "nobody takes it"))  # type: ignore[assignment]
    assert callers.enter(transaction) is None
    assert callers.leave() is None
    (late,) = waiting
    assert late.wait(PATIENCE)
    assert isinstance(late.result(), Lead)
    assert callers.leave() is None
    assert closing[0].result() is None
