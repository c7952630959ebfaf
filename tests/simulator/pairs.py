"""A world with a pair: two databases, processes that share the pair, and an operator, under the faults of a plan.

The workers, and the checker of both sides, are those of the rounds with real servers (tests/replication).
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from replication.actor import Actor, atake_step
from replication.checker import Found, Mode, missing
from replication.journal import Call, Did, Journal, Told, calls_of
from replication.look import Look
from replication.world import World
from simulator.clocks import HERE, Machine, SimulatedLoop
from simulator.database import Database, SimulatedStore
from simulator.history import NOW, History
from simulator.met import Met
from simulator.network import Link, Process, SimulatedDriver
from simulator.pair_items import PairItems
from simulator.plan import OF_CLOCKS, OF_WAYS, Fault, Plan
from threadmark import Saver, ThreadmarkError
from threadmark.replication import ReplicatedSaver
from threadmark.replication.driver import PairDriver
from threadmark.replication.pair import Pair, Settings
from threadmark.replication.steps import Side

T = TypeVar("T")

LAG = 30
_DEADLINE, _TIMEOUT = 0.5, 0.15
_PATIENCE = 300.0
"""Seconds of simulated time after which something that must come has not come."""
_AWAY, _SET = 0.5, 30.0
_NAMES = ("primary", "secondary")


class _Late:
    """Notes whether a request of a call was on its way when the call was over."""

    is_late = False


class _Journal(Journal):
    """Notes calls by the clock of the world, which is right."""

    def __init__(self, worker: str, write: Callable[[str], object], outside: Machine) -> None:
        super().__init__(worker, write)
        self._outside = outside
        self._parents: dict[int, bool] = {}

    def begin(self, did: Did, **what: Any) -> int:
        NOW.set(_Late())  # type: ignore[arg-type]  # it has what a driver notes
        number = self._on_time(lambda: super(_Journal, self).begin(did, **what))
        self._parents[number] = did == "put_writes" or bool(what.get("parent"))
        return number

    def end(self, number: int, told: Told, answer: str, **what: Any) -> None:
        if NOW.get().is_late and told == "acknowledged" and not self._parents[number]:
            told, answer = "raised", f"TransientStoreError: it may be carried out again, after {answer}"
        self._on_time(lambda: super(_Journal, self).end(number, told, answer, **what))

    def _on_time(self, call: Callable[[], T]) -> T:
        token = HERE.set(self._outside)
        try:
            return call()
        finally:
            HERE.reset(token)


class _Worker:
    """A client: an actor, each step of which has its own seed."""

    def __init__(self, world: "PairWorld", number: int) -> None:
        self.name = f"client{number}"
        self._items = world.items if world.plan.topic == "items" else None
        self._left = [each for each in world.plan.operations if each.client == number]
        self._pace = world.plan.pace
        self._journal = _Journal(self.name, world.lines.append, world.outside)
        self._actor = Actor(str(world.plan.seed), self._journal, ("shared.0",), deletions=world.plan.seed % 5)

    @property
    def is_done(self) -> bool:
        return not self._left

    async def work(self, pair: ReplicatedSaver) -> None:
        while self._left:
            operation = self._left.pop(0)
            self._actor._chance = chance = random.Random(operation.seed)
            await asyncio.sleep(chance.expovariate(self._pace))
            if self._items and chance.random() < _OF_ITEMS:
                await self._items.change(operation.number, self.name, chance, pair)
            else:
                await atake_step(self._actor, pair)


_OF_ITEMS = 0.6
"""This part of the operations in a world of items is on items."""


class _Operated:
    """The operator's pair, called by the judge while nothing else happens."""

    def __init__(self, world: "PairWorld", pair: ReplicatedSaver) -> None:
        self._world, self._pair = world, pair

    def drain(self, within: float) -> int:
        return self._world.run(self._pair.adrain(within))

    def reconcile(self, *, both_ways: bool) -> object:
        self._world.judge_items()  # before that mends a change that was not copied
        return self._world.run(self._pair.areconcile(both_ways=both_ways))


