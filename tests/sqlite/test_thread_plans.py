"""Listings go along an index, and a put writes as few rows as it can.

SQLite has no statistics here, as in most files, and there are more threads than anybody sorts for a page.
"""

import itertools
import sqlite3
from collections.abc import Iterator
from functools import partial
from typing import Any, get_args

import pytest

from sqlite_plans import is_walk, on_connection, plan_of, sorts, sorts_groups
from threadmark.program import Program, play
from threadmark.store.contract import ANYONE, Change, CheckpointRow, Outline, WriteRow
from threadmark.store.threads import SortKey, ThreadPlace, ThreadScope
from threadmark_conformance.engine import at, checkpoint, early_id
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.adding import thread_of
from threadmark_sqlite.sql import adding, connections
from threadmark_sqlite.store import SqliteStore

THREADS = 2000
SECOND, MINUTE = 1_000_000, 60_000_000
STORE = SqliteStore()

_NUMBERS = f"WITH RECURSIVE x (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x WHERE n < {THREADS})"
_FILL = (
    f"""
    {_NUMBERS}
    INSERT INTO threadmark_thread (thread_id, epoch, live, created_at, owner, expires_at, lease_ends, minute)
    SELECT 't' || n, n, 1, n, iif(n % 2, 'ada', NULL), iif(n % 100, NULL, n), iif(n % 200, NULL, 1 << 60), n / 60
    FROM x
    """,
    f"""
    {_NUMBERS}
    INSERT INTO threadmark_head (thread_id, ns, newest, checkpoints, updated_at)
    SELECT 't' || n, '', '', 0, n * 1000000 FROM x
    """,
)


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    with SqliteSaver(connection) as saver:
        saver.setup()
    for statement in _FILL:
        connection.execute(statement)
    yield connection
    connection.close()


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("sort", get_args(SortKey))
@pytest.mark.parametrize("owner", [None, "ada"])
def test_a_page_is_a_walk_along_an_index(
    database: sqlite3.Connection, owner: str | None, sort: SortKey, *, descending: bool
) -> None:
    index = {
        ("updated", None): "threadmark_thread_minute",
        ("updated", "ada"): "threadmark_thread_owner_minute",
        ("created", None): "threadmark_thread_created",
        ("created", "ada"): "threadmark_thread_owner_created",
        ("id", None): "sqlite_autoindex_threadmark_thread_1",
        ("id", "ada"): "threadmark_thread_owner",
    }[sort, owner]
    scope = ThreadScope(owner, sort=sort, descending=descending)
    filters: list[dict[str, Any]] = [
        {},
        {"since": 500 * SECOND},
        {"until": 1500 * SECOND},
        {"since": 500 * SECOND, "until": 1500 * SECOND},
        {"status": "idle"},
        {"status": "unfinished", "since": 500 * SECOND},
    ]
    if owner is not None:  # of all threads, those that a search finds are looked up if they are few
        filters += [{"text": "t1", "fragments": ["k"]}, {"status": "interrupted"}, {"status": "error"}]
    places = (None, ThreadPlace({"id": 0, "created": 1000, "updated": 1000 * SECOND}[sort], "t1000"))
    for filtered, place in itertools.product(filters, places):
        wanted = scope._replace(**filtered)
        plan = plan_of(database, STORE.thread_page(wanted, place, 0, 20))
        assert is_walk(plan), (wanted, plan)
        assert sorts_groups(plan) == (sort == "updated"), (wanted, plan)
        assert f"INDEX {index}" in plan[0].replace("COVERING ", ""), (wanted, plan)
        assert "COVERING" not in plan[0] or sort == "updated"
        is_range = place is not None or owner is not None or (sort == "updated" and {"since", "until"} & {*filtered})
        assert plan[0].startswith("SEARCH" if is_range else "SCAN"), (wanted, plan)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("sort", get_args(SortKey))
