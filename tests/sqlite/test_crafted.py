"""Small files that were made to answer for ever, or with more than there is memory for: each is refused at once."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from operator import length_hint
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver as TheirSqlite

from sqlite_cells import TABLES
from sqlite_next_format import STEP
from threadmark import CorruptDataError, PersistentDict, SchemaError, bounded_sqlite
from threadmark.bounded_sqlite import BoundedConnection, fetched
from threadmark.program import Transaction
from threadmark_conformance.engine import at, checkpoint
from threadmark_langgraph import migrate
from threadmark_sqlite import SqliteSaver, migrations
from threadmark_sqlite.driver.connection import Settings, to_threadmark_error, transact
from threadmark_sqlite.driver.playing import played
from threadmark_sqlite.sql import connections
from threadmark_sqlite.steps import execute

if sys.platform != "win32":
    import resource

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
LARGE = "zeroblob(100000000)"
THEIRS: Any = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}
ANOTHER_STEP = STEP._replace(
    statements=(
        "ALTER TABLE threadmark_thread ADD COLUMN made_up_too TEXT",
        "ALTER TABLE threadmark_batch ADD COLUMN made_up BLOB",
    )
)
MEMORY = 1_000_000_000
"""Bytes of addresses that a child may have."""


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A file with a thread."""
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        config = saver.put(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})
        saver.put_writes(config, [("a", 2)], "task")
    return path


def as_view(path: Path, table: str, column: str) -> None:
    """Replace a table by a view of the same columns, which has rows without end."""
    with closing(sqlite3.connect(path)) as connection, connection:
        names = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
        values = ", ".join(f"{LARGE if name == column else f'(SELECT {name} FROM kept)'} AS {name}" for name in names)
        connection.execute(f"ALTER TABLE {table} RENAME TO kept")
        connection.execute(f"CREATE VIEW {table} AS {ENDLESS} SELECT {values} FROM n")


def in_a_child(*statements: str) -> str:
    """The last line of a child that has little memory and little time."""
    program = "\n".join(("import threadmark, threadmark_sqlite, sys", *statements))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, preexec_fn=limit, check=False
    )
    return (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1]


@pytest.mark.parametrize("table", TABLES)
def test_a_view_in_the_place_of_a_table_is_refused(ours: Path, table: str) -> None:
    as_view(ours, table, {"threadmark_checkpoint": "header", "threadmark_thread": "title"}.get(table, "value"))
    for call in ("get_tuple({'configurable': {'thread_id': 'thread'}})", "list_threads()", "stats()"):
        said = in_a_child(f"threadmark_sqlite.SqliteSaver({str(ours)!r}).{call}")
        assert said.startswith("threadmark.errors.SchemaError"), said
        assert "Threadmark did not make" in said


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TRIGGER harmless AFTER INSERT ON threadmark_checkpoint BEGIN SELECT 1; END",
        "CREATE VIEW threadmark_more AS SELECT 1",
        "DROP INDEX threadmark_thread_created",
        "ALTER TABLE threadmark_segment ADD COLUMN more AS (zeroblob(100000000))",
    ],
)
def test_what_else_belongs_to_no_table_of_ours_is_refused(ours: Path, change: str) -> None:
    with closing(sqlite3.connect(ours)) as connection, connection:
        connection.execute(change)
    with pytest.raises(SchemaError, match="Threadmark"), SqliteSaver(ours) as saver:
        saver.list_threads()


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TRIGGER threadmark_harmless AFTER INSERT ON threadmark_checkpoint BEGIN SELECT 1; END",
        "CREATE VIEW threadmark_more AS SELECT 1",
        "CREATE TABLE threadmark_more (a, b AS (a + 1))",
        "CREATE TABLE threadmark_more (a CHECK (a > 1))",
        "CREATE VIRTUAL TABLE threadmark_more USING fts5(a)",
        "ALTER TABLE threadmark_segment ADD COLUMN more AS (zeroblob(100000000))",
        "ALTER TABLE threadmark_segment ADD COLUMN more TEXT CHECK (more <> '')",
        "ALTER TABLE threadmark_segment ADD COLUMN more TEXT REFERENCES threadmark_thread (owner)",
        "ALTER TABLE threadmark_thread RENAME COLUMN title TO other",
        "ALTER TABLE threadmark_thread DROP COLUMN title",
        "DROP INDEX threadmark_thread_created",
        "DROP TABLE threadmark_outbox",
    ],
)
def test_a_file_of_a_later_release_may_only_have_more_of_what_computes_nothing(ours: Path, change: str) -> None:
    with closing(sqlite3.connect(ours)) as connection, connection:
        connection.execute("INSERT INTO threadmark_migration VALUES (2, 'later', '', 1, 1)")
        connection.execute("ALTER TABLE threadmark_thread ADD COLUMN more INTEGER NOT NULL DEFAULT 1")
        connection.execute("ALTER TABLE threadmark_head ADD COLUMN more TEXT DEFAULT 'a'")
        connection.execute("CREATE TABLE threadmark_other (a INTEGER PRIMARY KEY, b TEXT NOT NULL)")
    with SqliteSaver(ours) as saver:
        assert len(saver.list_threads().threads) == 1
    with closing(sqlite3.connect(ours)) as connection, connection:
        connection.execute(change)
    with pytest.raises(SchemaError, match="Threadmark"), SqliteSaver(ours) as saver:
        saver.list_threads()


