"""An outage is logged once when it begins and once when it is over, however many callers try again."""

import logging

import pytest

from threadmark.runtime.logs import Log
from threadmark.runtime.outages import Outage

LOGGER = "threadmark.an-outage"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Log:
    caplog.set_level(logging.DEBUG, LOGGER)
    return Log(LOGGER)


def logged(caplog: pytest.LogCaptureFixture, log: Log, level: int = logging.INFO) -> list[tuple[int, str]]:
    log.flush()
    found = [(record.levelno, record.getMessage()) for record in caplog.records if record.levelno >= level]
    caplog.clear()
    return found


def test_many_attempts_of_many_callers_are_two_warnings(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage(log, "the database")
    for attempt in range(20):
        for _ in range(50):
            outage.failed("it is away", f"trying again, {attempt}", is_first=attempt == 0)
    assert logged(caplog, log) == [(logging.WARNING, "the database: it is away; trying again, 0")]
    outage.succeeded(outage.failures)
    ((level, line),) = logged(caplog, log)
    assert level == logging.WARNING
    assert line.startswith("the database: works again after 0.")
    assert line.endswith(" s; failed attempts: 1000, callers: 50")
    assert not outage.is_on


def test_every_attempt_is_a_line_for_who_looks_closer(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage(log, "the database")
    for _ in range(3):
        outage.failed("it is away", "trying again", is_first=True)
    assert [level for level, _ in logged(caplog, log, logging.DEBUG)] == [logging.WARNING, logging.DEBUG, logging.DEBUG]


def test_an_answer_from_before_the_last_failure_does_not_end_an_outage(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    outage = Outage(log, "the database")
    before = outage.failures
    outage.failed("it is away", "trying again", is_first=True)
    outage.succeeded(before)
    assert outage.is_on
    outage.succeeded(outage.failures)
    outage.succeeded(outage.failures)
    assert [level for level, _ in logged(caplog, log)] == [logging.WARNING, logging.INFO]


def test_the_end_of_a_single_failure_is_no_warning(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage(log, "the database")
    outage.failed("the connection was closed long ago", "trying again", is_first=True)
    outage.succeeded(outage.failures)
    assert [level for level, _ in logged(caplog, log)] == [logging.WARNING, logging.INFO]


def test_what_fails_under_a_lock_is_written_later(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage(log, "the database")
    outage.failed("it is away", "trying again", is_first=True, holds_lock=True)
    assert not caplog.records
    assert len(logged(caplog, log)) == 1
