"""The cost of replication in a file: nothing without it, and otherwise rows that are found along indexes."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from sqlite_plans import is_walk, on_connection, plan_of
from threadmark.program import Program, Step, play
from threadmark.store.contract import (
    ANYONE,
    TOMBSTONE_MICROSECONDS,
    Change,
    CheckpointRow,
    Follows,
    Outline,
    WriteRow,
    now,
)
from threadmark.store.replica import Copied, Replica
from threadmark_conformance.engine import early_id
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.placeholders import with_rows
from threadmark_sqlite.sql import adding, replication
from threadmark_sqlite.steps import Query
from threadmark_sqlite.store import SqliteStore

STORE = SqliteStore()

_OF_REPLICATION = ("position", "copied", "outbox", "replica")


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    with SqliteSaver(connection) as saver:
        saver.setup()
    yield connection
    connection.close()


def _change(number: int, **fields: Any) -> Change:
    """A checkpoint of the thread "t", in its own place."""
    outline = Outline("t", "", early_id(number), early_id(number), None, number, "{}")
    rows = () if "writes" in fields else (CheckpointRow(outline, b"header", b"check of a row", None),)
    change = Change("t", None, number, {b"key": b"data"}, rows, (), None, token=ANYONE)
    return change._replace(**fields)


def _statements(connection: sqlite3.Connection, program: Program[Any]) -> list[str]:
    """Play a program. Returns the statements that it executes."""
    found: list[str] = []
    answer = on_connection(connection)

    def note(step: Step) -> Any:
        if isinstance(step, Query):
            found.append(step.sql)
        return answer(step)

    play(program, note)
    return found


def test_a_bare_change_executes_what_it_did_before_there_was_replication(database: sqlite3.Connection) -> None:
    segments = with_rows(adding.ADD_SEGMENTS, adding.ROW_OF_SEGMENT, 1)
    write = WriteRow("", early_id(1), "task", 0, "", "channel", b"value", b"check")
    put = [adding.THREAD_AND_CHECKPOINT, segments, adding.ADD_CHECKPOINT, adding.ADD_TO_HEAD]
    written = [adding.THREAD, segments, with_rows(adding.ADD_WRITES, adding.ROW_OF_WRITE, 1)]
    begin = [adding.ADD_ROOT_HEAD, adding.BEGIN_THREAD, adding.THREAD]
    assert _statements(database, STORE.add(_change(1))) == [*put[:1], *begin, *put[1:]]
    assert _statements(database, STORE.add(_change(2))) == put
    assert _statements(database, STORE.add(_change(3, writes=[write]))) == written
    for statement in {*put, *written, *begin}:
        assert not any(name in statement for name in _OF_REPLICATION), statement


def test_an_entry_takes_three_statements_and_a_term_one(database: sqlite3.Connection) -> None:
    play(STORE.add(_change(1)), on_connection(database))
    bare = _statements(database, STORE.add(_change(2)))
    recorded = [replication.POSITION, replication.SET_POSITION, replication.ADD_ENTRY]
    change = _change(3, term=0, entry=b"entry")
    assert _statements(database, STORE.add(change)) == [replication.REPLICA, *bare, *recorded]
    play(STORE.set_replica(Replica(2, "{}")), on_connection(database))
    assert _statements(database, STORE.add(_change(4, term=1, entry=b"entry"))) == [replication.REPLICA]
    play(STORE.settle("t", now() + 1), on_connection(database))
    followed = _statements(database, STORE.add(_change(5, copied=Follows(-1, 10, 1))))
    assert followed == [replication.PROGRESS, *bare, replication.SET_COPIED]


def test_what_replication_asks_is_found_along_an_index(database: sqlite3.Connection) -> None:
    _fill(database)
    names = [f"t{number}" for number in range(40, 60)]
    for program, index in (
        (STORE.outbox(None, 20), "threadmark_outbox_position"),
        (STORE.outbox("t1", 20), "PRIMARY KEY (thread_id=?)"),
        (STORE.waiting(), "COVERING INDEX threadmark_outbox_position"),
        (STORE.settle("t1", 1), "PRIMARY KEY (thread_id=? AND position<?)"),
        (STORE.positions(names), "INDEX sqlite_autoindex_threadmark_thread_1 (thread_id=?)"),
        (STORE.copied(names), "(thread_id=?)"),
        (STORE.summaries("t5", 20), "INDEX sqlite_autoindex_threadmark_thread_1 (thread_id>?)"),
        (STORE.marks("t1"), "INDEX sqlite_autoindex_threadmark_thread_1 (thread_id=?)"),
        (STORE.add(_change(1, copied=Follows(5, 10, 1))), "PRIMARY KEY (thread_id=?)"),
    ):
        plan = plan_of(database, program)
        assert any(index in line for line in plan), plan
        assert is_walk([line for line in plan if line != "SCAN CONSTANT ROW"]), plan


def test_a_page_of_summaries_reads_no_thread_beyond_it(database: sqlite3.Connection) -> None:
    _fill(database)
    page = play(STORE.summaries("t5", 3), on_connection(database))
    assert [each.thread_id for each in page] == ["t50", "t500", "t501"]
    assert [(each.position, each.checkpoints, each.digest > 0) for each in page] == [(50, 2, True)] + [
        (number, 2, True) for number in (500, 501)
    ]
    assert _steps(database, STORE.summaries("", 1000)) > 100 * _steps(database, STORE.summaries("t5", 3))


def test_positions_grow_although_a_clock_is_set_back(database: sqlite3.Connection) -> None:
    played = on_connection(database)
    play(STORE.add(_change(1)), played)
    future = now() + 1_000_000_000
    database.execute("UPDATE threadmark_thread SET position = ?", (future,))
    made = play(STORE.add(_change(2, entry=b"entry")), played)
    assert (made.position, made.previous) == (future + 1, future)
    assert play(STORE.record("t", b"entry", 0), played) == future + 2


def test_a_deleted_thread_is_forgotten_once_its_entries_are_settled(database: sqlite3.Connection) -> None:
    played = on_connection(database)
    later = now() + 2 * TOMBSTONE_MICROSECONDS
    for name in ("waiting", "settled"):
        play(STORE.add(_change(1, thread_id=name, entry=b"entry")), played)
        play(STORE.set_copied(name, Copied(1, 1)), played)
        play(STORE.drop(name, now()), played)
    play(STORE.settle("settled", later), played)
    play(STORE.drop("waiting", later), played)
    assert play(STORE.positions(["waiting", "settled"]), played).keys() == {"waiting"}
    assert play(STORE.copied(["waiting", "settled"]), played) == {"waiting": Copied(1, 1)}
    assert [entry.thread_id for entry in play(STORE.outbox(None, 9), played)] == ["waiting"]
    play(STORE.settle("waiting", later), played)
    play(STORE.add(_change(1, thread_id="another")), played)
    play(STORE.drop("another", later + 2 * TOMBSTONE_MICROSECONDS), played)
    assert play(STORE.positions(["waiting"]), played) == {}


def _fill(database: sqlite3.Connection) -> None:
    """1000 threads of two checkpoints each, with entries of every tenth one."""
    numbers = "WITH RECURSIVE x (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x WHERE n < 1000)"
    for statement in (
        f"""{numbers}
        INSERT INTO threadmark_thread
            (thread, thread_id, epoch, live, created_at, position, copied_position, copied_epoch)
        SELECT n, 't' || n, n, 1, n, n, iif(n % 10, NULL, n), iif(n % 10, NULL, n) FROM x""",
        f"""{numbers}
        INSERT INTO threadmark_outbox (thread_id, position, body) SELECT 't' || n, n, x'00' FROM x WHERE n % 10 = 0""",
        f"""{numbers}
        INSERT INTO threadmark_checkpoint (thread, ns, rank, created_at, metadata, header, checksum)
        SELECT n, ns.column1, '1', n, '', x'00', x'010203040506070809'
        FROM x CROSS JOIN (VALUES (''), ('child:1')) AS ns""",
    ):
        database.execute(statement)


def _steps(database: sqlite3.Connection, program: Program[Any]) -> int:
    """Return how many tens of steps SQLite takes in its own programs for the statements."""
    count = 0

    def note() -> int:
        nonlocal count
        count += 1
        return 0

    database.set_progress_handler(note, 10)
    play(program, on_connection(database))
    database.set_progress_handler(None, 10)
    return count
