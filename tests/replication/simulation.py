"""Rounds without servers or processes: clients in one thread take turns, on two databases in memory or two files.

A round begins with work, breaks something, goes on working, moves the writes if it is to, mends it, and looks at both
databases at each of these points. The seed chooses the calls; the clients' own threads act by themselves.
"""

import asyncio
import random
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from replication.actor import Actor, atake_step, take_step
from replication.checker import Found, Mode, missing
from replication.journal import Call, Journal, calls_of
from replication.links import Death, Killed, Link, linked
from replication.look import Look
from replication.world import World
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
CALM = ("none", "move")

CLIENTS = 3
STEPS = 10
LAG = 30


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

    def __init__(self, world: "Simulation", name: str, seed: str) -> None:
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


class Simulation(World):
    """Two databases, clients of the pair, and an operator, who has a separate client."""

    def __init__(self, plan: Plan, seed: int, folder: Path) -> None:
        self.plan = plan
        self.lines: list[str] = []
        self._chance = random.Random(f"{seed} {plan}")
        self._open = ExitStack()
        savers = [MemorySaver() if plan.kind == "memory" else SqliteSaver(folder / f"{side}.db") for side in "ab"]
        names = ("primary", "secondary")
        looks = [Look(name, self._open.enter_context(s)) for name, s in zip(names, savers, strict=True)]
        super().__init__(looks, plan.mode, max_lag=LAG, clients=CLIENTS, alone=True)
        self.operator = Client(self, "operator", str(seed))
        self.operated = self.operator.pair
        self.operated.setup()
        self.clients = [Client(self, f"client{number}", str(seed)) for number in range(CLIENTS)]
        self.begin()

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

    def work(self, rounds: int = STEPS) -> None:
        """Have every client take steps, in an order of chance."""
        for _ in range(rounds):
            for client in self._chance.sample(self.clients, len(self.clients)):
                client.step()

    def calls(self) -> list[Call]:
        """Return the calls of the clients so far, and their answers."""
        return calls_of(self.lines)

    def judge_now(self) -> dict[int, Found]:
        """Look at both sides in the middle of a round, when no client is at work."""
        found = super().judge_now()
        expectations, failovers = self.expectations(), self.failovers.noted
        if not failovers or self.both_know_the_term():
            since = failovers[-1].ended if failovers else 0.0
            self.objections += missing(found[self.active], expectations, since=since)
        return found

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


def hash_of(name: str) -> int:
    """A number that is the same in every process."""
    return sum(name.encode())
