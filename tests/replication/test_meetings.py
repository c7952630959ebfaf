"""A change that another process makes between any two steps of reading the changes to copy.

That process has not copied it yet, and need not if the first one says that it has. On Redis the steps of a transaction
that reads are not one moment. After any change in between, both sides have the same in the end.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest

import backends
import postgres.backends
import redis_backend.backends
import threadmark
from replication.sides import TERM, recorded
from threadmark import Saver
from threadmark.program import Driver, Program, Transaction
from threadmark.replication.copying import copy_all
from threadmark.replication.playing import play_flow
from threadmark.replication.reconciling import reconcile
from threadmark.replication.steps import Side
from threadmark_conformance.driver_wrapper import DriverWrapper
from threadmark_conformance.engine import at, checkpoint

PAIRS = {
    "redis to sqlite": (redis_backend.backends.BACKENDS["single"], backends.sqlite_file),
    "redis cluster to redis": (redis_backend.backends.BACKENDS["cluster"], redis_backend.backends.BACKENDS["single"]),
    "postgres to sqlite": (postgres.backends.from_url, backends.sqlite_file),
}
"""Transactions of the memory backend exclude each other, and those of SQLite that read see one moment."""


def put(saver: Saver, number: int) -> Any:
    text = f"{number} " * 100
    return saver.put(at("thread"), checkpoint({"n": number, "text": text}), {}, {"n": number, "text": number})


def newest(saver: Saver) -> Any:
    found = saver.get_tuple(at("thread"))
    assert found is not None
    return found.config


CHANGES: dict[str, Callable[[Saver], object]] = {
    "owner": lambda saver: saver.update_thread("thread", owner="ada"),
    "title and metadata": lambda saver: saver.update_thread("thread", title="second", metadata={"a": 2}),
    "put": lambda saver: put(saver, 7),
    "special write": lambda saver: saver.put_writes(newest(saver), [("__error__", "x")], "task"),
    "prune": lambda saver: saver.prune(["thread"], keep_last=1),
    "delete": lambda saver: saver.delete_thread("thread"),
    "delete and begin": lambda saver: (saver.delete_thread("thread"), put(saver, 8)),
}
FIRST: dict[str, Callable[[Saver], object]] = {
    "owner": lambda saver: saver.update_thread("thread", owner="eve", title="first"),
    "put": lambda saver: (put(saver, 5), saver.update_thread("thread", title="first")),
    "copied whole": lambda saver: saver.prune(["thread"], keep_last=1),
}


class Meeting(DriverWrapper):
    """Does something once, before a certain step of those that read."""

    def __init__(self, driver: Driver, before: int, act: Callable[[], object]) -> None:
        super().__init__(driver)
        self._before, self._act = before, act
        self.met = False

    def _wrap(self, transaction: Transaction[Any]) -> Generator[Transaction[Any] | None, Any, Any]:
        if transaction.writes or self.met:
            return (yield transaction)
        return (yield transaction.through(self._counted))

    def _counted(self, begin: Callable[[], Program[Any]]) -> Program[Any]:
        steps = begin()
        try:
            step = next(steps)
            while True:
                if self._before == 0 and not self.met:
                    self.met = True
                    self._act()
                self._before -= 1
                step = steps.send((yield step))
        except StopIteration as stop:
            return stop.value
        finally:
            steps.close()


@pytest.fixture(params=PAIRS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], tuple[Saver, Saver]]]:
    source, target = PAIRS[request.param]
    for name in ("source", "target"):
        (tmp_path / name).mkdir()
    with source(tmp_path / "source") as primary, target(tmp_path / "target") as secondary, ExitStack() as savers:
        yield lambda: (savers.enter_context(primary()), savers.enter_context(secondary()))


@pytest.mark.parametrize("second", CHANGES)
@pytest.mark.parametrize("first", FIRST)
def test_both_sides_have_the_same(first: str, second: str, opened: Callable[[], tuple[Saver, Saver]]) -> None:
    bare = opened()
    other = opened()[0]
    recorded(other)
    for before in range(100):
        primary, secondary = opened()
        meeting = Meeting(primary._driver, before, lambda: CHANGES[second](other))
        primary._driver, meeting.met = meeting, True
        with threadmark.replicated(primary, secondary, health_interval=3600) as saver:
            saver.delete_thread("thread")
            put(saver, 1)
            saver.update_thread("thread", owner="nobody", title="none", metadata={"a": 1})
            put(saver, 2)
            meeting.met = False
            FIRST[first](saver)
        one, two = (cast("Any", each) for each in bare)
        sides = Side("primary", one._store, one._driver), Side("secondary", two._store, two._driver)
        while play_flow(copy_all(*sides, TERM)):
            pass
        report = play_flow(reconcile(*sides, term=99, dry_run=True))
        assert (report.different, list(report.only_there)) == (0, []), f"before step {before}"
        assert bare[0].get_thread("thread") == bare[1].get_thread("thread"), f"before step {before}"
        if not meeting.met:
            break
    assert before > 2
