"""A program is played on a connection by the compiled part as it is by the one in Python, errors included."""

import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from threadmark.runtime.program import Program, Step, Transaction
from threadmark_speed.programs import AtOnce
from threadmark_sqlite.driver.playing import committed, committed_in_python, plain_text, played, played_in_python
from threadmark_sqlite.steps import Direct, execute, execute_alone, executemany


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(":memory:", isolation_level=None)
    opened.execute("CREATE TABLE kept (number INTEGER PRIMARY KEY, text TEXT)")
    yield opened
    opened.close()


BOTH = pytest.mark.parametrize(
    "run", [pytest.param(played, id="compiled"), pytest.param(played_in_python, id="python")]
)
BOTH_COMMIT = pytest.mark.parametrize(
    "commit", [pytest.param(committed, id="compiled"), pytest.param(committed_in_python, id="python")]
)


@BOTH
def test_steps_are_answered(run: Any, connection: sqlite3.Connection) -> None:
    def program() -> Program[Any]:
        yield from executemany("INSERT INTO kept VALUES (?, ?)", [(1, "one"), (2, "two")])
        assert (yield from execute("INSERT INTO kept VALUES (3, 'three')")) == []
        assert (yield from execute("SELECT text FROM kept WHERE number = ?", (2,))) == [("two",)]
        return (yield from execute("SELECT count(*) FROM kept"))

    assert run(connection, program()) == [(3,)]


@BOTH
def test_a_program_may_see_to_what_failed(run: Any, connection: sqlite3.Connection) -> None:
    def program(*, returns: bool) -> Program[Any]:
        try:
            yield from execute("SELECT one FROM nowhere")
        except sqlite3.OperationalError as error:
            if returns:
                return str(error)
        return (yield from execute("SELECT 1"))

    assert run(connection, program(returns=True)) == "no such table: nowhere"
    assert run(connection, program(returns=False)) == [(1,)]


@BOTH
def test_what_fails_ends_the_program(run: Any, connection: sqlite3.Connection) -> None:
    ended: list[bool] = []

    class Unknown(Step):
        pass

    def program(first: Any) -> Program[Any]:
        try:
            yield from first
        finally:
            ended.append(True)

    with pytest.raises(sqlite3.IntegrityError):
        run(connection, program(execute("INSERT INTO kept SELECT 1, '' UNION ALL SELECT 1, ''")))
    with pytest.raises(TypeError, match="has no Unknown"):
        run(connection, program(iter([Unknown()])))
    with pytest.raises(ValueError, match="by itself"):
        run(connection, program(_raising()))
    assert len(ended) == 3


def _raising() -> Program[Any]:
    yield from execute("SELECT 1")
    raise ValueError("by itself")


@BOTH
def test_an_interrupt_closes_the_program(run: Any, connection: sqlite3.Connection) -> None:
    ended: list[bool] = []

    class Interrupting:
        def __conform__(self, _: object) -> None:
            raise KeyboardInterrupt

        def __iter__(self) -> Any:
            raise KeyboardInterrupt

    def program() -> Program[Any]:
        try:
            yield from executemany("INSERT INTO kept VALUES (?, ?)", Interrupting())  # type: ignore[arg-type]  # interrupts
        finally:
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        run(connection, program())
    assert ended == [True]