def test_other_tables_and_an_index_of_the_user_are_no_matter(ours: Path) -> None:
    with closing(sqlite3.connect(ours)) as connection, connection:
        connection.execute("CREATE TABLE mine (a)")
        connection.execute("CREATE INDEX mine_too ON threadmark_thread (created_at)")
    with SqliteSaver(ours) as saver:
        assert saver.get_tuple(at("thread")) is not None


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A file of LangGraph's."""
    path = tmp_path / "theirs.db"
    with TheirSqlite.from_conn_string(str(path)) as saver:
        saver.put(THEIRS, checkpoint({"a": 1}), {}, {"a": 1})  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize(("table", "column"), [("checkpoints", "checkpoint"), ("writes", "value")])
def test_a_view_in_a_file_of_langgraphs_is_refused(theirs: Path, table: str, column: str, tmp_path: Path) -> None:
    as_view(theirs, table, column)
    said = in_a_child("from threadmark_cli.main import main", f"sys.argv[1:] = ['threads', {str(theirs)!r}]", "main()")
    assert "is computed" in said
    with pytest.raises(SchemaError, match="is computed"):
        migrate(str(theirs), str(tmp_path / "moved.db"))


def test_a_view_in_a_dictionary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dictionary.db"
    kept: PersistentDict[str, int] = PersistentDict(path)
    with kept:
        kept["a"] = 1
    as_view(path, "entry", "value")
    said = in_a_child(f"threadmark.PersistentDict({str(path)!r})['a']")
    assert said.startswith("threadmark.errors.SchemaError"), said


def test_a_transaction_has_an_end() -> None:
    settings = Settings("crafted", "full", 1)
    with closing(BoundedConnection(":memory:")) as connection:
        connection.bound("crafted")
        with pytest.raises(sqlite3.OperationalError) as caught:
            played(connection, execute(f"{ENDLESS} SELECT count(*) FROM n"))
    assert isinstance(to_threadmark_error(caught.value, settings), CorruptDataError)


def test_no_python_code_looks_at_the_first_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def ask(_: str, portions: int) -> bool:
        asked.append(portions)
        return False

    monkeypatch.setattr(bounded_sqlite, "_EVERY", 100)
    monkeypatch.setattr(bounded_sqlite, "_is_too_many", ask)
    counting = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT count(*) FROM n"
    with closing(BoundedConnection(":memory:", isolation_level=None)) as connection:
        connection.bound("no file")
        for _ in range(3):  # a signal handler's exception would be lost here
            assert connection.execute(counting, (50,)).fetchone() == (50,)
            bounded_sqlite.reset_steps(connection)
        assert asked == []
        assert connection.execute(counting, (1000,)).fetchone() == (1000,)
        assert asked[:2] == [1, 2]


