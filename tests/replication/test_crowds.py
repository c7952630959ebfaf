"""Many writers to one thread at once, in mode "sync": their calls to both databases grow no faster than they do."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence, Sized
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from patience import PATIENCE
from replication import histories
from replication.lines import checkpoint, config, number_in, put
from replication.sides import TERM, copied_both_ways, in_store, pair_in_memory, rows, side
from threadmark import MemorySaver, Saver, replicated
from threadmark.program import Driver, Program, Transaction
from threadmark.replication import snapshots
from threadmark.replication.applying import Route, add_entry_rows
from threadmark.replication.steps import Side
from threadmark.store.contract import NEVER, Store
from threadmark.store.replica import ReplicaStore, RowMarks
from threadmark.types import ReplicatedSaver
from threadmark_conformance.engine import at
from threadmark_sqlite import SqliteSaver

CROWD = 64
THREAD = "thread"

T = TypeVar("T")


class Counts:
    """The calls to one database."""

    def __init__(self) -> None:
        self.transactions = 0
        self.calls: Counter[str] = Counter()
        self.rows: Counter[str] = Counter()
        """Rows that were answered, by the operation."""

    def clear(self) -> None:
        """Begin again."""
        self.transactions = 0
        self.calls.clear()
        self.rows.clear()


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
            self._counts.rows[name] += len(answer.checkpoints) + len(answer.writes) + len(answer.segments)
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


async def _crowd(savers: Sequence[ReplicatedSaver], what: str) -> None:
    """Let all write to one thread at once, each through one of the savers in turn."""
    numbers = range(2, CROWD + 2)
    some = [savers[number % len(savers)] for number in numbers]
    if what == "puts":
        puts = [
            saver.aput(config(), checkpoint(n), {}, {"n": n, "text": 1}) for saver, n in zip(some, numbers, strict=True)
        ]
        await asyncio.gather(*puts)
    else:
        written = config()
        written["configurable"]["checkpoint_id"] = checkpoint(1)["id"]
        writes = [saver.aput_writes(written, [("a", n)], f"task {n}") for saver, n in zip(some, numbers, strict=True)]
        await asyncio.gather(*writes)


# Several savers stand for as many processes: they know nothing of each other.
@pytest.mark.parametrize("processes", [1, 8])
@pytest.mark.parametrize("what", ["puts", "writes", "puts into a new thread", "puts in parts"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_crowd_asks_for_no_more_than_each_of_it_needs(
    kind: str, what: str, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "puts in parts":
        monkeypatch.setattr(snapshots, "_MOST_ROWS_READ", 8)
    savers, counts, chance = _savers(kind, tmp_path), (Counts(), Counts()), random.Random(1)
    one, other = (_counting(saver, each, chance) for saver, each in zip(savers, counts, strict=True))
    with ExitStack() as closed:
        # The threads that look at both sides ask, too: they are to do so once.
        pairs = [
            closed.enter_context(closing(replicated(one, other, deadline=PATIENCE, health_interval=PATIENCE)))
            for _ in range(processes)
        ]
        for pair in pairs:
            pair.setup()
            assert number_in(pair, "another thread") is None
        if what != "puts into a new thread":
            put(pairs[0], 1)
        for each in counts:
            each.clear()
        asyncio.run(_crowd(pairs, what.split(maxsplit=1)[0]))
        source, target = counts
        assert source.transactions <= 3 * CROWD
        assert target.transactions <= 3 * CROWD
        # The waiting changes are read by each process once or twice, never the whole thread again for each change.
        assert sum(source.rows.values()) + sum(target.rows.values()) <= (8 + 4 * processes) * CROWD
        assert source.calls["marks"] <= (processes if what == "puts into a new thread" else 0)
        assert target.calls["marks"] == 0
        sides = [Side("primary", cast("ReplicaStore", saver._store), saver._driver) for saver in savers]
        assert rows(sides[0]) == rows(sides[1])


DEEDS: dict[str, Callable[[Saver], Any]] = {
    "put": lambda saver: histories.put(saver, THREAD, 9, "0004"),
    "write": lambda saver: saver.put_writes(at(THREAD, "", "0004"), [("a", "more")], "another task"),
    "write over": lambda saver: histories.write(saver, THREAD, "0004", "newer"),
    "set the title": lambda saver: saver.update_thread(THREAD, title="a title"),
    "prune": lambda saver: saver.prune([THREAD]),
    "put again": lambda saver: histories.put(saver, THREAD, 4, "0003", again=True),
    "delete": lambda saver: saver.delete_thread(THREAD),
}


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("begun", [True, False], ids=["there", "new"])
def test_nothing_newer_is_copied_too_early_where_the_source_goes_on_while_it_is_read(deed: str, *, begun: bool) -> None:
    added = 0
    for moment in range(1, 20):
        one, other = pair_in_memory()
        first, second = side(one), side(other, "secondary")
        histories.history(one, THREAD)
        if begun:
            copied_both_ways(first, second)
        histories.put(one, THREAD, 4, "0003")
        histories.write(one, THREAD, "0004", "older")
        come = in_store(second, second.store.copied, [THREAD])[THREAD].position if begun else NEVER
        known = in_store(first, first.store.positions, [THREAD])[THREAD]
        before = rows(first)[THREAD]
        found, steps = _read_in_steps(
            snapshots.read_entry_rows(first.store, THREAD, come), first, moment, partial(DEEDS[deed], one)
        )
        assert deed != "put" or isinstance(found, snapshots.EntryRows), "what is only added stops nobody"
        if isinstance(found, snapshots.EntryRows) and found.position == known:
            route = Route(first, second, THREAD, TERM)
            assert in_store(second, add_entry_rows, route, found, come) == "added"
            there = rows(second)[THREAD]
            # It equals the thread at that position, but for rows that are only ever added.
            assert there[1] == before[1]
            assert {key: there[2][key] for key in before[2]} == before[2]
            assert all(key[3] >= 0 for key in there[2].keys() - before[2].keys())
            added += 1
        copied_both_ways(first, second)
        assert rows(first) == rows(second)
        if steps < moment:
            break
    assert 1 < added < moment


def _read_in_steps(program: Program[T], of: Side, moment: int, deed: Callable[[], Any]) -> tuple[T, int]:
    """Run a program in a transaction for each step, and do something else after one of them. Returns how many."""

    def one(step: Any) -> Program[Any]:
        return (yield step)

    steps = 0
    try:
        step = next(program)
        while True:
            answer = in_store(of, one, step)
            steps += 1
            if steps == moment:
                deed()
            step = program.send(answer)
    except StopIteration as end:
        return end.value, steps
