"""Many who write to one thread at once, in mode "sync": what they ask of both databases grows as they do, no faster."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sized
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from replication.lines import PATIENCE, checkpoint, config, put
from replication.sides import rows
from threadmark import MemorySaver, ReplicatedSaver, Saver, replicated
from threadmark.program import Driver, Program, Transaction
from threadmark.replica_store import ReplicaStore, RowMarks
from threadmark.replication.steps import Side
from threadmark.store import Store
from threadmark_sqlite import SqliteSaver

CROWD = 64


class Counts:
    """What one database was asked for."""

    def __init__(self) -> None:
        self.transactions = 0
        self.calls: Counter[str] = Counter()
        self.rows: Counter[str] = Counter()
        """Rows that were answered, by the operation."""


class CountingStore:
    """A store whose operations are counted, and the rows that they answer."""

    def __init__(self, store: Any, counts: Counts) -> None:
        self._store = store
        self._counts = counts

    def __getattr__(self, name: str) -> Callable[..., Program[Any]]:
        return partial(self._counted, name)

    def _counted(self, name: str, *args: Any) -> Program[Any]:
        answer = yield from getattr(self._store, name)(*args)
        self._counts.calls[name] += 1
        if isinstance(answer, RowMarks):
            self._counts.rows[name] += sum(map(len, answer))
        elif isinstance(answer, list | dict):
            self._counts.rows[name] += len(cast("Sized", answer))
        return answer


class CountingDriver:
    """A driver that counts, and lets others go on before each transaction and after it, for as long as chance says."""

    def __init__(self, driver: Driver, counts: Counts, chance: random.Random) -> None:
        self._driver = driver
        self._counts = counts
        self._chance = chance

    def run(self, transaction: Transaction[Any]) -> Any:
        self._counts.transactions += 1
        return self._driver.run(transaction)

    async def arun(self, transaction: Transaction[Any]) -> Any:
        await self._wait()
        self._counts.transactions += 1
        result = await self._driver.arun(transaction)
        await self._wait()
        return result

    def close(self) -> None:
        self._driver.close()

    async def aclose(self) -> None:
        await self._driver.aclose()

    async def _wait(self) -> None:
        for _ in range(self._chance.randrange(8)):
            await asyncio.sleep(0)


def _counting(saver: Saver, counts: Counts, chance: random.Random) -> Saver:
    store = cast("Store", CountingStore(saver._store, counts))
    return Saver(store, CountingDriver(saver._driver, counts, chance))


def _savers(kind: str, folder: Path) -> tuple[Saver, Saver]:
    if kind == "memory":
        return MemorySaver(), MemorySaver()
    return SqliteSaver(folder / "one.db", durability="normal"), SqliteSaver(folder / "other.db", durability="normal")


async def _crowd(saver: ReplicatedSaver, what: str) -> None:
    if what == "puts":
        numbers = range(2, CROWD + 2)
        await asyncio.gather(*(saver.aput(config(), checkpoint(n), {}, {"n": n, "text": 1}) for n in numbers))
    else:
        there = {"configurable": {**config()["configurable"], "checkpoint_id": checkpoint(1)["id"]}}
        await asyncio.gather(*(saver.aput_writes(there, [("a", n)], f"task {n}") for n in range(CROWD)))


@pytest.mark.parametrize("begun", [True, False], ids=["a thread that is there", "a new thread"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_crowd_that_puts_into_one_thread_asks_for_no_more_than_each_needs(
    kind: str, tmp_path: Path, *, begun: bool
) -> None:
    savers, counts, chance = _savers(kind, tmp_path), (Counts(), Counts()), random.Random(1)
    one, other = (_counting(saver, each, chance) for saver, each in zip(savers, counts, strict=True))
    # The thread that looks at both sides asks, too: it is to do so once.
    with closing(replicated(one, other, deadline=PATIENCE, health_interval=PATIENCE)) as saver:
        if begun:
            put(saver, 1)
        for each in counts:
            each.__init__()  # type: ignore[misc]
        asyncio.run(_crowd(saver, "puts"))
        for each in counts:
            print(each.transactions, sum(each.calls.values()), sum(each.rows.values()), dict(each.calls), dict(each.rows))
        sides = [Side("primary", cast("ReplicaStore", saver._store), saver._driver) for saver in savers]
        assert rows(sides[0]) == rows(sides[1])
        assert [each.aput for each in ()] == []