class _QuietDriver(PairDriver):
    """Begins no thread: a task of the process does its work."""

    def _begin(self) -> None:
        pass


class PairWorld(World):
    """Two databases, and the processes that use them as a pair."""

    def __init__(self, plan: Plan, loop: SimulatedLoop, outside: Machine) -> None:
        self.plan = plan
        self.loop = loop
        self.outside = outside
        self.met = Met()
        self.lines: list[str] = []
        self._history = History(loop.time)
        self.items = PairItems(self.met, self._history)
        self._drivers: list[_QuietDriver] = []
        self._lives: dict[str, int] = {}
        self.databases = [
            Database(isolation, Machine(name, loop, self._chance(name)), self.met)
            for name, isolation in zip(_NAMES, (plan.isolation, plan.other), strict=True)
        ]
        looks = [Look(name, self._look(database)) for name, database in zip(_NAMES, self.databases, strict=True)]
        mode: Mode = "async" if plan.mode == "async" else "sync"
        super().__init__(looks, mode, max_lag=LAG, clients=plan.clients, alone=True)
        self.workers = [_Worker(self, number) for number in range(plan.clients)]
        self.operator = self._started("operator")
        self._operators = self._opened(self.operator)
        self.operated = _Operated(self, self._operators)  # type: ignore[assignment]  # it has what the judge calls
        self.run(self._operators.asetup())
        self.begin()
        for database in self.databases:
            database.on_pair = self._on_pair
        self.processes = [self._started(f"process {number}") for number in range(plan.processes)]

    def calls(self) -> list[Call]:
        """Return the calls of the clients so far, and their answers."""
        return calls_of(self.lines)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something of the operator's to its end, while all else goes on."""
        return self.loop.run_until_complete(work)

    def live(self) -> None:
        """Let everything happen, until all clients are done."""
        self._copy(self.operator, self._operators)
        for number in range(self.plan.processes):
            self._work(number)
        faults = [self.loop.create_task(self._happen(fault)) for fault in self.plan.faults]
        for moment in self.plan.looks:
            self.wait_for(partial(self._is_past, moment), "time to pass")
            self.judge_now()
        self.wait_for(self._is_done, "the clients to end")
        for fault in faults:
            fault.cancel()
        for database in self.databases:
            database.start()
        self.loop.run_until_complete(asyncio.sleep(10.0))  # whatever is late has come by then

    def judge_now(self) -> dict[int, Found]:
        """Look at both sides at one moment, while calls are under way."""
        found, failovers = super().judge_now(), self.failovers.noted
        if not failovers or self.both_know_the_term():
            since = failovers[-1].ended if failovers else 0.0
            self.objections += missing(found[self.active], self.expectations(), since=since)
        return found

    def judged(self) -> list[str]:
        """Return the objections to the contents of both sides."""
        if not self.objections:
            self.judge_at_the_end(calm=not self.plan.faults)
            self.judge_items()
        if self._has_wrong_clocks:
            # A pruning spares the calls of subgraphs that are too new by its clock to be known as settled.
            return [each for each in self.objections if "still has" not in each or "pruning" not in each]
        return self.objections

    def judge_items(self) -> None:
        """Look at the items of both sides, after all is copied."""
        self.objections += self.items.objections(self._operators._pair.pair.sides, clocks=self._has_wrong_clocks)

    def end(self) -> None:
        """Stop everything."""
        for process in (*self.processes, self.operator):
            process.kill()
        for driver in self._drivers:
            driver.finish()

    def trace(self) -> list[str]:
        """Return all calls and their answers."""
        return [str(call) for call in (*self.calls(), *self._history.calls)]

    def wait_for(self, come: Callable[[], bool], what: str) -> None:
        """Let time pass until something has come, or object."""
        until = self.loop.now + _PATIENCE
        while not come():
            if self.loop.now > until:
                self.objections.append(f"waited in vain for {what}")
                return
            self.loop.run_until_complete(asyncio.sleep(0.05))
            self.note_failover()

    @property
    def _has_wrong_clocks(self) -> bool:
        return any(fault.kind in OF_CLOCKS for fault in self.plan.faults)

    def _is_past(self, moment: float) -> bool:
        return self.loop.now >= moment

    def _is_done(self) -> bool:
        return all(worker.is_done for worker in self.workers) and not any(each.clients for each in self.processes)

    def _on_pair(self) -> None:
        token, before = HERE.set(self.outside), len(self.failovers.noted)
        self.note_failover()
        if len(self.failovers.noted) > before:
            self.met.note("the writes of a pair moved")
        HERE.reset(token)

    def _chance(self, name: str) -> random.Random:
        return random.Random(f"{self.plan.seed} {name}")

    def _look(self, database: Database) -> Saver:
        process = Process("judge", self.outside, self.met)
        return Saver(SimulatedStore(), SimulatedDriver(Link(process, random.Random(0), local=True), database))

    def _started(self, name: str) -> Process:
        self._lives[name] = self._lives.get(name, 0) + 1
        name = f"{name}.{self._lives[name]}"
        return Process(name, Machine(name, self.loop, self._chance(name)), self.met)

    def _opened(self, process: Process) -> ReplicatedSaver:
        sides: list[Side] = []
        for name, database in zip(_NAMES, self.databases, strict=True):
            local = database.isolation == "sqlite"
            process.links[name] = link = Link(process, self._chance(f"{process.name} {name}"), local=local)
            sides.append(Side(name, SimulatedStore(), SimulatedDriver(link, database, timeout=_TIMEOUT)))  # type: ignore[arg-type]  # a SideName
        settings = Settings(
            self.mode,
            failover="automatic" if self.plan.automatic else "manual",
            max_lag=LAG,
            deadline=_DEADLINE,
            health_interval=self.plan.interval,
            drain_timeout=1.0,
        )
        driver = _QuietDriver(Pair(sides[0], sides[1], settings))
        self._drivers.append(driver)
        return ReplicatedSaver(driver)

    def _work(self, number: int) -> None:
        process = self.processes[number]
        pair = self._opened(process)
        self._copy(process, pair)
        for worker in self.workers[number :: self.plan.processes]:
            process.begin(worker.work(pair))

    def _copy(self, process: Process, pair: ReplicatedSaver) -> None:
        process.begin(self._copied(process, pair), for_ever=True)

    async def _copied(self, process: Process, pair: ReplicatedSaver) -> None:
        driver, chance = pair._pair, self._chance(f"{process.name} copies")
        looked = 0.0
        while True:
            looks = self.loop.now >= looked + self.plan.interval
            looked = self.loop.now if looks else looked
            with suppress(ThreadmarkError):  # the next round may succeed
                await driver.aplay(driver._background._round(looks=looks))
            await asyncio.sleep(chance.uniform(0.01, 2 * min(self.plan.interval, 1.0)))

    async def _happen(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at)
        self.met.note(fault.kind)
        process, until = self.processes[fault.process], self.loop.now + fault.lasts
        side = int(fault.amount > 0)
        if fault.kind == "pause a process":
            process.paused_until = until
        elif fault.kind == "stop a process":
            process.kill()
            await asyncio.sleep(fault.lasts)
            if self.processes[fault.process] is process:
                self.processes[fault.process] = self._started(f"process {fault.process}")
                self._work(fault.process)
        elif fault.kind in OF_WAYS:
            for each in (*self.processes, self.operator) if abs(fault.amount) > _ALL else (process,):
                setattr(each.links[_NAMES[side]], OF_WAYS[fault.kind], until)
        elif fault.kind == "restart a server":
            self.databases[side].stop(power_cut=False)
            await asyncio.sleep(min(fault.lasts, _AWAY))
            self.databases[side].start()
        elif fault.kind == "promote a side":
            with suppress(ThreadmarkError):
                await asyncio.wait_for(self._operators.apromote(_NAMES[side], force=True), _PATIENCE)  # type: ignore[arg-type]  # a SideName
        elif fault.kind in OF_CLOCKS:
            machine = self.databases[side].machine if fault.kind == "set a server's clock" else process.machine
            machine.offset += fault.amount * _SET


_ALL = 0.5
"""A fault of a way with a greater amount is one of all ways to the side: the side is away."""
