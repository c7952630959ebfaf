"""Leases in a file that processes with other clocks use: SQLite has no clock but theirs."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from patience import wait_until
from threadmark import ThreadBusyError
from threadmark_conformance.engine import at, checkpoint
from threadmark_sqlite import SqliteSaver

HOUR = 3600 * 1_000_000


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[SqliteSaver]:
    """A saver on a file in which a worker whose clock is an hour ahead took a lease of 0.2 s, and died."""
    with SqliteSaver(tmp_path / "agents.db") as saver:
        saver.put(at("thread"), checkpoint({"n": 1}), {}, {"n": 1})
        saver.lease("thread", ttl=0.2, holder="ahead").__enter__()._renewal.stop()  # type: ignore[union-attr]
        with closing(sqlite3.connect(tmp_path / "agents.db", isolation_level=None)) as database:
            database.execute("UPDATE threadmark_thread SET token = token + ?1, lease_ends = lease_ends + ?1", (HOUR,))
        yield saver


def test_who_waits_for_it_has_the_thread_when_its_time_is_over(saver: SqliteSaver) -> None:
    with saver.lease("thread", ttl=30, timeout=60) as lease:
        config = {"configurable": {"thread_id": "thread", "lease_token": lease.token}}
        saver.put(config, checkpoint({"n": 2}), {}, {"n": 2})


def test_the_next_token_is_greater_although_the_clock_is_behind(saver: SqliteSaver, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "agents.db")) as database:
        ((before,),) = database.execute("SELECT token FROM threadmark_thread")
    with saver.lease("thread", on_busy="interrupt") as lease:
        assert lease.token > before


def test_who_has_no_lease_is_refused_for_no_longer_than_its_time(saver: SqliteSaver) -> None:
    for ask in (
        saver.lease("thread", on_busy="reject").__enter__,
        lambda: saver.put(at("thread"), checkpoint({"n": 2}), {}, {"n": 2}),
    ):
        with pytest.raises(ThreadBusyError, match=r"by 'ahead' for 0\.[12] s more"):
            ask()

    def is_free() -> bool:
        try:
            saver.put(at("thread"), checkpoint({"n": 2}), {}, {"n": 2})
        except ThreadBusyError:
            return False
        return True

    wait_until(is_free, "the lease of a worker that died does not end")
