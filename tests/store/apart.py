"""Clients of one pair that put and remove items in turns, while sides cannot be reached and clients die.

A seed chooses the next client after each transaction, and the moments of closed ways, deaths and promotions.
"""

import random
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from types import coroutine
from typing import Any, NamedTuple, TypeVar

from langgraph.store.base import Op, PutOp

from replication.links import Link, Way, linked
from threadmark import MemorySaver, Saver, ThreadmarkError
from threadmark.program import Pause, Transaction, aplay
from threadmark.replication.driver import PairDriver
from threadmark.replication.model import Failover, OnSecondaryFailure, ReplicationMode
from threadmark.replication.pair import Pair, Settings
from threadmark.replication.playing import play_flow
from threadmark.replication.steps import On, PairFlow, Side
from threadmark.types import ReplicatedSaver
from threadmark_store import Store
from threadmark_store.pairs.tables import ask_side
from threadmark_store.shapes import ItemRow, Scope

T = TypeVar("T")

Key = tuple[str, str]
"""A namespace and a key."""

_NEVER = 3600.0
_CLIENTS = 3
_KEYS = 2
_TURNS = 20_000
_ATTEMPTS = 50


class Plan(NamedTuple):
    """A kind of round."""

    mode: ReplicationMode = "sync"
    on_secondary_failure: OnSecondaryFailure = "raise"
    failover: Failover = "manual"
    ways: tuple[Way, ...] = ("closed", "deaf")
    skew: int = 0
    """By how many microseconds the clocks of the clients differ at most."""


class Written(NamedTuple):
    """A put of a number, or a removal, None."""

    key: Key
    number: int | None
    outcome: list[str]
    """Empty while it goes on; then "done", the error, or "late" if an attempt may still be carried out."""


class Client:
    """A store over a separate pair, on ways that can be closed."""

    def __init__(self, world: "World", name: str) -> None:
        self.name = name
        self.skew = world.chance.randint(0, world.plan.skew)
        savers, links = zip(*(linked(saver) for saver in world.databases), strict=True)
        self.links: tuple[Link, ...] = links
        first, second = (_side(name, saver) for name, saver in zip(("primary", "secondary"), savers, strict=True))
        self.driver = _TurnDriver(Pair(first, second, world.settings))
        self.pair = ReplicatedSaver(self.driver)
        self.store = Store(self.pair)


