"""Statements go to the server without cursors: prepared when they are used often, and read back as cursors would."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from enum import Enum
from typing import Any

import psycopg
import pytest
from psycopg.generators import execute
from psycopg.pq import TransactionStatus

from postgres.cluster import PostgresServer
from postgres.proxy import Proxy
from postgres.steps import count, play, step, thread
from threadmark_postgres import PostgresSaver
from threadmark_postgres.arrays import Blobs, Numbers, Texts
from threadmark_postgres.driver.exchange import exchange, is_plain, received, send_prepared
from threadmark_postgres.steps import Query, Rows

ONE = Query("SELECT $1::bigint", (1,))


@pytest.fixture
def connection(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def asked(connection: psycopg.Connection[Any], *batch: Query, prepare: bool = True) -> list[Rows]:
    return connection.wait(exchange(connection, batch, prepare=prepare))


def prepared(connection: psycopg.Connection[Any]) -> list[str]:
    """The statements of ours that the server has a plan for."""
    names = "SELECT statement FROM pg_prepared_statements WHERE name LIKE 'threadmark_%' ORDER BY prepare_time"
    return [statement for (statement,) in connection.execute(names)]


class Name(str, Enum):  # noqa: UP042 - as users write it who have older Pythons
    """A text of its user's own class."""

    ADA = "ada"


def test_parameters_of_every_kind_come_back(connection: psycopg.Connection) -> None:
    kinds: dict[str, list[Any]] = {
        "text": ["Größe", Name.ADA, "", None],
        "bytea": [b"\x00\xff", bytearray(b"two"), memoryview(b"three"), b"", None],
        "bigint": [-(2**63), 2**63 - 1, 0, None],
        "boolean": [True, False, None],
        "text[]": [Texts(["one", None, ""]), Texts()],
        "bytea[]": [Blobs([b"\x00", None]), Blobs()],
        "bigint[]": [Numbers([-1, None, 2**40]), Numbers()],
    }
    for declared, values in kinds.items():
        for value in values:
            ((row,),) = asked(connection, Query(f"SELECT $1::{declared}", (value,)))
            assert row == (value,)


def test_a_statement_of_a_given_connection_is_prepared_at_its_sixth_use(connection: psycopg.Connection) -> None:
    """As psycopg itself would, unless the connection has another `prepare_threshold`."""
    for use in range(1, 8):
        assert asked(connection, ONE) == [[(1,)]]
        assert prepared(connection) == ([ONE.sql] if use > 5 else [])


def test_a_statement_of_a_connection_of_ours_is_prepared_at_its_second_use(url: str) -> None:
    with PostgresSaver(url) as saver, saver._postgres._source().lend() as connection:
        for use in range(1, 4):
            assert asked(connection, ONE) == [[(1,)]]
            assert prepared(connection) == ([ONE.sql] if use > 1 else [])


def test_preparing_takes_no_round_trip_of_its_own(cluster: PostgresServer, url: str) -> None:
    with Proxy(cluster.port) as proxy:
        through = url.replace(f":{cluster.port}/", f":{proxy.port}/") + "?sslmode=disable"
        connection = psycopg.connect(through, autocommit=True, prepare_threshold=1)
        for batch in ([ONE], [Query("BEGIN"), Query("SELECT 2")]):
            for _ in range(3):
                before = proxy.round_trips
                asked(connection, *batch)
                assert proxy.round_trips - before == 1
                asked(connection, Query("ROLLBACK"), prepare=False)
        connection.close()


def test_a_statement_that_fails_again_and_again_is_prepared_once(connection: psycopg.Connection) -> None:
    connection.prepare_threshold = 0
    fails = Query("SELECT 1 / $1::bigint", (0,))
    for batch in ([fails], [ONE, fails], [fails, ONE]):
        for _ in range(3):
            with pytest.raises(psycopg.errors.DivisionByZero):
                asked(connection, *batch)
            assert prepared(connection).count(fails.sql) == 1
    assert asked(connection, ONE) == [[(1,)]]
    assert prepared(connection).count(ONE.sql) == 1


def test_a_statement_that_cannot_be_prepared_leaves_no_name(connection: psycopg.Connection) -> None:
    connection.prepare_threshold = 0
    asks = Query("SELECT * FROM not_there")
    for _ in range(3):
        with pytest.raises(psycopg.errors.UndefinedTable):
            asked(connection, asks)
    connection.execute("CREATE TABLE not_there (one int)")
    assert asked(connection, asks) == [[]]


@pytest.mark.parametrize(("threshold", "prepare"), [(None, True), (0, False)])
def test_nothing_is_prepared_where_that_is_not_wanted(
    connection: psycopg.Connection, threshold: int | None, *, prepare: bool
) -> None:
    connection.prepare_threshold = threshold
    for _ in range(8):
        asked(connection, ONE, prepare=prepare)
    assert prepared(connection) == []


