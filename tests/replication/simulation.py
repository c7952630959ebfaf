"""Rounds without servers or processes: clients in one thread take turns, on two databases in memory or two files.

A round begins with work, breaks something, goes on working, moves the writes if it is to, mends it, and looks at both
databases at each of these points. The seed chooses the calls; the clients' own threads act by themselves.
"""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from replication.actor import Actor, atake_step, take_step
from replication.checker import Expectations, Failovers, Found, Mode, altered, blamed, missing, returned
from replication.journal import Journal, calls_of
from replication.links import Death, Killed, Link, linked
from replication.look import Look, unequal
from threadmark import MemorySaver, Saver, ThreadmarkError
from threadmark.replication import ReplicatedSaver, replicated
from threadmark.replication.model import Failover as FailoverBy
from threadmark_sqlite import SqliteSaver

Kind = Literal["memory", "sqlite"]

Fault = Literal["none", "move", "active", "standby", "split", "deaf", "late", "death", "slow"]
"""The events of a round: nothing but mistakes of callers; the writes are moved while all is well; the active side, or
the other one, cannot be reached; one client sees only the active one, which the others do not see; commits whose answer
is lost; writes to the active side fail, and are carried out later; a client dies between two transactions; one
is stopped while it copies, and goes on later."""

FAULTS: tuple[Fault, ...] = get_args(Fault)

CLIENTS = 3
STEPS = 10
LAG = 30
LONG = 30.0
"""Seconds after which something that must come has not come."""


class Plan(NamedTuple):
    """A kind of round."""

    mode: Mode
    fault: Fault
    failover: FailoverBy = "manual"
    kind: Kind = "memory"
    interval: float = 0.02
    """Seconds between two looks of a client at both sides."""
    deletions: int = 1
    """How often a client deletes a thread, for ten checkpoints that it puts."""


class Client:
    """One of those that share the pair."""

    def __init__(self, world: "World", name: str, seed: str) -> None:
        links = [linked(world.looks[side].saver) for side in (0, 1)]
        self.name = name
        self.links = [link for _, link in links]
        self.death = Death(self.links)
        self.pair = world.pair(links[0][0], links[1][0])
        self.is_async = hash_of(name) % 2 == 1
        self._loop = asyncio.Runner()
        self.actor = Actor(seed, Journal(name, world.lines.append), ("shared.0",), deletions=world.plan.deletions)

    def step(self) -> None:
        """Do one thing."""
        if self.death.came:
            return
        try:
            if self.is_async:
                self._loop.run(atake_step(self.actor, self.pair))
            else:
                take_step(self.actor, self.pair)
        except Killed:
            pass

    def close(self) -> None:
        """End it."""
        if self.is_async:
            self._loop.run(self.pair.aclose())
        else:
            self.pair.close()
        self._loop.close()