class World:
    """The clients, and a list of their changes."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self.plan = plan
        self.chance = random.Random(seed)
        self.settings = Settings(
            plan.mode,
            plan.on_secondary_failure,
            plan.failover,
            deadline=_NEVER,
            health_interval=1e-6,
            max_failover_attempts=1000,
            drain_timeout=0.01,
        )
        self.databases: tuple[Saver, Saver] = (MemorySaver(), MemorySaver())
        self.written: list[Written] = []
        self.operator = Client(self, "operator")
        play_flow(self.operator.driver.status())  # makes the pair
        self.clients: list[Client] = []
        self._time = 10**15
        self._numbers = iter(range(10**9))
        self._tasks: dict[str, Coroutine[None, None, None]] = {}
        self._running = self.operator
        self._begin("operator copies", self._copy(self.operator))
        for number in range(_CLIENTS):
            self._add(f"{number}")

    def now(self) -> int:
        """The clock of the client that goes on."""
        self._time += 1000
        return self._time + self._running.skew

    def go_on(self, turns: int) -> None:
        """Let tasks go on, with faults between them."""
        often: dict[str, float] = {}
        for turn in range(turns):
            if turn % 50 == 0:
                often = {name: 10 ** self.chance.uniform(-2, 0) for name in self._tasks}
            if self.chance.random() < 0.01:
                self._happen()
            names = list(self._tasks)
            (name,) = self.chance.choices(names, [often.get(name, 1.0) for name in names])
            self._turn(name)

    def settle(self) -> None:
        """Open all ways, let every client end, and copy the waiting changes."""
        for client in (self.operator, *self.clients):
            for link in client.links:
                link.way = "open"
                while link.late:
                    self._running = client
                    link.carry_out_late()
        self._ends = True
        for _ in range(_TURNS):
            working = [name for name in self._tasks if not name.endswith("copies")]
            if not working and not self._waits():
                return
            self._turn(self.chance.choice(list(self._tasks)))
        raise AssertionError("the clients do not come to an end, or something is copied forth and back")

    def rows(self) -> list[list[ItemRow]]:
        """All items of both databases."""
        found = []
        for side in self.operator.driver.pair.sides:
            transaction = Transaction(ask_side, (side, "items", "in_key_order", Scope(), None, 10_000))
            found.append(side.driver.run(transaction))
        return found

    def close(self) -> None:
        """End all tasks."""
        for task in self._tasks.values():
            task.close()

    _ends = False

    def _waits(self) -> bool:
        return any(side.driver.run(Transaction(side.store.waiting)).entries for side in self.operator.driver.pair.sides)

    def _add(self, name: str) -> None:
        client = Client(self, name)
        self.clients.append(client)
        self._begin(f"{name} works", self._work(client))
        self._begin(f"{name} copies", self._copy(client))

    def _begin(self, name: str, task: Coroutine[None, None, None]) -> None:
        self._tasks[name] = task

    def _turn(self, name: str) -> None:
        self._running = next((each for each in self.clients if each.name == name.split(maxsplit=1)[0]), self.operator)
        try:
            self._tasks[name].send(None)
        except StopIteration:
            del self._tasks[name]

    def _happen(self) -> None:
        client = self.chance.choice(self.clients)
        match self.chance.choice(("way", "way", "open", "late", "promote", "death")):
            case "way":
                self.chance.choice(client.links).way = self.chance.choice(self.plan.ways)
            case "open":
                for each in self.clients:
                    each.links[0].way = each.links[1].way = "open"
            case "late":
                link = self.chance.choice(client.links)
                if link.late:
                    self._running = client
                    link.carry_out_late()
            case "promote" if "operator promotes" not in self._tasks:
                self._begin("operator promotes", self._promote())
            case "death":
                self.clients.remove(client)
                for kind in ("works", "copies"):
                    self._tasks.pop(f"{client.name} {kind}").close()
                if not any(link.late for link in client.links):
                    self._add(f"{client.name}'")
                else:  # its late writes come, all the same
                    self.clients.append(client)
                    self._begin(f"{client.name} works", self._work(client))
                    self._begin(f"{client.name} copies", self._copy(client))

    async def _work(self, client: Client) -> None:
        while not self._ends:
            written = self._chosen(client.name)
            self.written += written
            ops: list[Op] = [
                PutOp((each.key[0],), each.key[1], None if each.number is None else {"n": each.number})
                for each in written
            ]
            try:
                await client.store.abatch(ops)
            except ThreadmarkError as error:
                outcome = str(error)
            else:
                outcome = "late" if any(link.late for link in client.links) else "done"
            for each in written:
                each.outcome.append(outcome)
            await _turn_of_others()

    def _chosen(self, name: str) -> list[Written]:
        """One or two changes, of the client's own items or of those that all share."""
        keys = [(f"of {name[0]}", str(number)) for number in range(_KEYS)] + [("shared", "0")]
        some = self.chance.sample(keys, self.chance.choice((1, 1, 2)))
        return [Written(key, next(self._numbers) if self.chance.random() < 0.6 else None, []) for key in some]

    async def _copy(self, client: Client) -> None:
        while True:
            with suppress(ThreadmarkError):
                await client.driver.aplay(client.driver._background._round(looks=self.chance.random() < 0.5))
            await _turn_of_others()

    async def _promote(self) -> None:
        for _ in range(_ATTEMPTS):
            with suppress(ThreadmarkError):
                await self.operator.pair.apromote(force=True)
                return


class _TurnDriver(PairDriver):
    """Lets others have their turn before and after each transaction."""

    async def aplay(self, flow: PairFlow[T]) -> T:
        return await aplay(flow, self._answer)

    async def _answer(self, asked: On | Pause) -> Any:
        await _turn_of_others()
        if isinstance(asked, Pause):
            return None
        answer = asked.side.driver.run(asked.transaction)
        await _turn_of_others()
        return answer

    def _begin(self) -> None:
        """No thread is begun: a task does its work."""


@coroutine
def _turn_of_others() -> Generator[None, None, None]:
    yield


def _side(name: Any, saver: Saver) -> Side:
    store: Any = saver._store
    return Side(name, store, saver._driver)


def lost(world: World, number_of: Callable[[ItemRow], int]) -> list[str]:
    """Return a line for each item of one client that is older than the last acknowledged change.

    Changes that raised an error may have been made. On ways on which they may come late, so they may then.
    """
    found = {(row.key.namespace, row.key.key): number_of(row) for row in world.rows()[0]}
    lines = []
    for key in {each.key for each in world.written if each.key[0] != "shared"}:
        mine = [each for each in world.written if each.key == key]
        last = max((place for place, each in enumerate(mine) if each.outcome == ["done"]), default=-1)
        possible = [each.number for each in mine[max(last, 0) :]] + ([None] if last < 0 else [])
        if "late" in world.plan.ways:
            possible += [each.number for each in mine if each.outcome != ["done"]]
        if found.get(key) not in possible:
            lines.append(f"{key} is {found.get(key)}, and should be one of {possible}")
    return lines