def test_a_connection_has_a_hundred_statements_prepared_at_most(connection: psycopg.Connection) -> None:
    connection.prepare_threshold = 0
    for number in range(110):
        assert asked(connection, Query(f"SELECT {number}")) == [[(number,)]]
    assert len(prepared(connection)) == 100


def test_statements_travel_together(connection: psycopg.Connection) -> None:
    connection.prepare_threshold = 0
    two = Query("SELECT $1::text, $2::bytea", ("two", b"2"))
    for _ in range(2):
        assert asked(connection, Query("BEGIN"), ONE, two) == [[], [(1,)], [("two", b"2")]]
        assert asked(connection, Query("COMMIT")) == [[]]
    assert {ONE.sql, two.sql} <= {*prepared(connection)}
    assert is_plain(connection)


@pytest.mark.parametrize("batch", [[Query("SELECT 1 / 0")], [ONE, Query("SELECT 1 / 0"), ONE]])
@pytest.mark.parametrize("threshold", [0, 5])
def test_an_error_leaves_the_connection_in_order(
    connection: psycopg.Connection, batch: list[Query], threshold: int
) -> None:
    connection.prepare_threshold = threshold
    for _ in range(8):
        with pytest.raises(psycopg.errors.DivisionByZero):
            asked(connection, *batch)
        assert asked(connection, ONE) == [[(1,)]]


@pytest.mark.parametrize("batch", [[ONE], [Query("BEGIN"), ONE]])
def test_a_statement_that_the_server_forgot_is_prepared_anew(
    connection: psycopg.Connection, batch: list[Query]
) -> None:
    connection.prepare_threshold = 0
    asked(connection, ONE)
    connection.execute("DEALLOCATE ALL")
    assert asked(connection, *batch)[-1] == [(1,)]
    assert ONE.sql in prepared(connection)
    assert (connection.info.transaction_status == TransactionStatus.INTRANS) == (len(batch) > 1)


def test_in_a_transaction_a_statement_that_the_server_forgot_is_an_error(connection: psycopg.Connection) -> None:
    connection.prepare_threshold = 0
    asked(connection, ONE)
    connection.execute("DEALLOCATE ALL")
    asked(connection, Query("BEGIN"), prepare=False)
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        asked(connection, ONE)
    asked(connection, Query("ROLLBACK"))
    assert asked(connection, ONE) == [[(1,)]]


def test_a_statement_that_answers_and_is_not_committed_fails(connection: psycopg.Connection) -> None:
    connection.prepare_threshold = 0
    connection.execute("CREATE TABLE late (one bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    add = Query("INSERT INTO late VALUES ($1::bigint) RETURNING one", (1,))
    asked(connection, add)
    for _ in range(2):
        statements = send_prepared(connection, add)
        assert statements is not None
        results = connection.wait(execute(connection.pgconn))
        assert len(results) == 2  # its rows, and the error of the commit
        with pytest.raises(psycopg.errors.UniqueViolation):
            received(connection, statements, results)
    assert asked(connection, Query("SELECT count(*) FROM late")) == [[(1,)]]


def test_a_statement_whose_columns_changed_fails_once(connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE changing (one int)")
    every = Query("SELECT * FROM changing")
    for _ in range(6):
        asked(connection, every)
    connection.execute("ALTER TABLE changing ADD two int")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        asked(connection, every)
    assert asked(connection, every) == [[]]


def test_what_is_known_of_a_connection_does_not_keep_it(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        asked(connection, ONE)
    left = weakref.ref(connection)
    del connection
    gc.collect()
    assert left() is None


def test_a_connection_in_another_encoding_is_used_by_cursors(url: str) -> None:
    with psycopg.connect(url, client_encoding="latin1") as connection, PostgresSaver(connection) as saver:
        assert not is_plain(connection)
        saver.put(play(saver, "größer", 7), *step(7))
        assert count(saver, "größer") == 7
    with PostgresSaver(url) as other:
        assert count(other, "größer") == 7


def test_a_connection_in_a_pipeline_of_its_users_is_used_by_cursors(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection, PostgresSaver(connection) as saver:
        config = play(saver, "one", 2)
        with connection.pipeline():
            assert not is_plain(connection)
            config = saver.put(config, *step(2))
            assert count(saver, "one") == 2
        assert is_plain(connection)
        saver.put(config, *step(3))
        assert count(saver, "one") == 3


def test_an_asyncio_connection_in_a_pipeline_of_its_users_is_used_by_cursors(url: str) -> None:
    async def body() -> None:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
        async with connection, PostgresSaver(connection) as saver, connection.pipeline():
            await saver.aput(thread("one"), *step(0))
            found = await saver.aget(thread("one"))
            assert found
            assert found["channel_values"]["count"] == 0

    asyncio.run(body())