def test_each_transaction_has_all_the_steps() -> None:
    counting = f"{ENDLESS} SELECT count(*) FROM (SELECT i FROM n LIMIT 300000)"
    transaction = Transaction(lambda: execute(counting), writes=False)
    with closing(BoundedConnection(":memory:", isolation_level=None)) as connection:
        connection.bound("crafted")
        for _ in range(8):  # all of them together have more steps than one may have
            assert transact(connection, transaction, Settings("crafted", "full", 1)) == [(300000,)]


def test_a_saver_may_write_any_number_of_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_sqlite, "_FREE_PORTIONS", 3)
    monkeypatch.setattr(bounded_sqlite, "_STEPS_PER_BYTE", 0)
    counting = f"{ENDLESS} SELECT count(*) FROM (SELECT i FROM n LIMIT 100000)"
    transaction = Transaction(lambda: execute(counting), writes=True)
    with SqliteSaver(tmp_path / "a.db") as saver, ThreadPoolExecutor(1) as pool:
        for _ in range(8):  # all of them together have more steps than one may have
            assert saver._driver.run(transaction) == [(100000,)]  # on the writer's thread
        for _ in range(8):
            assert pool.submit(saver._driver.run, transaction).result() == [(100000,)]


def test_a_statement_gives_no_more_than_is_in_the_file() -> None:
    settings = Settings("crafted", "full", 1)
    question = f"{ENDLESS} SELECT zeroblob(1000000) FROM n LIMIT 200"
    with closing(BoundedConnection(":memory:")) as connection:
        with pytest.raises(sqlite3.DatabaseError) as played_out:
            played(connection, execute(question))
        with pytest.raises(sqlite3.DatabaseError) as fetched_out:
            fetched(connection.execute(question))
        for caught in (played_out, fetched_out):
            assert isinstance(to_threadmark_error(caught.value, settings), CorruptDataError)
        rows = played(connection, execute(f"{ENDLESS} SELECT i, 'text' FROM n LIMIT 100"))
        assert rows == fetched(connection.execute(f"{ENDLESS} SELECT i, 'text' FROM n LIMIT 100"))
        assert len(rows) == 100


def test_a_read_that_was_interrupted_keeps_no_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interactive interpreter keeps the last exception, and with it the frame that fetched rows."""

    def interrupted(value: object) -> int:
        if isinstance(value, (str, bytes)):  # of a row
            monkeypatch.undo()
            raise KeyboardInterrupt
        return length_hint(value)

    with SqliteSaver(tmp_path / "a.db") as saver:
        config = at("thread")
        for number in range(2 * bounded_sqlite.FEW):
            config = saver.put(config, checkpoint(), {"n": number}, {})
        assert len(list(saver.list(at("thread")))) == 2 * bounded_sqlite.FEW
        monkeypatch.setattr(bounded_sqlite, "length_hint", interrupted)
        with pytest.raises(KeyboardInterrupt) as kept:
            list(saver.list(at("thread")))
        saver.put(config, checkpoint(), {"n": "new"}, {})
        assert [item.metadata["n"] for item in saver.list(at("thread"), limit=1)] == ["new"]
        assert kept.traceback


@pytest.mark.parametrize("later", [(), (STEP,), (STEP, ANOTHER_STEP)], ids=["present", "next", "after the next"])
def test_the_expected_statements_are_those_that_sqlite_records(later: tuple[migrations.Migration, ...]) -> None:
    steps = (*migrations.MIGRATIONS, *later)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in (statement for step in steps for statement in step.statements):
            connection.execute(statement)
        recorded = {name: " ".join(made.split()) for _, name, _, made in connection.execute(connections.SCHEMA)}
    assert migrations._schema_of(steps) == recorded
