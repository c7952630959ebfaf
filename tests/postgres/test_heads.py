"""A put updates its head in place, and listings by the last update are exact all the same."""

import itertools
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from patience import wait_until
from postgres.steps import play, step, thread
from postgres.test_leases import commit
from threadmark.store.threads import ThreadOutline, ThreadPlace, ThreadScope
from threadmark_postgres import PostgresSaver
from threadmark_postgres.store import PostgresStore

MINUTE = 60_000_000
NOW = 1_764_000_000_000_000 // MINUTE * MINUTE

UPDATED = [NOW + minute * MINUTE + offset for minute in (-1, 0, 1, 2) for offset in (-2, -1, 0, 0, 1, MINUTE // 2)]
"""When the threads were last updated: at the borders of minutes, some at the same moment."""


def _counts(tables: psycopg.Connection) -> tuple[int, int]:
    """How often heads were updated, and how often in place."""
    ((updated, in_place),) = tables.execute(
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'threadmark_head'"
    ).fetchall()
    return updated, in_place


def test_a_put_updates_its_head_in_place(url: str, tables: psycopg.Connection) -> None:
    with PostgresSaver(url) as saver:
        play(saver, "one", 40, 1)
    wait_until(lambda: _counts(tables)[0] >= 40, "the session told nothing at its end")
    updated, in_place = _counts(tables)
    assert updated == 40
    assert in_place >= 38  # the index gets another minute once or twice


@pytest.fixture
def listed(url: str, tables: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """A database with a thread for each moment."""
    with PostgresSaver(url) as saver:
        for number in range(len(UPDATED)):
            saver.put(thread(f"{number:02}"), *step(number, 0))
    for number, moment in enumerate(UPDATED):
        tables.execute(
            "UPDATE threadmark_head SET updated_at = %s, minute = %s / 60000000 WHERE thread_id = %s",
            (moment, moment, f"{number:02}"),
        )
    with psycopg.connect(url) as session:
        yield session


def _expected(scope: ThreadScope) -> list[tuple[int, str]]:
    threads = [(moment, f"{number:02}") for number, moment in enumerate(UPDATED)]
    chosen = [
        (moment, name)
        for moment, name in threads
        if (scope.since is None or moment >= scope.since) and (scope.until is None or moment < scope.until)
    ]
    return sorted(chosen, reverse=scope.descending)


def _listed(session: psycopg.Connection, scope: ThreadScope, limit: int) -> list[tuple[int, str]]:
    found: list[ThreadOutline] = []
    place = None
    while True:
        page: list[Any] = commit(session, PostgresStore(None).thread_page(scope, place, 0, limit))
        found += page
        if len(page) < limit:
            return [(each.updated_at, each.row.thread_id) for each in found]
        place = ThreadPlace(page[-1].updated_at, page[-1].row.thread_id)


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("limit", [1, 5, 100])
def test_pages_by_the_last_update_are_exact_across_minutes(
    listed: psycopg.Connection, limit: int, *, descending: bool
) -> None:
    scope = ThreadScope(descending=descending)
    assert _listed(listed, scope, limit) == _expected(scope)


def test_since_and_until_are_exact_across_minutes(listed: psycopg.Connection) -> None:
    moments = [None, *sorted({*UPDATED})]
    for since, until in itertools.product(moments, moments):
        scope = ThreadScope(since=since, until=until)
        assert _listed(listed, scope, 100) == _expected(scope)
        assert commit(listed, PostgresStore(None).count_threads(scope)) == len(_expected(scope))


def test_a_thread_in_another_minute_is_named_and_placed_by_its_next_put(url: str, tables: psycopg.Connection) -> None:
    with PostgresSaver(url) as saver:
        config = saver.put(thread("one"), *step(0))
        assert list(_damage(url)) == []
        tables.execute(
            "UPDATE threadmark_head SET updated_at = greatest(updated_at, %s) WHERE thread_id = 'one' AND ns = ''",
            (time.time_ns() // 1000 + 2 * MINUTE,),
        )
        assert list(_damage(url)) == [("table threadmark_head", "1 threads are listed at a wrong time")]
        tables.execute("UPDATE threadmark_head SET updated_at = updated_at - %s", (4 * MINUTE,))
        saver.put(config, *step(1))
    assert list(_damage(url)) == []


def _damage(url: str) -> Any:
    with psycopg.connect(url) as session:
        return commit(session, PostgresStore(None).damage())
