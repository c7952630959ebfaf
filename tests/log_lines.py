"""Reading what is logged, and handlers that do something else with it."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def lines_of(logger: str, caplog: pytest.LogCaptureFixture) -> Iterator[Callable[..., list[str]]]:
    """Yield a function that returns the lines logged so far at a level, and forgets them."""

    def logged(level: int) -> list[str]:
        records = caplog.handler.records
        seen = records[:]
        del records[: len(seen)]  # not all of them: another thread may have logged one since
        return [record.getMessage() for record in seen if (record.name, record.levelno) == (logger, level)]

    with caplog.at_level(logging.DEBUG, "threadmark"):
        yield logged


class _Handler(logging.Handler):
    """Does something with each line, and lets its errors pass."""

    def __init__(self, do: Callable[[], Any]) -> None:
        super().__init__()
        self._do = do

    def handle(self, record: logging.LogRecord) -> bool:
        self._do()
        return bool(record)


@contextmanager
def handlers(logger: str) -> Iterator[Callable[[Callable[[], Any]], None]]:
    """Yield a function that lets something be done with each line, until the block ends."""
    added: list[logging.Handler] = []

    def add(do: Callable[[], Any]) -> None:
        added.append(_Handler(do))
        logging.getLogger(logger).addHandler(added[-1])

    yield add
    for each in added:
        logging.getLogger(logger).removeHandler(each)


def assert_nothing_is_logged_of(caplog: pytest.LogCaptureFixture, *secrets: str) -> None:
    """Fail if a record of ours holds one of these, or if none was logged at some level."""
    ours = [record for record in caplog.records if record.name.startswith("threadmark")]
    assert {record.levelno for record in ours} == {logging.DEBUG, logging.INFO, logging.WARNING}
    for record in ours:
        parts = record.getMessage(), repr(record.args), record.msg, record.exc_text, repr(record.exc_info)
        for secret in secrets:
            assert secret not in " ".join(map(str, parts))