class World:
    """Two databases, clients of the pair, and an operator, who has a separate client."""

    def __init__(self, plan: Plan, seed: int, folder: Path) -> None:
        self.plan = plan
        self.lines: list[str] = []
        self.objections: list[str] = []
        self._chance = random.Random(f"{seed} {plan}")
        self._open = ExitStack()
        savers = [MemorySaver() if plan.kind == "memory" else SqliteSaver(folder / f"{side}.db") for side in "ab"]
        self.looks = [
            Look(name, self._open.enter_context(s)) for name, s in zip(("primary", "secondary"), savers, strict=True)
        ]
        self.operator = Client(self, "operator", str(seed))
        self.operator.pair.setup()
        self.clients = [Client(self, f"client{number}", str(seed)) for number in range(CLIENTS)]
        self.failovers = Failovers(plan.mode, self.looks[0].replica().term)

    def pair(self, primary: Saver, secondary: Saver) -> ReplicatedSaver:
        """Open the pair once more."""
        return replicated(
            primary,
            secondary,
            mode=self.plan.mode,
            failover=self.plan.failover,
            max_lag=LAG,
            deadline=None,  # each transaction runs in the thread of its client, which can die in it
            health_interval=self.plan.interval,
            drain_timeout=0.01,
        )

    def close(self) -> None:
        """End all clients, then the databases."""
        for client in (*self.clients, self.operator):
            client.close()
        self._open.close()

    @property
    def active(self) -> int:
        """Which side takes the writes, as the side with the greater term says."""
        replicas = [look.replica() for look in self.looks]
        newest = max(replicas, key=lambda each: each.term)
        return 0 if '"active": "primary"' in newest.body or '"active":"primary"' in newest.body else 1

    def work(self, rounds: int = STEPS) -> None:
        """Have every client take steps, in an order of chance."""
        for _ in range(rounds):
            for client in self._chance.sample(self.clients, len(self.clients)):
                client.step()

    def note_failover(self) -> None:
        """Note whether the term was raised since this was last asked."""
        self.failovers.note([look.replica().term for look in self.looks])

    def expectations(self) -> Expectations:
        """The expectations by the answers so far."""
        self.note_failover()
        return Expectations(calls_of(self.lines), self.plan.mode, self.failovers.noted)

    def found(self, side: int) -> Found:
        """Read one side, and note its own faults."""
        expectations = self.expectations()
        threads = {}
        for thread_id in expectations.threads():
            threads[thread_id], wrong = self.looks[side].thread(thread_id)
            self.objections += wrong
            for (ns, checkpoint), parent in self.looks[side].orphans(thread_id):
                if not expectations.may_lack_parent((thread_id, ns, checkpoint, ""), parent):
                    self.objections.append(
                        f"{self.looks[side].name}: {thread_id}: {checkpoint} is there without its parent"
                    )
        self.objections += self.looks[side].problems()
        return Found(self.looks[side].name, threads)

    def judge_now(self) -> int:
        """Look at both sides in the middle of a round. Returns how much the active one lacks."""
        active, expectations = self.active, self.expectations()
        found = [self.found(0), self.found(1)]
        for side in (0, 1):
            self.objections += altered(found[side], expectations)
            if self.plan.mode == "sync":
                self.objections += missing(found[side], expectations) + returned(found[side], expectations)
        waiting = max(look.changes_waiting() for look in self.looks)
        if self.plan.mode == "async" and waiting > LAG + CLIENTS:
            self.objections.append(f"{waiting} changes wait, with a max_lag of {LAG}")
        lacking = missing(found[active], expectations)
        if len(lacking) > LAG + CLIENTS:
            self.objections.append(f"{len(lacking)} acknowledged changes are missing, with a max_lag of {LAG}")
        self.note_failover()
        failovers = self.failovers.noted
        if not failovers or self.both_know_the_term():
            since = failovers[-1].ended if failovers else 0.0
            self.objections += missing(found[active], expectations, since=since)
        return len(lacking)

    def both_know_the_term(self) -> bool:
        """Whether the same term is on both sides."""
        return self.looks[0].replica() == self.looks[1].replica()._replace(body=self.looks[0].replica().body)

    def judge_at_the_end(self) -> None:
        """Have everything copied, and compare both sides with the answers and with each other."""
        self.wait_for(self._is_copied, "everything to be copied")
        self.objections += [f"after the copying: {each}" for each in unequal(*self.looks)]
        self.operator.pair.reconcile(both_ways=True)
        self.objections += [f"after reconcile: {each}" for each in unequal(*self.looks)]
        expectations = self.expectations()
        for side in (0, 1):
            found = self.found(side)
            for rule in (missing, returned, altered):
                self.objections += rule(found, expectations)
        self.objections += blamed(expectations.calls, calm=self.plan.fault in ("none", "move"))

    def come_late(self, link: Link) -> None:
        """Have the late writes of a way carried out."""
        while link.late:
            link.carry_out_late()

    def promote(self) -> None:
        """Move the writes to the other side."""
        before = self.looks[self.active].replica().term
        side = 1 - self.active
        self.note_failover()
        try:
            self.operator.pair.promote(self.looks[side].name, force=True)  # type: ignore[arg-type]  # they are SideNames
        except ThreadmarkError as error:
            self.objections.append(f"promote failed: {type(error).__name__}: {error}")
        if self.looks[side].replica().term <= before:
            self.objections.append("promote did not raise the term")
        self.note_failover()

    def wait_for(self, come: Callable[[], bool], what: str) -> None:
        """Wait until something has come, or object."""
        until = time.monotonic() + LONG
        while not come():
            if time.monotonic() > until:
                self.objections.append(f"waited in vain for {what}")
                return
            time.sleep(0.005)

    def _is_copied(self) -> bool:
        try:
            self.operator.pair.drain(1.0)
        except ThreadmarkError:
            return False
        return not any(look.waiting().entries for look in self.looks) and self.both_know_the_term()


def hash_of(name: str) -> int:
    """A number that is the same in every process."""
    return sum(name.encode())