@pytest.mark.parametrize(
    ("filtered", "index"),
    [({"status": "busy"}, "threadmark_thread_lease"), ({"expired": 1000}, "threadmark_thread_expires")],
)
def test_the_few_that_are_busy_or_expired_are_found_before_they_are_sorted(
    database: sqlite3.Connection, filtered: dict[str, Any], index: str, sort: SortKey, *, descending: bool
) -> None:
    for owner in (None, "ada"):
        scope = ThreadScope(owner, sort=sort, descending=descending)._replace(**filtered)
        plan = plan_of(database, STORE.thread_page(scope, None, 0, 20))
        assert plan[0].startswith(f"SEARCH t USING INDEX {index}"), plan
        assert all(not line.startswith("SCAN") for line in plan), plan


def test_few_that_a_search_finds_are_looked_up_and_many_are_walked_past(database: sqlite3.Connection) -> None:
    for scope in (ThreadScope(text="t1999"), ThreadScope(status="error"), ThreadScope(status="interrupted")):
        plan = plan_of(database, STORE.thread_page(scope, None, 0, 21))
        assert "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)" in plan
        assert sorts(plan)
    search, *page = plan_of(database, STORE.thread_page(ThreadScope(status="unfinished"), None, 0, 21))
    assert search == "SCAN t"
    assert "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)" in page
    search, *page = plan_of(database, STORE.thread_page(ThreadScope(text="t"), None, 0, 21))
    assert search == "SCAN t"
    assert is_walk(page)


