"""The backend's logic without a database: columns, conversations, and which errors pass."""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo

from threadmark import StoreError, TransientStoreError
from threadmark.program import Program, Transaction
from threadmark.runtime.outages import Outage
from threadmark_postgres.columns import from_id_column, id_column
from threadmark_postgres.driver import Settings
from threadmark_postgres.driver.conversation import Conversation, LostCommit, conversation
from threadmark_postgres.driver.failures import Retries, check_worth_waiting, passes, to_threadmark_error
from threadmark_postgres.driver.log import log
from threadmark_postgres.schema import in_schema
from threadmark_postgres.sql import connections
from threadmark_postgres.steps import Query

_OF_PSYCOPG = ("autocommit", "prepare_threshold")
"""Parameters of a connection that are not libpq's."""

SETTINGS = Settings("postgresql://secret:password@somewhere/agents", None, 1, True, "threadmark", 0.0, True)


@given(st.text(st.characters(codec=None, exclude_categories=[])))
@example(str(uuid4()))
@example(str(uuid4()).upper())
@example("fifteen letters")
@example("\x01ourteen letters")
@example("\x02\x00teen letters.")
@example("\ud800\x00")
def test_an_id_comes_back_from_its_column(text: str) -> None:
    assert from_id_column(id_column(text)) == text


def test_a_uuid_takes_sixteen_bytes() -> None:
    assert len(id_column(str(uuid4()))) == 16


@given(st.binary(), st.binary())
def test_different_id_columns_never_read_as_the_same_id(one: bytes, other: bytes) -> None:
    if one != other:
        assert from_id_column(one) != from_id_column(other)


def test_only_tables_are_put_into_a_schema() -> None:
    assert in_schema("SELECT utm.x FROM tm.thread", 's"x') == 'SELECT utm.x FROM "s""x".threadmark_thread'
    assert in_schema("SELECT FROM tm.thread", None) == "SELECT FROM threadmark_thread"


def transaction(*steps: Query, writes: bool = True) -> Transaction[Any]:
    def program() -> Program[str]:
        for step in steps:  # noqa: UP028 - a tuple cannot be sent anything
            yield step
        return "result"

    return Transaction(program, writes=writes)


def sent(conversation: Conversation) -> tuple[list[Sequence[str]], Any]:
    """The statements of each round trip, and the result."""
    trips: list[Sequence[str]] = []
    try:
        batch = next(conversation)
        while True:
            trips.append([query.sql.split()[0] for query in batch])
            batch = conversation.send([[NUMBER] if query.sql == connections.NUMBER else [] for query in batch])
    except StopIteration as stop:
        return trips, stop.value


def test_a_sole_statement_is_a_transaction_of_its_own() -> None:
    assert sent(conversation(transaction(Query("ONE", likely_last=True)))) == ([["ONE"]], "result")


def test_a_program_that_goes_on_is_started_anew_in_a_transaction() -> None:
    trips, _ = sent(conversation(transaction(Query("ONE", likely_last=True), Query("TWO"))))
    assert trips == [["ONE"], ["BEGIN", "SELECT", "ONE"], ["TWO"], ["COMMIT"]]


def test_a_statement_that_failed_because_a_row_is_there_counts_as_no_rows_and_is_not_sent_again() -> None:
    conversing = conversation(transaction(Query("ONE", likely_last=True), Query("TWO")))
    assert [query.sql for query in next(conversing)] == ["ONE"]
    batch = conversing.throw(psycopg.errors.UniqueViolation())
    assert [query.sql.split()[0] for query in batch] == ["BEGIN", "SELECT", "TWO"]
    with pytest.raises(psycopg.errors.UniqueViolation):
        conversing.throw(psycopg.errors.UniqueViolation())


