"""Logging: a handler that fails harms nothing, noted lines are written once, and cache evictions are logged."""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from threadmark import ConfigError, MemorySaver
from threadmark.program import Program, Transaction
from threadmark.runtime.logs import Log, slow_after
from threadmark_conformance.engine import at, checkpoint


class Raising(logging.Handler):
    """A handler that does not even catch its own errors, as those of `logging` do."""

    def handle(self, record: logging.LogRecord) -> bool:
        raise OSError(f"nowhere to write {record.name}")


@pytest.fixture
def raising() -> Iterator[str]:
    name = "threadmark.a-test"
    handler = Raising()
    logging.getLogger(name).addHandler(handler)
    yield name
    logging.getLogger(name).removeHandler(handler)


def test_what_a_handler_raises_is_printed_and_not_passed_on(raising: str, capsys: pytest.CaptureFixture[str]) -> None:
    Log(raising).write(logging.WARNING, "%d lines", 3)
    assert "nowhere to write threadmark.a-test" in capsys.readouterr().err


def test_logging_can_be_told_to_be_silent_about_that(
    raising: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    Log(raising).write(logging.WARNING, "%d lines", 3)
    assert capsys.readouterr().err == ""


def test_what_was_noted_is_written_once_in_its_order(caplog: pytest.LogCaptureFixture) -> None:
    log = Log("threadmark.a-test")
    for number in range(3):
        log.note(logging.WARNING, "line %d", number)
    assert caplog.messages == []
    workers = [threading.Thread(target=log.flush) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(caplog.messages) == ["line 0", "line 1", "line 2"]
    log.flush()
    assert len(caplog.messages) == 3


def test_a_line_that_a_handler_notes_is_written_too(caplog: pytest.LogCaptureFixture) -> None:
    log = Log("threadmark.a-test")

    class Noting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() == "first":
                log.note(logging.WARNING, "second")
                log.flush()

    handler = Noting()
    logging.getLogger("threadmark.a-test").addHandler(handler)
    log.note(logging.WARNING, "first")
    log.flush()
    logging.getLogger("threadmark.a-test").removeHandler(handler)
    assert sorted(caplog.messages) == ["first", "second"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_what_the_parent_noted_only_the_parent_writes(caplog: pytest.LogCaptureFixture) -> None:
    log = Log("threadmark.a-test")
    log.note(logging.WARNING, "of the parent")
    child = os.fork()
    if child == 0:
        log.flush()
        os._exit(len(caplog.messages))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    log.flush()
    assert caplog.messages == ["of the parent"]


def _run(begin: Callable[[], Program[None]]) -> Program[None]:
    return begin()


def test_a_slow_transaction_is_told_by_its_program_and_its_place(caplog: pytest.LogCaptureFixture) -> None:
    def store_rows() -> Program[None]:
        yield from ()

    log = Log("threadmark.a-test")
    log.note_slow("a database", 1.23456, Transaction(store_rows, writes=True))
    log.note_slow("a database", 2, Transaction(store_rows, writes=False), 3)
    log.note_slow("a database", 2, Transaction(store_rows).through(_run).through(_run))
    log.flush()
    first, second, third = caplog.messages
    assert "store_rows) took" in third
    assert first.startswith("a database: a transaction that writes (test_a_slow")
    assert first.endswith("store_rows) took 1.235 s, waiting for locks included")
    assert "reads (" in second
    assert "and 3 more in the same commit" in second


@pytest.mark.parametrize("slow", [0, 0.5, 3])
def test_slow_is_a_number_of_seconds(slow: float) -> None:
    assert slow_after(slow) == slow
    assert slow_after(None) == float("inf")


@pytest.mark.parametrize("slow", [-1, float("nan"), True, "1", [1]])
def test_slow_is_nothing_else(slow: Any) -> None:
    with pytest.raises(ConfigError, match="slow must be a number of seconds from 0 on, or None"):
        slow_after(slow)


def test_evictions_are_told_by_their_counts_and_at_debug_only(caplog: pytest.LogCaptureFixture) -> None:
    for level, logged in ((logging.INFO, False), (logging.DEBUG, True)):
        with caplog.at_level(level, "threadmark"):
            config = at("thread")
            saver = MemorySaver(cache_bytes=20_000)
            for number in range(20):  # more than the first batch of a listing
                config = saver.put(config, checkpoint({"a": os.urandom(8000), "n": number}), {}, {"a": 1, "n": 1})
            assert any("the encoding cache (cache_bytes=20000) is full" in line for line in caplog.messages) == logged
            assert len(list(saver.list(at("thread")))) == 20
            assert any("of a listing" in line for line in caplog.messages) == logged
            assert {record.levelno for record in caplog.records} <= {logging.DEBUG}
