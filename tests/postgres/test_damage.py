"""Damaged rows: a read returns the put value or raises an error with the location, and never returns anything else."""

from collections.abc import Iterator
from functools import partial
from itertools import count

import psycopg
import pytest

from damage import Damage, Field, check, check_counts, check_listing, check_threads, damages
from going_on import over_all_threads
from length import times
from postgres.cluster import PostgresServer
from postgres.damaged import KEYS, Database
from threadmark import CorruptDataError
from threadmark.program import Transaction
from threadmark.store.threads import ThreadScope
from threadmark_postgres import PostgresSaver

ROUNDS = times(10, at_length=600)

_NO_DAMAGE = Damage("none", Field("", "", (), "", 0), 0)


_numbers = count()
"""A process may come to this module twice, with tests of another one in between."""


@pytest.fixture(scope="module")
def database(cluster: PostgresServer) -> Iterator[Database]:
    url = cluster.database(f"damaged_{next(_numbers)}")
    with psycopg.connect(url, autocommit=True) as connection, PostgresSaver(url, cache_bytes=0) as saver:
        yield Database(connection, saver)


@pytest.fixture(autouse=True)
def mended(database: Database) -> Iterator[None]:
    """Whatever a test leaves behind, the next one finds the database whole."""
    yield
    for table in KEYS:
        database.mend(table)


@pytest.mark.parametrize("table", KEYS)
def test_damaged_rows_give_the_right_value_or_an_error(database: Database, table: str) -> None:
    saver, expected, refused = database.saver, database.expected, 0
    sums = saver.stats()
    for damage in damages(list(database.fields(table)), ROUNDS, seed=5):
        if database.inflict(damage):
            refused += check(saver, expected, damage)
            check_listing(saver, expected, damage)
            check_threads(saver, damage)
            check_counts(saver, sums)
            database.mend(table)
    assert check(saver, expected, _NO_DAMAGE) == 0
    assert refused > 0


@pytest.mark.parametrize("table", KEYS)
def test_what_goes_over_all_threads_goes_on_beside_a_damaged_one(database: Database, table: str) -> None:
    fields = [field for field in database.fields(table) if field.thread_id == "two" and field.column != "thread_id"]
    for damage in damages(fields, ROUNDS, seed=6):
        if database.inflict(damage):
            for name, operation in over_all_threads(database.saver):
                result, problems = operation()
                assert all("'one'" not in problem.location for problem in problems), (name, damage)
                assert name != "threads" or "one" in dict(result), damage  # type: ignore[call-overload]  # by ids
            for each in KEYS:  # a prune and a retention have changed others, too
                database.mend(each)


@pytest.mark.parametrize("table", KEYS)
def test_rows_that_are_gone_are_missed(database: Database, table: str) -> None:
    saver, expected = database.saver, database.expected
    columns = KEYS[table]
    for row in database.execute(f"SELECT {', '.join(columns)} FROM whole_{table}").fetchall()[::7]:
        where = " AND ".join(f"{column} = %s" for column in columns)
        database.execute(f"DELETE FROM threadmark_{table} WHERE {where}", row)
        damage = Damage("delete", Field(table, "", row, row[0], b""), b"")
        assert check(saver, expected, damage) > 0
        check_listing(saver, expected, damage)
        database.mend(table)


def test_what_is_at_hand_for_the_newest_checkpoint_is_not_relied_on(database: Database) -> None:
    database.execute("UPDATE threadmark_head SET needs = '{}'")
    assert check(database.saver, database.expected, _NO_DAMAGE) == 0


def test_damage_is_never_copied(database: Database) -> None:
    database.execute("UPDATE threadmark_checkpoint SET metadata = '{}'")
    with pytest.raises(CorruptDataError, match="thread 'one'"):
        database.saver.copy_thread("one", "three")
    assert database.saver.get({"configurable": {"thread_id": "three"}}) is None
    database.mend("checkpoint")


def test_a_thread_that_no_listing_finds_is_named(database: Database) -> None:
    database.saver.create_thread("empty")
    database.execute("DELETE FROM threadmark_head WHERE thread_id = 'empty'")
    (problem,) = database.saver.verify().problems
    assert problem.problem == "1 threads are in no listing: their rows are missing here"
    database.saver.delete_thread("empty")


def test_a_head_that_names_another_owner_shows_nobody_the_thread(database: Database) -> None:
    database.execute("UPDATE threadmark_head SET owner = 'bob' WHERE ns = ''")
    store, driver = database.saver._context.store, database.saver._driver
    page = partial(store.thread_page, ThreadScope("bob"), None, 0, 10)
    assert driver.run(Transaction(page, writes=False)) == []
