"""Listings of threads go along an index, in every order; their counts are looked up thread by thread."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, get_args

import psycopg
import pytest

from postgres.cluster import shared
from threadmark.model import ThreadStatus
from threadmark.program import Program
from threadmark.store.threads import SortKey, ThreadPlace, ThreadScope
from threadmark_postgres import PostgresSaver
from threadmark_postgres.steps import Query
from threadmark_postgres.store import PostgresStore

_THREADS = 5000
_SECONDS = 20
"""How long after each thread the next one was brought up to date."""
_FILL = f"""
    INSERT INTO threadmark_thread (thread_id, epoch, live, created_at, token, owner, title, folded_title)
    SELECT 'thread ' || n, n, true, n, 0, 'owner ' || n % 50, 'Title ' || n, 'title ' || n
    FROM generate_series(1, {_THREADS}) AS n;
    INSERT INTO threadmark_head (thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)
    SELECT
        'thread ' || n, ns, '1', '{{}}', 1, {_SECONDS} * 1000000::bigint * n, {_SECONDS} * n / 60,
        CASE ns WHEN '' THEN 'owner ' || n % 50 END
    FROM generate_series(1, {_THREADS}) AS n, (VALUES (''), ('child')) AS names (ns);
    INSERT INTO threadmark_checkpoint (thread_id, ns, rank, created_at, metadata, header, checksum)
    SELECT 'thread ' || n, '', '1', 0, '{{}}', '', '' FROM generate_series(1, {_THREADS}) AS n;
    INSERT INTO threadmark_write
        (thread_id, ns, checkpoint_id, task_id, idx, task_path, channel, value, checksum)
    SELECT 'thread ' || n, '', '1', '', CASE WHEN n % 1000 = 0 THEN -3 ELSE 0 END, '', '', '', ''
    FROM generate_series(1, {_THREADS}) AS n;
    INSERT INTO threadmark_outbox SELECT 'thread ' || n, n, '' FROM generate_series(1, {_THREADS}) AS n;
    INSERT INTO threadmark_position SELECT 'thread ' || n, n, 0 FROM generate_series(1, {_THREADS}) AS n;
    INSERT INTO threadmark_copied SELECT 'thread ' || n, n, 0 FROM generate_series(1, {_THREADS}) AS n;
    UPDATE threadmark_thread SET metadata = CASE WHEN epoch % 2500 = 0 THEN '{{"rare":true}}' ELSE '{{}}' END;
    UPDATE threadmark_thread SET expires_at = epoch, lease_ends = epoch WHERE epoch % 1000 = 0;
    ANALYZE threadmark_thread;
    ANALYZE threadmark_head;
    ANALYZE threadmark_checkpoint;
    ANALYZE threadmark_write;
    ANALYZE threadmark_outbox;
    ANALYZE threadmark_position;
    ANALYZE threadmark_copied;
"""
_INDEXES = {
    "updated": "threadmark_head_minute",
    "created": "threadmark_thread_created",
    "id": "threadmark_thread_pkey",
}
_SLOW = re.compile(r"(?<!Incremental )Sort  \(|Seq Scan|Hash")
"""The nodes of a plan that read all threads. An incremental sort has those of one minute before it."""


@pytest.fixture(scope="module", params=[None, 3], ids=["whole", "partitioned"])
def connection(request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[Any]]:
    name = f"plans_{request.param or 0}"
    url = shared().database(name)
    with PostgresSaver(url) as saver:
        saver.setup(partitions=request.param)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_FILL.encode())
        yield connection
    shared().execute(f"DROP DATABASE {name} WITH (FORCE)")


def plan(connection: psycopg.Connection[Any], program: Program[Any]) -> str:
    """The plan of a program's one statement."""
    query = next(program)
    assert isinstance(query, Query)
    program.close()
    cursor = psycopg.RawCursor(connection)
    cursor.execute(f"EXPLAIN {query.sql}", query.params or None, binary=True)
    return "\n".join(line for (line,) in cursor)