def test_a_statement_that_failed_because_of_the_default_isolation_is_sent_again_in_a_transaction_at_once() -> None:
    conversing = conversation(transaction(Query("ONE", likely_last=True)))
    assert [query.sql for query in next(conversing)] == ["ONE"]
    batch = conversing.throw(psycopg.errors.SerializationFailure())
    assert [query.sql.split()[0] for query in batch] == ["BEGIN", "SELECT", "ONE"]
    assert batch[0].sql == connections.BEGIN_WRITE
    with pytest.raises(psycopg.errors.SerializationFailure):
        conversing.throw(psycopg.errors.SerializationFailure())


def test_the_first_statement_travels_with_begin() -> None:
    trips, _ = sent(conversation(transaction(Query("ONE"), Query("TWO", likely_last=True))))
    assert trips == [["BEGIN", "SELECT", "ONE"], ["TWO"], ["COMMIT"]]


def test_a_program_without_statements_asks_nothing() -> None:
    assert sent(conversation(transaction())) == ([], "result")


def test_a_connection_notices_that_its_server_is_gone() -> None:
    parameters = SETTINGS.connecting()
    assert parameters["tcp_user_timeout"] == 30_000
    assert parameters["keepalives_idle"] == 30
    assert make_conninfo(**{key: value for key, value in parameters.items() if key not in _OF_PSYCOPG})


def test_a_url_may_say_when_a_server_is_gone() -> None:
    url = "postgresql://somewhere/agents?tcp_user_timeout=5000&keepalives_idle=7"
    parameters = SETTINGS._replace(conninfo=url).connecting()
    assert parameters["tcp_user_timeout"] == "5000"
    assert parameters["keepalives_idle"] == "7"
    assert parameters["keepalives_count"] == 3


def test_the_environment_may_say_how_long_to_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    in_url = SETTINGS._replace(conninfo="postgresql://somewhere/agents?connect_timeout=3")
    assert SETTINGS.connecting()["connect_timeout"] == 10
    assert in_url.connecting()["connect_timeout"] == "3"
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "5")
    assert "connect_timeout" not in SETTINGS.connecting()
    assert in_url.connecting()["connect_timeout"] == "3"


def error(sqlstate: str) -> psycopg.Error:
    return psycopg.errors.lookup(sqlstate)("somebody said so")


@pytest.mark.parametrize("sqlstate", ["08006", "40001", "40P01", "57P01", "57P03", "53300", "25006", "26000", "23505"])
def test_a_transient_failure_is_tried_again(sqlstate: str) -> None:
    assert passes(error(sqlstate))


@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "55P03", "57P01", "57P03", "08006", "57014"])
def test_what_may_succeed_when_it_is_tried_again_is_told_apart(sqlstate: str) -> None:
    with pytest.raises(TransientStoreError, match="somebody said so"):
        Retries(SETTINGS, time.monotonic(), Outage(log, SETTINGS)).next_wait(error(sqlstate), reached=True)


@pytest.mark.parametrize("sqlstate", ["42501", "53100", "42P01", "23502"])
def test_what_would_fail_again_is_not_transient(sqlstate: str) -> None:
    with pytest.raises(StoreError, match="somebody said so") as caught:
        Retries(SETTINGS, time.monotonic(), Outage(log, SETTINGS)).next_wait(error(sqlstate), reached=True)
    assert type(caught.value) is StoreError


@pytest.mark.parametrize("sqlstate", ["42501", "57014", "53100", "42P01", "23502", "54000", "22P05", "0A000"])
def test_a_permanent_failure_is_an_error_at_once(sqlstate: str) -> None:
    assert not passes(error(sqlstate))
    with pytest.raises(type(to_threadmark_error(error(sqlstate), SETTINGS)), match="somebody said so"):
        Retries(SETTINGS._replace(timeout=3600), time.monotonic(), Outage(log, SETTINGS)).next_wait(
            error(sqlstate), reached=True
        )


def test_waits_grow_and_end() -> None:
    retries = Retries(SETTINGS._replace(timeout=3600), time.monotonic(), Outage(log, SETTINGS))
    waits = [retries.next_wait(error("57P03"), reached=True) for _ in range(12)]
    assert waits[0] == 0
    assert waits[1] < waits[4] < waits[-1] <= 2
    with pytest.raises(TransientStoreError, match="could not be used for 0 s"):
        Retries(SETTINGS, time.monotonic(), Outage(log, SETTINGS)).next_wait(error("57P03"), reached=True)