def test_threads_are_counted_along_an_index(database: sqlite3.Connection) -> None:
    scopes = {
        ThreadScope(): ("threadmark_thread_created", THREADS),
        ThreadScope("ada"): ("threadmark_thread_owner", THREADS // 2),
        ThreadScope(since=1501 * SECOND): ("threadmark_thread_minute", 500),
        ThreadScope("ada", until=501 * SECOND): ("threadmark_thread_owner_minute", 250),
        ThreadScope(status="busy"): ("threadmark_thread_lease", 10),
        ThreadScope(expired=1000): ("threadmark_thread_expires", 10),
    }
    for scope, (index, count) in scopes.items():
        plan = plan_of(database, STORE.count_threads(scope))
        assert f"INDEX {index}" in plan[0], (scope, plan)
        assert is_walk(plan), (scope, plan)
        assert play(STORE.count_threads(scope), on_connection(database)) == count


def test_what_is_counted_of_a_thread_is_found_by_its_keys(database: sqlite3.Connection) -> None:
    plan = plan_of(database, STORE.thread_counts(["t1", "t2", "t3"]))
    assert plan
    assert all("SCAN" not in line or "CONSTANT" in line for line in plan), plan


def test_figures_of_many_threads_are_small_enough_to_add_up(database: sqlite3.Connection) -> None:
    database.execute("BEGIN")
    database.execute("UPDATE threadmark_thread SET epoch = ?, token = ?", (2**62, 2**62))
    figures = database.execute(connections.SUMMARY).fetchall()
    database.execute("UPDATE threadmark_thread SET token = token + 1 WHERE thread_id = 't1'")
    assert database.execute(connections.SUMMARY).fetchall() != figures
    database.execute("ROLLBACK")


def test_a_page_reads_no_further_than_the_minute_that_it_ends_in(database: sqlite3.Connection) -> None:
    for place in (None, ThreadPlace(1000 * SECOND, "t1000")):
        steps = [_steps(database, STORE.thread_page(ThreadScope(owner), place, 0, 20)) for owner in (None, "ada")]
        assert 0 < max(steps) < _steps(database, STORE.thread_page(ThreadScope(sort="created"), None, 0, THREADS)) / 8


def _steps(database: sqlite3.Connection, program: Program[Any]) -> int:
    """Return how many tens of steps SQLite takes in its own programs for the statements."""
    count = 0

    def note() -> int:
        nonlocal count
        count += 1
        return 0

    database.set_progress_handler(note, 10)
    play(program, on_connection(database))
    database.set_progress_handler(None, 0)
    return count


def _change(number: int, writes: list[WriteRow]) -> Change:
    outline = Outline("t1", "", early_id(number), early_id(number), None, number, "{}")
    rows = () if writes else (CheckpointRow(outline, b"header", b"", None),)
    return Change("t1", None, number, {}, rows, writes, None, token=ANYONE)


def test_a_put_writes_its_row_and_the_head_and_nothing_else(database: sqlite3.Connection) -> None:
    database.execute("BEGIN")
    played = partial(play, answer=on_connection(database))
    played(STORE.add(_change(1, [])))
    before = database.total_changes
    played(STORE.add(_change(2, [])))
    assert database.total_changes - before == 2
    played(STORE.add(_change(3, [WriteRow("", early_id(2), "task", 0, "", "channel", b"", b"")])))
    assert database.total_changes - before == 3
    played(STORE.add(_change(MINUTE - 1, [])))
    assert database.total_changes - before == 5
    played(STORE.add(_change(MINUTE, [])))  # the first of another minute
    assert database.total_changes - before == 8
    database.execute("ROLLBACK")


def test_no_statement_of_a_run_is_prepared_twice() -> None:
    """With an index for `ns = ''`, SQLite would ask for the value of `ns = ?`, and prepare the statement each time."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    prepared: list[object] = []

    def note(*what: object) -> int:
        """SQLite asks for permission whenever it prepares a statement."""
        prepared.append(what)
        return sqlite3.SQLITE_OK

    def step(number: int) -> None:
        config = saver.put(at(f"thread {number}", ""), checkpoint({"a": number}), {}, {"a": number})
        saver.put(config, checkpoint({"a": number}), {}, {"a": number})
        saver.put_writes(config, [("a", number), ("__interrupt__", number)], "task")
        saver.put_writes(config, [("__interrupt__", -number)], "task")
        saver.get_tuple(at(f"thread {number}", ""))
        saver.get_tuple(config)

    with SqliteSaver(connection, cache_bytes=0) as saver:
        connection.set_authorizer(note)
        step(1)
        assert prepared
        prepared.clear()
        step(2)
        assert prepared == []
    connection.close()


def test_the_clock_is_asked_only_where_there_is_a_lease(database: sqlite3.Connection) -> None:
    """The clock is behind a jump for rows whose lease has no end, in SQLite's own program for the statement."""
    steps = database.execute(f"EXPLAIN {adding.THREAD}", ("t1",)).fetchall()
    clock = next(step[0] for step in steps if step[1] == "Function" and "julianday" in str(step[5]))
    jumps = [step for step in steps if step[1] in ("IsNull", "IfNot") and step[0] < clock < step[3]]
    found = next(step[0] for step in steps if step[1].startswith("Seek"))
    assert any(jump[0] > found for jump in jumps), steps
    assert play(thread_of("t1"), on_connection(database)) is not None


def test_a_thread_without_root_checkpoints_has_a_root_head() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    with SqliteSaver(connection) as saver:
        config = saver.put(at("t", ""), checkpoint({"a": 1}), {}, {"a": 1})
        saver.put(at("t", "child:1"), checkpoint({"a": 1}), {}, {"a": 1})
        saver.delete_for_runs([])
        ((created_at,),) = connection.execute("SELECT created_at FROM threadmark_thread")
        doomed = ("", config["configurable"]["checkpoint_id"])
        play(STORE.remove("t", [doomed], []), on_connection(connection))
        heads = connection.execute("SELECT ns, newest, checkpoints, updated_at FROM threadmark_head ORDER BY ns")
        assert next(heads) == ("", "", 0, created_at)
        assert next(heads)[0] == "child:1"
        assert saver.get(at("t", "")) is None
        assert saver.verify().problems == []
        saver.put(at("t", ""), checkpoint({"a": 2}), {}, {"a": 1})
        assert saver.verify().problems == []
    connection.close()


def test_what_is_read_of_several_threads_is_looked_up_in_indexes(database: sqlite3.Connection) -> None:
    names = [f"t{number}" for number in range(40, 60)]
    for program in (
        STORE.newest(names, ""),
        STORE.segments_of({name: [b"key number 1", b"key number 2"] for name in names}),
        STORE.thread_outlines(names),
    ):
        steps = plan_of(database, program)
        walks = [step for step in steps if step.startswith("SCAN") and "asked" not in step and "ROWS" not in step]
        assert walks == [], steps
