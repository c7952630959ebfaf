"""A program is played on a connection by the compiled part as it is by the one in Python, errors included."""

import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from threadmark.program import Program, Step, Transaction, play
from threadmark_speed.files import status_of
from threadmark_sqlite.driver import connection as running
from threadmark_sqlite.driver.connection import committed, plain_text, played
from threadmark_sqlite.driver.connection import execute as execute_step
from threadmark_sqlite.steps import directly, execute, execute_alone, executemany


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(":memory:", isolation_level=None)
    opened.execute("CREATE TABLE kept (number INTEGER PRIMARY KEY, text TEXT)")
    yield opened
    opened.close()


def in_python(connection: sqlite3.Connection, program: Program[Any]) -> Any:
    return play(program, partial(execute_step, connection))


BOTH = pytest.mark.parametrize("run", [pytest.param(played, id="compiled"), pytest.param(in_python, id="python")])


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


@pytest.fixture(params=[pytest.param(True, id="compiled"), pytest.param(False, id="python")])
def executed(
    request: pytest.FixtureRequest, connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """What SQLite is told on the connection."""
    monkeypatch.setattr(running, "IN_USE", request.param)
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


def test_one_statement_needs_no_transaction(connection: sqlite3.Connection, executed: list[str]) -> None:
    assert committed(connection, Transaction(_reading, writes=False)) == []
    assert executed == [_LONG]
    executed.clear()
    assert committed(connection, Transaction(partial(_reading, more=True), writes=False)) == ([], [(0,)])
    assert executed == [_LONG, "BEGIN", _LONG, _COUNT, "COMMIT"]
    executed.clear()
    assert committed(connection, Transaction(partial(_reading, alone=False), writes=False)) == []
    assert executed == ["BEGIN", _LONG, "COMMIT"]
    executed.clear()
    assert committed(connection, Transaction(_reading, writes=True)) == []
    assert executed == ["BEGIN IMMEDIATE", _LONG, "COMMIT"]


def test_a_program_starts_anew_in_another_snapshot(tmp_path: Path, executed: list[str]) -> None:
    reader, writer = (sqlite3.connect(tmp_path / "kept.db", isolation_level=None) for _ in range(2))
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE kept (number INTEGER PRIMARY KEY, text TEXT)")
    reader.set_trace_callback(executed.append)
    read = partial(_reading, more=True, other=writer)
    # The row that comes in the middle of the first attempt is seen by both statements; that of the second, by neither.
    assert committed(reader, Transaction(read, writes=False)) == ([(1,)], [(1,)])
    assert executed == [_LONG, "BEGIN", _LONG, _LONG, _COUNT, "COMMIT"]
    assert writer.execute(_COUNT).fetchall() == [(2,)]
    assert not reader.in_transaction
    reader.close()
    writer.close()


def test_what_fails_is_rolled_back(connection: sqlite3.Connection, executed: list[str]) -> None:
    def program(first: Any) -> Program[Any]:
        yield from first(_LONG)
        yield from execute("SELECT one FROM nowhere")

    for first, writes in ((execute, True), (execute, False), (execute_alone, False)):
        executed.clear()
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            committed(connection, Transaction(partial(program, first), writes=writes))
        assert executed[-1] == "ROLLBACK"
        assert not connection.in_transaction
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        committed(connection, Transaction(partial(execute_alone, "SELECT one FROM nowhere"), writes=False))


def test_nothing_asked_begins_no_reading(connection: sqlite3.Connection, executed: list[str]) -> None:
    def program() -> Program[int]:
        yield from ()
        return 5

    assert committed(connection, Transaction(program, writes=False)) == 5
    assert executed == []


def test_only_a_cursor_is_given_to_a_function(connection: sqlite3.Connection) -> None:
    def function(run: Any, fetch: Any, argument: int) -> Any:
        run("SELECT ?", (argument,))
        return fetch()

    assert played(connection, directly(function, 3)) == [(3,)]
    assert in_python(connection, directly(function, 3)) is None


def test_a_file_is_looked_at_the_same(tmp_path: Path) -> None:
    path = tmp_path / "żółw.db"
    path.write_bytes(b"12345")
    seen = path.stat()
    assert status_of(str(path)) == (seen.st_dev, seen.st_ino, seen.st_mtime_ns, 5)
    for wrong, kind in ((path / "below", NotADirectoryError), (tmp_path / "none", FileNotFoundError)):
        with pytest.raises(kind) as error:
            status_of(str(wrong))
        assert error.value.filename == str(wrong)
    with pytest.raises(ValueError, match="null byte"):
        status_of("a\0b")
