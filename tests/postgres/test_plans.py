"""The plans of statements look into one part of a table that is in parts, and use an index if there is one."""

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from postgres.steps import play, step, thread
from threadmark_postgres import PostgresSaver
from threadmark_postgres.arrays import register_dumpers
from threadmark_postgres.driver import exchange
from threadmark_postgres.steps import Query

CHECKPOINTS = 100
THREADS = ("one", "two", "three", "four", "five", "six")
"""In four parts, several of which have rows at the same places."""

_PART = re.compile(r"threadmark_[a-z]+_(\d+)")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Query]]:
    """Every statement that a saver sends."""
    queries: list[Query] = []
    send = exchange._send

    def noted(pgconn: Any, statements: exchange.Statements, query: Query) -> None:
        queries.append(query)
        send(pgconn, statements, query)

    monkeypatch.setattr(exchange, "_send", noted)
    yield queries
    monkeypatch.undo()


@pytest.mark.parametrize("combine", [True, False])
def test_a_put_and_a_get_look_into_one_part_of_each_table(url: str, sent: list[Query], *, combine: bool) -> None:
    with PostgresSaver(url, combine=combine) as saver:
        saver.setup(partitions=4)
        first = play(saver, "thread", 3)
        sent.clear()
        config = saver.put(first, *step(3))
        saver.put_writes(config, [("messages", "written " * 50)], "task")
    with PostgresSaver(url) as cold:
        assert cold.get_tuple(thread("thread"))
        assert cold.get_tuple(first)
        assert list(cold.list(thread("thread"), limit=2))
    of_threads = [query for query in sent if "threadmark_" in query.sql and "threadmark_migration" not in query.sql]
    parts = [_parts(url, query) for query in of_threads]
    assert [len(each) for each in parts] == [1] * len(of_threads)


def test_the_checkpoints_of_a_run_are_found_by_an_index(url: str, sent: list[Query]) -> None:
    with PostgresSaver(url) as saver:
        play(saver, "thread", 3)
        sent.clear()
        assert len(list(saver.list(None, filter={"run_id": "run-1"}))) == 1
        saver.delete_for_runs(["run-2"])
    searches = [query for query in sent if "c.run = " in query.sql]
    assert len(searches) == 2
    with psycopg.connect(url) as connection:
        connection.execute("SET enable_seqscan = off")  # which is cheaper for three rows
        for query in searches:
            assert "threadmark_checkpoint_run" in " ".join(_plan(connection, query))


def test_what_a_prune_removes_is_looked_up_once(url: str, sent: list[Query]) -> None:
    with PostgresSaver(url) as saver:
        play(saver, "thread", CHECKPOINTS, size=1)
        saver.copy_thread("thread", "copy")
        sent.clear()
        saver.prune(["copy"], keep_last=1)
    (removal,) = [query for query in sent if "threadmark_remove_1" in query.sql]
    with psycopg.connect(url) as connection:
        register_dumpers(connection)
        psycopg.RawCursor(connection).execute(removal.sql, ("thread", *removal.params[1:]))
        read: dict[str, int] = dict(
            connection.execute(
                "SELECT relname, seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables"
                " WHERE relname IN ('threadmark_checkpoint', 'threadmark_write')"
            )
        )
        connection.rollback()
    assert all(CHECKPOINTS - 1 <= rows <= 4 * CHECKPOINTS for rows in read.values())
    assert len(read) == 2


def test_a_prune_removes_nothing_at_the_same_place_of_another_part(url: str) -> None:
    with PostgresSaver(url) as saver:
        saver.setup(partitions=4)
        for name in THREADS:
            play(saver, name, 3)
        saver.prune(["one"], keep_last=1)
        assert {name: len(list(saver.list(thread(name)))) for name in THREADS} == dict.fromkeys(THREADS, 3) | {"one": 1}
        assert all(found.pending_writes for name in THREADS for found in saver.list(thread(name)))
        assert saver.verify().problems == []


def _parts(url: str, query: Query) -> set[str]:
    """The parts of tables that a statement of a thread looks into, or adds to."""
    with psycopg.connect(url) as connection:
        register_dumpers(connection)
        psycopg.RawCursor(connection).execute(query.sql, query.params or None)
        touched = connection.execute(
            "SELECT relname FROM pg_stat_xact_user_tables"
            " WHERE coalesce(seq_scan, 0) + coalesce(idx_scan, 0) + n_tup_ins > 0"
        ).fetchall()
        connection.rollback()
    return {found[1] for (name,) in touched if (found := _PART.fullmatch(name))}


def _plan(connection: psycopg.Connection[Any], query: Query, options: str = "") -> list[str]:
    cursor = psycopg.RawCursor(connection)
    cursor.execute(f"EXPLAIN {options} {query.sql}", query.params or None, binary=True)
    return [str(line) for (line,) in cursor]