@BOTH
def test_damaged_text_is_read(run: Any, connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO kept VALUES (1, CAST(x'ff41' AS TEXT))")
    assert run(connection, execute("SELECT text FROM kept")) == [("\udcffA",)]
    assert connection.text_factory is plain_text


@pytest.fixture
def executed(connection: sqlite3.Connection) -> list[str]:
    """What SQLite is told on the connection."""
    told: list[str] = []
    connection.set_trace_callback(told.append)
    return told


_LONG = "SELECT number FROM kept"
_COUNT = "SELECT count(*) FROM kept"


def _reading(*, alone: bool = True, more: bool = False, other: sqlite3.Connection | None = None) -> Program[Any]:
    rows = yield from (execute_alone if alone else execute)(_LONG)
    if other is not None and len(rows) < 2:
        other.execute("INSERT INTO kept (text) VALUES ('')")
    return (rows, (yield from execute_alone(_COUNT))) if more else rows


@BOTH_COMMIT
def test_one_statement_needs_no_transaction(commit: Any, connection: sqlite3.Connection, executed: list[str]) -> None:
    assert commit(connection, Transaction(_reading, writes=False)) == []
    assert executed == [_LONG]
    executed.clear()
    assert commit(connection, Transaction(partial(_reading, more=True), writes=False)) == ([], [(0,)])
    assert executed == [_LONG, "BEGIN", _LONG, _COUNT, "COMMIT"]
    executed.clear()
    assert commit(connection, Transaction(partial(_reading, alone=False), writes=False)) == []
    assert executed == ["BEGIN", _LONG, "COMMIT"]
    executed.clear()
    assert commit(connection, Transaction(_reading, writes=True)) == []
    assert executed == ["BEGIN IMMEDIATE", _LONG, "COMMIT"]


@BOTH_COMMIT
def test_a_program_starts_anew_in_another_snapshot(commit: Any, tmp_path: Path, executed: list[str]) -> None:
    reader, writer = (sqlite3.connect(tmp_path / "kept.db", isolation_level=None) for _ in range(2))
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE kept (number INTEGER PRIMARY KEY, text TEXT)")
    reader.set_trace_callback(executed.append)
    read = partial(_reading, more=True, other=writer)
    # The row that comes in the middle of the first attempt is seen by both statements; that of the second, by neither.
    assert commit(reader, Transaction(read, writes=False)) == ([(1,)], [(1,)])
    assert executed == [_LONG, "BEGIN", _LONG, _LONG, _COUNT, "COMMIT"]
    assert writer.execute(_COUNT).fetchall() == [(2,)]
    assert not reader.in_transaction
    reader.close()
    writer.close()


@BOTH_COMMIT
def test_what_fails_is_rolled_back(commit: Any, connection: sqlite3.Connection, executed: list[str]) -> None:
    def program(first: Any) -> Program[Any]:
        yield from first(_LONG)
        yield from execute("SELECT one FROM nowhere")

    for first, writes in ((execute, True), (execute, False), (execute_alone, False)):
        executed.clear()
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            commit(connection, Transaction(partial(program, first), writes=writes))
        assert executed[-1] == "ROLLBACK"
        assert not connection.in_transaction
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        commit(connection, Transaction(partial(execute_alone, "SELECT one FROM nowhere"), writes=False))


@BOTH_COMMIT
def test_who_waits_joins_before_the_commit(commit: Any, connection: sqlite3.Connection, executed: list[str]) -> None:
    transaction: Transaction[Any] = Transaction(partial(execute, _COUNT), writes=True)
    waiting: list[int] = []

    def join() -> None:
        waiting.clear()
        played(connection, execute(_LONG))

    assert commit(connection, transaction, waiting, join) == [(0,)]
    assert executed == ["BEGIN IMMEDIATE", _COUNT, "COMMIT"]
    executed.clear()
    waiting.append(1)
    assert commit(connection, transaction, waiting, join) == [(0,)]
    assert executed == ["BEGIN IMMEDIATE", _COUNT, _LONG, "COMMIT"]


@BOTH_COMMIT
def test_nothing_asked_begins_no_reading(commit: Any, connection: sqlite3.Connection, executed: list[str]) -> None:
    def program() -> Program[int]:
        yield from ()
        return 5

    assert commit(connection, Transaction(program, writes=False)) == 5
    assert executed == []


def _counted(at_least: int) -> Program[str]:
    """A program whose one step counts what is kept, where that is so much."""

    def count(run: Any, fetch: Any, least: int) -> str | None:
        run("SELECT count(*) FROM kept")
        ((found,),) = fetch()
        return f"{found} at once" if found >= least else None

    def in_steps(least: int) -> Program[str]:
        yield from execute("INSERT INTO kept VALUES (1, 'one')")
        ((found,),) = yield from execute("SELECT count(*) FROM kept")
        return f"{found} of {least} in steps"

    return AtOnce(Direct(count, at_least), in_steps)


def _as_part(program: Program[str]) -> Program[str]:
    yield from execute("SELECT 1")
    found = yield from program
    yield from execute("SELECT 2")
    return found


@pytest.mark.parametrize("made", [_counted, lambda least: _as_part(_counted(least))], ids=["whole", "part"])
def test_what_one_step_cannot_do_the_program_does(made: Any, connection: sqlite3.Connection) -> None:
    assert played(connection, made(0)) == "0 at once"
    assert played(connection, made(1)) == "1 of 1 in steps"
    assert played(connection, made(1)) == "1 at once"


def test_who_has_no_cursor_to_give_runs_the_program(connection: sqlite3.Connection) -> None:
    assert played_in_python(connection, _counted(0)) == "1 of 0 in steps"


def test_what_fails_in_one_step_fails_the_program(connection: sqlite3.Connection) -> None:
    def failing(run: Any, fetch: Any, argument: str) -> str | None:
        run(argument)
        return str(fetch())

    def in_steps(argument: str) -> Program[str]:
        return str((yield from execute(argument)))

    for made in (
        AtOnce(Direct(failing, "SELECT x"), in_steps),
        _as_part(AtOnce(Direct(failing, "SELECT x"), in_steps)),
    ):
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            played(connection, made)
    # Text that sqlite3 cannot read is no failure: the program reads it in another way.
    assert played(connection, AtOnce(Direct(failing, "SELECT CAST(x'FF' AS TEXT)"), in_steps)) == "[('\\udcff',)]"
