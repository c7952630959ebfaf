"""Two databases of a pair that cannot see each other for a while, for tests of removals in that time."""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

from postgres import cluster
from redis_backend import processes
from replication.actor import Newest, config_of, put_arguments
from replication.links import Link
from replication.look import Look, unequal
from threadmark import MemorySaver, Saver, TransientStoreError
from threadmark.program import Driver, Program, Transaction
from threadmark.replication import ReplicatedSaver, ReplicationMode
from threadmark.replication.background import check_both
from threadmark.replication.driver import PairDriver
from threadmark.replication.pair import Pair, Settings
from threadmark.replication.steps import Side
from threadmark.store.replica import StaleTermError
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisSaver
from threadmark_sqlite import SqliteSaver

T = TypeVar("T")

THREAD = "thread"
FIRST = "1"
"""A checkpoint that both sides have."""
LONG = 17
"""The seed of a text that is long enough for a separate segment."""

KINDS = [("memory", "memory"), ("sqlite", "memory"), ("redis", "postgres"), ("postgres", "redis")]

_numbers = count()


class _Unattended(PairDriver):
    """The driver of a pair that copies nothing by itself."""

    def _begin(self) -> None:
        pass


class Failing(Link):
    """The way to a database that is lost with the next transaction that writes."""

    fails: Literal["", "at the commit", "late"] = ""
    """Whether that is when it is about to be committed, or before anything of it was carried out, which comes later."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._late: list[Transaction[Any]] = []

    def run(self, transaction: Transaction[T]) -> T:
        return super().run(self._failing(transaction))

    async def arun(self, transaction: Transaction[T]) -> T:
        return await super().arun(self._failing(transaction))

    def come_late(self) -> None:
        """Carry out the late writes. Their callers no longer wait."""
        for transaction in self._late:
            with suppress(StaleTermError):
                self._driver.run(transaction)

    def _failing(self, transaction: Transaction[T]) -> Transaction[T]:
        if self.fails == "at the commit" and transaction.writes:
            return transaction.through(self._lost)
        if self.fails == "late" and transaction.writes:
            self._late.append(transaction)
            self._fail()
        return transaction

    def _lost(self, program: Callable[[], Program[T]]) -> Program[T]:
        yield from program()
        self._fail()

    def _fail(self) -> NoReturn:
        self.fails, self.way = "", "closed"
        raise TransientStoreError("the connection was lost")


class Sides:
    """Two databases, and a pair over them."""

    def __init__(self, opened: list[Saver], mode: ReplicationMode = "async") -> None:
        self.looks = [Look(name, saver) for name, saver in zip(("primary", "secondary"), opened, strict=True)]
        self.ways = [Failing(saver._driver) for saver in opened]
        first, second = (
            Side(look.name, look.saver._store, way)  # type: ignore[arg-type]  # a SideName, and a ReplicaStore
            for look, way in zip(self.looks, self.ways, strict=True)
        )
        settings = Settings(mode, failover="automatic", deadline=None)
        self.pair = ReplicatedSaver(_Unattended(Pair(first, second, settings)))

    def put(self, checkpoint: str, parent: str = "", seed: int = 0) -> None:
        """Put a checkpoint on the side that takes the writes."""
        made = Newest(checkpoint, (seed or int(checkpoint),))
        self.pair.put(*put_arguments(THREAD, "", made, parent))

    def put_and_copy(self) -> None:
        """Put a checkpoint, and have the other side have it at once."""
        self.put("1")
        self.pair.drain()

    def found(self) -> list[list[str]]:
        """The checkpoints that each side has."""
        return [sorted(key[1] for key in look.thread(THREAD)[0].parents) for look in self.looks]

    def lose_active(self) -> None:
        """Let no client reach the side that takes the writes."""
        self.ways[self.pair._pair.pair.known.active.number].way = "closed"

    def look_at_both(self) -> None:
        """Find out which sides can be reached, and who takes the writes."""
        self.pair._pair.play(check_both(self.pair._pair.pair))

    def copy(self) -> None:
        """Have both sides reachable again, and do the work of the pair's own thread then."""
        for way in self.ways:
            way.way = "open"
        driver = self.pair._pair
        for _ in range(2):
            driver.play(driver._background._round(looks=True))

    def meet(self) -> None:
        """Have both sides reachable again, and everything copied."""
        for way in self.ways:
            way.way = "open"
        self.pair.reconcile(both_ways=True)
        assert self.pair.drain() == 0
        assert unequal(*self.looks) == []
        assert [look.waiting().entries for look in self.looks] == [0, 0]


class Meeting:
    """Two sides, one of which is lost with its uncopied rows; the caller, and the way in which the sides meet again."""

    def __init__(self, sides: Sides, api: str, by: str) -> None:
        self.sides = sides
        self._api = api
        self._by = by

    def call(self, method: str, *args: Any) -> Any:
        """Call a method of the pair, with the one API or the other."""
        if self._api == "blocking":
            return getattr(self.sides.pair, method)(*args)
        return asyncio.run(getattr(self.sides.pair, f"a{method}")(*args))

    def delete(self, checkpoint: str) -> Any:
        """Delete a checkpoint on the side that takes the writes by then."""
        return self.call("delete_checkpoint", config_of(THREAD, "", checkpoint))

    def both_have(self, *checkpoints: str) -> None:
        """Put these, and copy them."""
        for each in checkpoints:
            self.sides.put(each)
        assert self.sides.pair.drain() == 0

    def found_when_they_meet(self) -> list[list[str]]:
        """Have both meet. Returns the threads of each."""
        if self._by == "thread":
            self.sides.copy()
            assert unequal(*self.sides.looks) == []
        self.sides.meet()
        assert [look.problems() for look in self.sides.looks] == [[], []]
        return self.sides.found()

    def kinds_of_problems(self) -> list[str]:
        """Return the findings of `verify`, segments that nothing needs any more included."""
        return [each.kind for look in self.sides.looks for each in look.saver.verify().problems]


def open_sides(kinds: Sequence[str], folder: Path, closing: ExitStack) -> list[Saver]:
    """Open two databases of these kinds."""
    return [closing.enter_context(open_saver(kind, folder)) for kind in kinds]


def open_saver(kind: str, folder: Path) -> Saver:
    """Open a new database."""
    number = next(_numbers)
    if kind == "postgres":
        return PostgresSaver(cluster.shared().database(f"apart_{os.getpid()}_{number}"))
    if kind == "redis":
        return RedisSaver(processes.shared().url, prefix=f"apart{os.getpid()}_{number}:", durability="memory")
    return SqliteSaver(folder / f"{number}.db") if kind == "sqlite" else MemorySaver()