@pytest.mark.parametrize(
    ("words", "waits"),
    [
        ("FATAL:  the database system is starting up", True),
        ("FATAL:  the database system is not yet accepting connections", True),
        ("FATAL:  the database system is in recovery mode", True),
        ("FATAL:  sorry, too many clients already", True),
        ("FATAL:  remaining connection slots are reserved for superuser connections", True),
        ("FATAL:  the database system is shutting down", False),
        ("Connection refused", False),
        ("connection timeout expired", False),
    ],
)
def test_a_saver_that_never_had_a_connection_waits_for_a_server_that_is_there(words: str, *, waits: bool) -> None:
    failure = psycopg.OperationalError(f"connection failed: {words}")
    check_worth_waiting(failure, SETTINGS, reached=True)
    with nullcontext() if waits else pytest.raises(TransientStoreError, match=f"could not be reached: .*{words[-9:]}"):
        check_worth_waiting(failure, SETTINGS, reached=False)


def test_errors_do_not_tell_passwords() -> None:
    message = str(to_threadmark_error(error("42P01"), SETTINGS))
    assert "host=somewhere" in message
    assert "password" not in message


NUMBER = ("7", 1_000_000, 2_000_000)
"""The number of a transaction, and when its server and it began."""


def lost_commit() -> LostCommit:
    """A commit whose answer was lost."""
    lost = LostCommit()
    lost.number, lost.result = NUMBER, "the result of the first attempt"
    return lost


def test_a_reading_transaction_has_no_number() -> None:
    trips, _ = sent(conversation(transaction(Query("ONE"), writes=False)))
    assert trips == [["BEGIN", "ONE"], ["COMMIT"]]


def test_a_commit_whose_answer_was_lost_is_not_run_again() -> None:
    lost = LostCommit()
    losing = conversation(transaction(Query("ONE")), lost)
    next(losing)
    assert [query.sql for query in losing.send([[], [NUMBER], []])] == ["COMMIT"]
    with pytest.raises(psycopg.OperationalError):
        losing.throw(psycopg.OperationalError())
    asking = conversation(transaction(Query("ONE")), lost)
    (question,) = next(asking)
    assert (question.sql, question.params) == (connections.STATUS, NUMBER)
    with pytest.raises(StopIteration) as ended:
        asking.send([[("committed",)]])
    assert ended.value.value == "result"


@pytest.mark.parametrize("status", ["aborted", None])
def test_a_commit_that_was_not_carried_out_is_run_again(status: str | None) -> None:
    asking = conversation(transaction(Query("ONE")), lost := lost_commit())
    next(asking)
    assert [query.sql.split()[0] for query in asking.send([[(status,)]])] == ["BEGIN", "SELECT", "ONE"]
    with pytest.raises(psycopg.OperationalError):  # that was a standby, which could not know
        asking.throw(psycopg.OperationalError())
    (question,) = next(conversation(transaction(Query("ONE")), lost))
    assert question.sql == connections.STATUS


def test_a_server_that_has_never_had_a_transaction_did_not_commit_it() -> None:
    asking = conversation(transaction(Query("ONE")), lost_commit())
    next(asking)
    batch = asking.throw(psycopg.errors.InvalidParameterValue())
    assert [query.sql.split()[0] for query in batch] == ["BEGIN", "SELECT", "ONE"]


def test_a_commit_that_is_not_decided_is_asked_about_again() -> None:
    asking = conversation(transaction(Query("ONE")), lost := lost_commit())
    next(asking)
    with pytest.raises(psycopg.OperationalError) as raised:
        asking.send([[("in progress",)]])
    assert passes(raised.value)
    assert lost.number == NUMBER


def test_an_answer_that_breaks_off_passes() -> None:
    assert passes(psycopg.DatabaseError('insufficient data in "D" message'))
    assert not passes(psycopg.ProgrammingError("the query has 1 placeholder but 2 parameters were passed"))
