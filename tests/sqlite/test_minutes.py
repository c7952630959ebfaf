"""Listings by the last update go along the minutes of threads' rows, and are exact."""

import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import product
from typing import Any

import pytest

from sqlite_plans import on_connection
from threadmark import Conversations
from threadmark.program import play
from threadmark.store.contract import Change, CheckpointRow, Outline
from threadmark.store.threads import ThreadPlace, ThreadRow, ThreadScope, thread_row
from threadmark_conformance.engine import at, checkpoint, early_id
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.sql import expressions, reports
from threadmark_sqlite.store import SqliteStore

STORE = SqliteStore()
MINUTE = expressions.MINUTE
THREADS = 120
Updates = dict[str, tuple[int, str | None]]
"""When each thread was last updated, and whose it is."""


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        yield opened


def _updates() -> Updates:
    """Several threads in each minute, on its borders, and at the same time."""
    chance = random.Random(5)
    moments = [minute * MINUTE + within for minute in range(28, 33) for within in (0, 1, 7, MINUTE // 2, MINUTE - 1)]
    return {f"t{number}": (chance.choice(moments), chance.choice(("ada", None))) for number in range(THREADS)}


@pytest.fixture
def filled(connection: sqlite3.Connection) -> sqlite3.Connection:
    """A database with these threads, one that was deleted, and a head of another namespace for each."""
    with SqliteSaver(connection) as saver:
        saver.setup()
    for thread_id, (updated, owner) in _updates().items():
        connection.execute(
            "INSERT INTO threadmark_thread (thread_id, epoch, live, created_at, owner, checksum, minute)"
            " VALUES (?, 1, 1, 1, ?, ?, ?)",
            (thread_id, owner, thread_row(ThreadRow(thread_id, 1, owner)).check or None, updated // MINUTE),
        )
        connection.execute(
            "INSERT INTO threadmark_head (thread_id, ns, newest, checkpoints, updated_at)"
            " VALUES (?, '', '', 0, ?), (?, 'child:1', '1', 0, 1)",
            (thread_id, updated, thread_id),
        )
    connection.execute("INSERT INTO threadmark_thread (thread_id, epoch, live, created_at) VALUES ('deleted', 1, 0, 1)")
    return connection


def _expected(scope: ThreadScope) -> list[tuple[int, str]]:
    found = sorted(
        (updated, thread_id)
        for thread_id, (updated, owner) in _updates().items()
        if scope.owner in (None, owner)
        and (scope.since is None or updated >= scope.since)
        and (scope.until is None or updated < scope.until)
    )
    return found[::-1] if scope.descending else found


def _pages(database: sqlite3.Connection, scope: ThreadScope, size: int) -> Iterator[tuple[int, str]]:
    after: ThreadPlace | None = None
    while page := play(STORE.thread_page(scope, after, 0, size), on_connection(database)):
        yield from ((outline.updated_at, outline.row.thread_id) for outline in page)
        after = ThreadPlace(page[-1].updated_at, page[-1].row.thread_id)


BORDERS: Sequence[int | None] = (None, 0, 29 * MINUTE, 29 * MINUTE + 1, 30 * MINUTE - 1, 31 * MINUTE + 7)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("owner", [None, "ada", "nobody"])
def test_pages_are_exact_within_minutes_and_across_their_borders(
    filled: sqlite3.Connection, owner: str | None, *, descending: bool
) -> None:
    for since, until in product(BORDERS, BORDERS):
        scope = ThreadScope(owner, since=since, until=until, descending=descending)
        expected = _expected(scope)
        for size in (1, 7, THREADS):
            assert list(_pages(filled, scope, size)) == expected, scope
        assert play(STORE.count_threads(scope), on_connection(filled)) == len(expected)
        (*skipped,) = play(STORE.thread_page(scope, None, 5, 9), on_connection(filled))
        assert [outline.row.thread_id for outline in skipped] == [thread_id for _, thread_id in expected[5:14]]


def _is_right(database: sqlite3.Connection) -> bool:
    return database.execute(reports.UNLISTED).fetchall() == [(0, 0)]


def _change(number: int, minutes: float, *, ns: str = "", **fields: Any) -> Change:
    """A checkpoint that was made so many minutes after the thread was begun."""
    moment = 100 * MINUTE + round(minutes * MINUTE)
    outline = Outline("t", ns, early_id(number), early_id(number), None, moment, "{}")
    rows = [CheckpointRow(outline, b"header", b"", None)]
    return Change("t", None, 100 * MINUTE, {}, rows, [], None)._replace(**fields)


def test_a_thread_follows_its_root_head(connection: sqlite3.Connection) -> None:
    with SqliteSaver(connection) as saver:
        saver.setup()
    changes = [
        (_change(1, 0.5), 100),
        (_change(2, 2, ns="child:1"), 100),
        (_change(3, 3), 103),
        (_change(4, 1), 103),  # a clock was set back
        (_change(5, 1, touches=True, now=105 * MINUTE), 105),
        (_change(6, 7, touches=True), 107),
    ]
    for change, minute in changes:
        play(STORE.add(change), on_connection(connection))
        assert connection.execute("SELECT minute FROM threadmark_thread").fetchall() == [(minute,)]
        assert _is_right(connection)
    keys = [row.outline.key for change, _ in changes for row in change.checkpoints]
    play(STORE.remove("t", keys, []), on_connection(connection))
    assert _is_right(connection)
    play(STORE.add(_change(9, 4)), on_connection(connection))  # earlier than those that are gone
    assert connection.execute("SELECT minute FROM threadmark_thread").fetchall() == [(104,)]
    play(STORE.replace(_change(9, 2)), on_connection(connection))
    assert _is_right(connection)


def test_whatever_is_done_to_a_thread_leaves_it_in_its_minute(connection: sqlite3.Connection) -> None:
    with SqliteSaver(connection) as saver:
        saver.create_thread("run", owner="ada")
        config = saver.put(at("run"), checkpoint({"a": 1}), {}, {"a": 1})
        saver.put_writes(config, [("a", 1)], "task")
        saver.update_thread("run", owner="eve")
        saver.put(at("child only", "child:1"), checkpoint({"a": 1}), {}, {"a": 1})
        Conversations(saver).put_messages({"thread_id": "talk"}, [{"role": "user", "content": "hello"}])
        assert saver.copy_thread("run", "copied")
        assert _is_right(connection)
        saver.delete_thread("run")
        assert {thread.id for thread in saver.list_threads().threads} == {"copied", "talk", "child only"}
        saver.put(at("run"), checkpoint({"a": 1}), {}, {"a": 1})
        assert _is_right(connection)
        assert saver.verify().problems == []


def test_verify_notices_a_thread_in_another_minute(filled: sqlite3.Connection) -> None:
    with SqliteSaver(filled) as saver:
        assert saver.verify().problems == []
        filled.execute("UPDATE threadmark_thread SET minute = minute + 1 WHERE thread_id IN ('t1', 't2')")
        (problem,) = saver.verify().problems
        assert problem.problem == "2 threads are listed at a wrong time"
