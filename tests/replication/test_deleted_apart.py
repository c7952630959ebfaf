"""A thread that is deleted on a side which lacks some of it, because the other one is away: it stays deleted."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any, Literal, NoReturn, TypeVar
from unittest.mock import patch

import pytest

from postgres import cluster
from redis_backend import processes
from replication.actor import Newest, put_arguments
from replication.links import Link
from replication.look import Look, unequal
from threadmark import MemorySaver, Saver, SessionCheckpoint, SessionMetadata, Sessions, TransientStoreError
from threadmark.program import Driver, Program, Transaction
from threadmark.replica_store import StaleTermError
from threadmark.replication import ReplicatedSaver
from threadmark.replication.driver import PairDriver
from threadmark.replication.pair import Pair, Settings
from threadmark.replication.steps import Side
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisSaver
from threadmark_sqlite import SqliteSaver

T = TypeVar("T")

THREAD = "thread"
PAIRS = [("memory", "memory"), ("sqlite", "memory"), ("redis", "postgres"), ("postgres", "redis")]

_numbers = count()
_MOMENT = 0.3


class _Unattended(PairDriver):
    """The driver of a pair that copies nothing by itself."""

    def _begin(self) -> None:
        pass


class _Failing(Link):
    """The way to a database that is lost with the next transaction that writes."""

    fails: Literal["", "at the commit", "late"] = ""
    """Whether that is when it is about to be committed, or before anything of it was carried out, which comes later."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._late: list[Transaction[Any]] = []

    def run(self, transaction: Transaction[T]) -> T:
        if self.fails == "at the commit" and transaction.writes:
            transaction = transaction._replace(program=partial(self._lost, transaction.program))
        elif self.fails == "late" and transaction.writes:
            self._late.append(transaction)
            self._fail()
        return super().run(transaction)

    def come_late(self) -> None:
        """Carry out what is late. Nobody waits for an answer any more."""
        for transaction in self._late:
            with suppress(StaleTermError):
                self._driver.run(transaction)

    def _lost(self, program: Callable[[], Program[T]]) -> Program[T]:
        yield from program()
        self._fail()

    def _fail(self) -> NoReturn:
        self.fails, self.way = "", "closed"
        raise TransientStoreError("the connection was lost")


class _Sides:
    """Two databases, and a pair over them in mode "async"."""

    def __init__(self, opened: list[Saver]) -> None:
        self.looks = [Look(name, saver) for name, saver in zip(("primary", "secondary"), opened, strict=True)]
        self.ways = [_Failing(saver._driver) for saver in opened]
        first, second = (
            Side(look.name, look.saver._store, way)  # type: ignore[arg-type]  # a SideName, and a ReplicaStore
            for look, way in zip(self.looks, self.ways, strict=True)
        )
        settings = Settings("async", failover="automatic", deadline=None)
        self.pair = ReplicatedSaver(_Unattended(Pair(first, second, settings)))

    def put(self, checkpoint: str) -> None:
        self.pair.put(*put_arguments(THREAD, "", Newest(checkpoint, (int(checkpoint),)), ""))

    def put_and_copy(self) -> None:
        """Put a checkpoint, and have the other side have it at once."""
        self.put("1")
        self.pair.drain()

    def found(self) -> list[list[str]]:
        """The checkpoints that each side has."""
        return [sorted(key[1] for key in look.thread(THREAD)[0].parents) for look in self.looks]

    def meet(self) -> None:
        """Have both sides reachable again, and everything copied."""
        for way in self.ways:
            way.way = "open"
        self.pair.reconcile(both_ways=True)
        assert self.pair.drain() == 0
        assert unequal(*self.looks) == []
        assert [look.waiting().entries for look in self.looks] == [0, 0]


def _open(kind: str, folder: Path) -> Saver:
    number = next(_numbers)
    if kind == "postgres":
        return PostgresSaver(cluster.shared().database(f"apart_{os.getpid()}_{number}"))
    if kind == "redis":
        return RedisSaver(processes.shared().url, prefix=f"apart{os.getpid()}_{number}:", durability="memory")
    return SqliteSaver(folder / f"{number}.db") if kind == "sqlite" else MemorySaver()


@pytest.fixture(params=PAIRS, ids="-".join)
def sides(request: Any, tmp_path: Path) -> Iterator[_Sides]:
    with ExitStack() as closing:
        sides = _Sides([closing.enter_context(_open(kind, tmp_path)) for kind in request.param])
        sides.pair.setup()
        yield sides


def test_where_the_deletion_failed_on_the_side_that_had_it(sides: _Sides) -> None:
    """The other side, which never had the thread, is the one that says that it is deleted."""
    sides.put("1")
    sides.ways[0].fails = "at the commit"
    assert sides.pair.delete_thread(THREAD)
    assert sides.found() == [["1"], []]
    sides.meet()
    assert sides.found() == [[], []]


def test_where_all_sessions_are_cleared_on_the_side_that_lacks_them(sides: _Sides) -> None:
    sessions = Sessions(sides.pair)
    sessions.save(SessionCheckpoint(SessionMetadata(session_id="session"), {"n": 1}))
    sides.ways[0].fails = "at the commit"
    assert sessions.clear_all() == 1
    sides.meet()
    assert [look.summaries() for look in sides.looks] == [{}, {}]


def test_where_it_says_that_there_is_none(sides: _Sides) -> None:
    sides.put("1")
    sides.ways[0].way = "closed"
    assert not sides.pair.delete_thread(THREAD)
    sides.meet()
    assert sides.found() == [[], []]


def test_what_is_begun_after_it_stays(sides: _Sides) -> None:
    sides.put("1")
    sides.ways[0].fails = "at the commit"
    assert sides.pair.delete_thread(THREAD)
    sides.put("2")
    sides.meet()
    assert sides.found() == [["2"], ["2"]]


def test_what_comes_late_to_the_side_that_lost_the_writes_does_not_begin_it_anew(sides: _Sides) -> None:
    """It is refused from when that side has learned of the deletion."""
    sides.ways[0].fails = "late"
    sides.put("1")
    assert sides.pair.delete_thread(THREAD)
    sides.ways[0].way = "open"
    assert sides.pair.drain() == 0
    sides.ways[0].come_late()
    sides.meet()
    assert sides.found() == [[], []]


def test_where_it_begins_just_when_it_is_deleted(tmp_path: Path) -> None:
    """Another process does both between two statements: it waits, and what it puts is not removed unnoticed."""
    with ExitStack() as closing:
        url = cluster.shared().database(f"apart_{os.getpid()}_{next(_numbers)}")
        one, same = (closing.enter_context(PostgresSaver(url)) for _ in range(2))
        other = closing.enter_context(_open("sqlite", tmp_path))
        sides, others = _Sides([one, other]), _Sides([same, other])
        sides.pair.setup()
        putting = Thread(target=others.put_and_copy)
        epoch = one._store.epoch

        def epoch_before_the_put(thread_id: str) -> Program[int | None]:
            found = yield from epoch(thread_id)
            putting.start()
            putting.join(_MOMENT)
            return found

        with patch.object(one._store, "epoch", epoch_before_the_put):
            assert not sides.pair.delete_thread(THREAD)
        putting.join()
        assert sides.pair.drain() == 0
        assert unequal(*sides.looks) == []