@pytest.mark.parametrize("sort", get_args(SortKey))
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("after", [None, ThreadPlace(_SECONDS * 1000000 * _THREADS // 2, f"thread {_THREADS // 2}")])
def test_a_page_goes_along_an_index(
    connection: psycopg.Connection[Any], sort: SortKey, after: ThreadPlace | None, *, descending: bool
) -> None:
    scope = ThreadScope(sort=sort, descending=descending)
    found = plan(connection, PostgresStore(None).thread_page(scope, after, 0, 20))
    assert not _SLOW.findall(found), found
    if " on threadmark_thread t\n" in found:  # a part of a table has indexes with other names
        assert _INDEXES[sort] in found


@pytest.mark.parametrize("sort", get_args(SortKey))
def test_a_page_of_one_owner_goes_along_an_index_of_owners(connection: psycopg.Connection[Any], sort: SortKey) -> None:
    found = plan(connection, PostgresStore(None).thread_page(ThreadScope("owner 7", sort=sort), None, 0, 20))
    assert not _SLOW.findall(found), found
    assert "owner = " in found.partition("Index Cond")[2].splitlines()[0], found


@pytest.mark.parametrize(
    ("scope", "column"), [(ThreadScope(expired=3000), "expires_at"), (ThreadScope(status="busy"), "lease")]
)
def test_few_threads_are_found_by_an_index_of_those(
    connection: psycopg.Connection[Any], scope: ThreadScope, column: str
) -> None:
    for program in (PostgresStore(None).thread_page(scope, None, 0, 20), PostgresStore(None).count_threads(scope)):
        found = plan(connection, program)
        assert f"Index Cond: ({column}" in found, found


@pytest.mark.parametrize("status", ["error", "interrupted"])
def test_threads_with_an_open_interrupt_or_an_error_are_found_by_an_index_of_those_writes(
    connection: psycopg.Connection[Any], status: ThreadStatus
) -> None:
    found = plan(connection, PostgresStore(None).count_threads(ThreadScope(status=status)))
    assert "threadmark_write_status" in found or "threadmark_write_0_thread_id_idx" in found, found


@pytest.mark.parametrize("scope", [ThreadScope(text="title 77"), ThreadScope(fragments=['"rare":true'])])
def test_what_few_threads_have_is_searched_for_in_the_order_of_the_table(
    connection: psycopg.Connection[Any], scope: ThreadScope
) -> None:
    """An index would lead from row to row across the whole table before 20 of them are found."""
    found = plan(connection, PostgresStore(None).thread_page(scope, None, 0, 20))
    assert re.search(r"Seq Scan on threadmark_thread\w* t", found), found


def test_what_many_threads_have_is_searched_for_along_the_index(connection: psycopg.Connection[Any]) -> None:
    found = plan(connection, PostgresStore(None).thread_page(ThreadScope(text="title"), None, 0, 20))
    assert not _SLOW.findall(found), found


def test_what_is_counted_of_a_few_threads_is_looked_up(connection: psycopg.Connection[Any]) -> None:
    found = plan(connection, PostgresStore(None).thread_counts([f"thread {number}" for number in (1, 2, 3)]))
    assert "Seq Scan" not in found, found


def test_what_is_read_of_several_threads_is_looked_up_in_indexes(connection: psycopg.Connection[Any]) -> None:
    store, names = PostgresStore(None), [f"thread {number}" for number in range(40, 60)]
    wanted = {name: [b"key number 1", b"key number 2"] for name in names}
    for make in (
        lambda: store.newest(names, ""),
        lambda: store.segments_of(wanted),
        lambda: store.thread_outlines(names),
    ):
        assert "JIT" not in plan(connection, make())  # it takes longer than the whole answer
        assert _scanned(connection, make()) == []


def test_what_replication_reads_is_looked_up_or_goes_along_an_index(connection: psycopg.Connection[Any]) -> None:
    store, names = PostgresStore(None), [f"thread {number}" for number in range(40, 60)]
    for make in (
        lambda: store.outbox(None, 100),
        lambda: store.outbox("thread 7", 100),
        lambda: store.settle("thread 7", 100),
        lambda: store.positions(names),
        lambda: store.copied(names),
        lambda: store.summaries("thread 7", 1000),
        lambda: store.marks("thread 7"),
    ):
        assert "JIT" not in plan(connection, make())
        assert _scanned(connection, make()) == []


def test_a_summary_reads_the_rows_of_its_threads_once(connection: psycopg.Connection[Any]) -> None:
    read = dict.fromkeys(("thread", "checkpoint", "write", "position"), 0)
    for table, _, rows in _read(connection, PostgresStore(None).summaries("", 200)):
        if rows:
            read[table] += rows
    assert read.pop("thread") in range(400, 407)  # each twice, and the page may look ahead in each part
    assert read == {"checkpoint": 200, "write": 200, "position": 200}


def _scanned(connection: psycopg.Connection[Any], program: Program[Any]) -> list[str]:
    """The tables that a program reads from their beginning, in statements and in functions that it calls."""
    return [table for table, scans, _ in _read(connection, program) if scans]


def _read(connection: psycopg.Connection[Any], program: Program[Any]) -> list[tuple[str, int, int]]:
    """For each table or part that a program reads: its name, how often it was read whole, and how many rows were."""
    with connection.transaction(force_rollback=True):
        cursor = psycopg.RawCursor(connection)
        before = _counted(connection)
        answer: Any = None
        with suppress(StopIteration):
            while True:
                query: Any = program.send(answer)
                cursor.execute(query.sql, query.params or None, binary=True)
                answer = cursor.fetchall() if cursor.description else []
        after = _counted(connection)
    found = []
    for name, now in after.items():
        scans, rows = (late - early for late, early in zip(now, before[name], strict=True))
        if scans or rows:
            found.append((re.sub(r"threadmark_([a-z]+).*", r"\1", name), scans, rows))
    return found


def _counted(connection: psycopg.Connection[Any]) -> dict[str, tuple[int, int]]:
    """How often each table or part was read whole, and the number of rows read; the server has not reported all."""
    rows = connection.execute(
        "SELECT relname, coalesce(seq_scan, 0), coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)"
        " FROM pg_stat_xact_user_tables WHERE relname LIKE 'threadmark%'"
    )
    return {name: (scans, read) for name, scans, read in rows}
