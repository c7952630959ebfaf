"""A world: a database, processes with clients, and the faults of a plan, from its beginning to the judgement."""

import asyncio
import random
from collections.abc import Iterable

from replication.actor import text_of
from simulator import deltas
from simulator.charges import CLAIM_TTLS, Charging, Service
from simulator.charges import objections as objections_to_charges
from simulator.clients import Client, is_unfinished, seen
from simulator.clocks import Host, Machine, SimulatedLoop
from simulator.database import Database, SimulatedStore
from simulator.deltas import DeltaClient
from simulator.history import History, Seen
from simulator.items import TOGETHER, Items, ItemsClient
from simulator.met import Met
from simulator.model import OF_OWNERS, Circumstances, Model
from simulator.network import Link, Process, SimulatedCache, SimulatedDriver, SimulatedSaver
from simulator.plan import OF_WAYS, Fault, Plan
from threadmark import CorruptDataError, Keyring, MemoryCache, Saver
from threadmark.caching import cached
from threadmark.saver.context import SaverOptions

LONGEST = 3600.0
"""Seconds of simulated time after which a world must have come to its end."""
_AWAY = 0.5
"""For so long a process or a server is away after it stopped, at least."""
_OWNERS = ("ada", "bob")
_KEYS = {"older": b"o" * 32, "newer": b"n" * 32}
_LONG_AWAY = 6.0
"""Faults that last for longer in all may keep a process from renewing the claim of a call in time."""
_SET = 30.0
"""By so many seconds a clock is set, at most."""


class World:
    """One database, and the processes that use it."""

    def __init__(self, plan: Plan, loop: SimulatedLoop) -> None:
        self.plan = plan
        self.loop = loop
        self.met = Met()
        self.history = History(loop.time)
        machine = Machine("server", loop, self._chance("server"))
        self.database = Database(plan.isolation, machine, self.met, syncs=plan.syncs)
        self.cache = MemoryCache()
        self.service = Service(self.met)
        self._hosts = [Host("a"), Host("a" if plan.isolation == "sqlite" else "b")]
        self._claim_ttl = CLAIM_TTLS[plan.seed % len(CLAIM_TTLS)]
        self._items = Items(self.met)
        kind = {"charges": Charging, "items": ItemsClient, "deltas": DeltaClient, "checkpoints": Client}[plan.topic]
        self.clients = [
            kind(
                f"client {number}",
                [op for op in plan.operations if op.client == number],
                plan.pace,
                self.history,
                _OWNERS[number % 2] if plan.is_owned else "",
            )
            for number in range(plan.clients)
        ]
        self._lives = [0] * plan.processes
        self.processes = [self._started(number) for number in range(plan.processes)]

    def live(self) -> None:
        """Let everything happen, until all clients are done."""
        self.loop.run_until_complete(asyncio.wait_for(self._live(), LONGEST))

    async def _live(self) -> None:
        for number in range(self.plan.processes):
            self._work(number)
        faults = [self.loop.create_task(self._happen(fault)) for fault in self.plan.faults]
        if not self.plan.syncs:
            faults.append(self.loop.create_task(self._sync_at_times()))
        while not self._is_done():  # noqa: ASYNC110 - a process that comes back has new tasks
            await asyncio.sleep(0.1)
        for fault in faults:
            fault.cancel()
        await asyncio.sleep(10.0)  # whatever is late has come by then
        self.database.start()

    def _is_done(self) -> bool:
        return all(client.is_done for client in self.clients) and not any(each.tasks for each in self.processes)

    def judged(self) -> list[str]:
        """Return the objections of the model, and of the saver's own verification."""
        circumstances = Circumstances(bool(self.plan.faults), self.plan.has_wrong_clocks, self.database.losses)
        model = Model(self.history, circumstances)
        process = self._started(0)
        saver = Saver(SimulatedStore(), self._driver(process), **self._options(process))
        objections: list[str] = []
        found = {thread: self._found(saver, thread, objections) for thread in model.threads()}
        for problem in (verified := saver.verify(decode=True)).problems + verified.unreadable:
            objections.append(f"verify: {problem}")
        away = sum(fault.lasts for fault in self.plan.faults)
        strict = not self.plan.faults or (away < _LONG_AWAY and self._claim_ttl == max(CLAIM_TTLS))
        objections += objections_to_charges(self.service, self.history.calls, saver, strict=strict)
        objections += deltas.objections(saver, found.get(deltas.LOG, []), self.met)
        objections += self._in_clear()
        if not self.plan.has_wrong_clocks:  # a thread with a lease that seems to go on is not unfinished
            objections += self._unfinished(saver, found)
        refused = sum(call.error.partition(":")[0] in OF_OWNERS for call in self.history.calls)
        self.met.counts["a thread of another owner was refused"] += refused
        together = found.get(TOGETHER, [])
        objections += self._items.objections(self.history, saver, together, clocks=self.plan.has_wrong_clocks)
        if self.met.counts["a deadlock had a victim"]:
            objections.append("transactions waited for each other in a circle")
        return objections + model.objections(found)

    def end(self) -> None:
        """Stop everything."""
        for process in self.processes:
            process.kill()

    def trace(self) -> list[str]:
        """Return all calls and their answers."""
        return [str(call) for call in self.history.calls]

    def _found(self, saver: Saver, thread: str, objections: list[str]) -> list[Seen]:
        found: list[Seen] = []
        try:
            found.extend(
                seen(thread, item)
                for item in saver.list({"configurable": {"thread_id": thread}})
                if item.metadata.get("source") != "effect"
            )
        except CorruptDataError as error:
            objections.append(f"{thread}: {error}")
        return found

    def _chance(self, name: str) -> random.Random:
        return random.Random(f"{self.plan.seed} {name}")

    def _started(self, number: int) -> Process:
        self._lives[number] += 1
        name = f"process {number}.{self._lives[number]}"
        machine = Machine(name, self.loop, self._chance(name), self._hosts[number % 2])
        machine.begin(number)
        machine.offset = self._chance(f"{name} skew").uniform(-1, 1) * self.plan.skew
        return Process(name, machine, self.met)

    def _driver(self, process: Process) -> SimulatedDriver:
        local = self.plan.isolation == "sqlite"
        return SimulatedDriver(self._way(process, "database", local=local), self.database)

    def _way(self, process: Process, to: str, *, local: bool) -> Link:
        process.links[to] = link = Link(process, self._chance(f"{process.name} {to}"), local=local)
        return link

    def _opened(self, process: Process) -> Saver:
        saver = SimulatedSaver(SimulatedStore(), self._driver(process), **self._options(process))
        if not self.plan.is_cached:
            return saver
        return cached(saver, SimulatedCache(self.cache, self._way(process, "cache", local=False)), name="database")

    def _options(self, process: Process) -> SaverOptions:
        """Return the options of a saver. Later lives of a process seal with a newer key, and open both."""
        if not self.plan.is_sealed:
            return {}
        newest = min(int(process.name.rpartition(".")[2]) - 1, 1)
        return {"keyring": Keyring(_KEYS, list(_KEYS)[newest], digest_secret=bytes(32), source="the simulator")}

    def _in_clear(self) -> Iterable[str]:
        """Object to texts that a sealed database shows. None of them is in another row by chance."""
        if self.plan.is_sealed:
            self.met.note("a database was sealed")
            threads = [vars(thread) for thread in self.database.contents.threads.values()]
            rows = repr((threads, self.database.contents.others))
            for call in self.history.calls:
                for seed in call.seeds:
                    if text_of(seed) in rows:
                        yield f"the sealed database shows a text of {call}"

    def _unfinished(self, saver: Saver, found: dict[str, list[Seen]]) -> Iterable[str]:
        """Object to threads that are listed as unfinished and have ended, and to those that are not listed."""
        newest = {name: next((each for each in there if not each.ns), None) for name, there in found.items()}
        wanted = {name for name, each in newest.items() if each and is_unfinished(each.seeds)}
        listed = {thread.id for thread in saver.unfinished(idle_for=0, limit=1000).threads}
        self.met.counts.update(
            {"a thread was unfinished": len(wanted), "a thread had ended": len(newest) - len(wanted)}
        )
        for name in sorted(wanted ^ listed):
            yield f"thread {name!r} is{'' if name in listed else ' not'} listed as unfinished, after {newest.get(name)}"

    def _work(self, number: int) -> None:
        process = self.processes[number]
        saver = self._opened(process)
        for client in self.clients[number :: self.plan.processes]:
            if isinstance(client, DeltaClient):
                client.met = self.met
            if isinstance(client, Charging):
                client.service, client.claim_ttl = self.service, self._claim_ttl
                client.link = self._way(process, "service", local=False)
            if isinstance(client, ItemsClient):
                client.items = self._items
            process.begin(client.work(saver))

    async def _sync_at_times(self) -> None:
        chance = self._chance("disk")
        while True:
            await asyncio.sleep(chance.expovariate(1.0))
            self.database.sync()

    async def _happen(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at)
        self.met.note(fault.kind)
        process = self.processes[fault.process]
        until = self.loop.now + fault.lasts
        links = list(process.links.values())
        if fault.kind == "pause a process":
            process.paused_until = until
        elif fault.kind == "stop a process":
            process.kill()
            await self._come_back([fault.process], fault.lasts)
        elif fault.kind in OF_WAYS:
            for link in links:
                setattr(link, OF_WAYS[fault.kind], until)
        elif fault.kind in ("restart a server", "cut the power"):
            await self._restart(fault)
        elif fault.kind == "set a process's clock":
            process.machine.offset += fault.amount * _SET
        elif fault.kind == "set a server's clock":
            self.database.machine.offset += fault.amount * _SET
        elif fault.kind == "let clocks drift":
            for machine in (process.machine, self.database.machine):
                machine.drift(1.0 + fault.amount / 5)
        else:
            self.cache.close()

    async def _restart(self, fault: Fault) -> None:
        self.database.stop(power_cut=fault.kind == "cut the power")
        if self.plan.isolation == "sqlite":  # the power of all processes, too
            for process in self.processes:
                process.kill()
            self.database.start()
            await self._come_back(range(self.plan.processes), fault.lasts)
        else:
            await asyncio.sleep(min(fault.lasts, _AWAY))
            self.database.start()

    async def _come_back(self, numbers: "range | list[int]", lasts: float) -> None:
        before = {number: self.processes[number] for number in numbers}
        await asyncio.sleep(lasts)
        for number, process in before.items():
            if self.processes[number] is process:  # it has not come back for another reason
                self.processes[number] = self._started(number)
                self._work(number)
