"""Chaos rounds: workers in separate processes use a pair of real databases, one of which is broken.

A round starts workers, breaks a side (or kills workers), moves the writes to the other side if that is the test's
part, looks at once at the side that took over, mends the fault, has everything copied, and compares both
sides with the workers' answers and with each other. Each round has separate threads; the databases stay.
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from replication.checker import Mode
from replication.gates import Ways
from replication.journal import Call, calls_of, ended_by_themselves
from replication.look import Look
from replication.rounds import CALM, OF_SERVERS, Outcome, Plan
from replication.servers import Server, open_side
from replication.workers import Task, Workers, is_running, open_pair
from replication.world import LONG, World
from threadmark import StoreError
from threadmark.replication.model import SideName

LAG = 20
DEADLINE = 1.0
NAMES = ("primary", "secondary")
WORKERS = ("blocking", "asyncio", "blocking")
_FALLING_BEHIND = 0.7
PUTS = 4
"""So many calls each worker has done before something happens, and afterwards."""


class Chaos:
    """A pair of databases, and all that is needed to break it."""

    def __init__(self, servers: tuple[Server, Server], mode: Mode, folder: Path, workers: Workers) -> None:
        self.mode = mode
        self._servers = servers
        self._folder = folder
        self._workers = workers
        self._open = ExitStack()
        self._urls = [server.new(folder) for server in servers]
        direct = [url(server.port) for url, server in zip(self._urls, servers, strict=True)]
        savers = [self._open.enter_context(open_side(url)) for url in direct]
        self.looks = [Look(name, saver) for name, saver in zip(NAMES, savers, strict=True)]
        self._ways = [Ways(self._open, server.port, folder, len(WORKERS) + 1) for server in servers]
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def round(self, plan: Plan, seed: int) -> Outcome:
        """Play one round."""
        self._number += 1
        began = time.monotonic()
        played = _Round(self, plan, f"{self._number}", random.Random(f"{seed} {plan}"))
        played.play()
        calls = played.calls()
        told = [call.told for call in calls if call.did not in ("get", "mistake")]
        return Outcome(
            plan,
            told.count("acknowledged"),
            told.count("raised"),
            told.count("unknown"),
            len(played.failovers.noted),
            played.missing,
            played.lag,
            played.objections,
            time.monotonic() - began,
        )


class _Round(World):
    def __init__(self, chaos: Chaos, plan: Plan, name: str, chance: random.Random) -> None:
        super().__init__(chaos.looks, chaos.mode, max_lag=LAG, clients=len(WORKERS), alone=False)
        self._chaos = chaos
        self._plan = plan
        self._name = name
        self._chance = chance
        self._running: dict[str, int] = {}
        self._journals: list[Path] = []
        self.operated = open_pair(*self._reached_by(len(WORKERS)), self._options())
        self.wait_for(self._is_set_up, "the pair to be set up")
        self.begin()

    def play(self) -> None:
        term = self.term
        try:
            for number, api in enumerate(WORKERS):
                self._start(number, api)
            self._get_on()
            self._break_something()
            self._get_on()
        finally:
            self._stop()
        self.judge_at_the_end(calm=self._plan.fault in CALM)
        if self._plan.fault == "none" and self.term != term:
            self.objections.append("the term was raised though both sides were well")
        self.operated.close()

    def calls(self) -> list[Call]:
        """Return the calls of the workers so far, and their answers."""
        return calls_of(self._lines())

    def _start(self, number: int, api: str) -> None:
        name = f"{self._name}.{number}.{len(self._journals)}"
        self._journals.append(self._chaos._folder / f"journal {name}")
        self._journals[-1].touch()
        sides, ways = self._reached_by(number)
        shared = (f"{self._name}.shared",)
        task = Task(name, name, api, sides, ways, str(self._journals[-1]), shared, self._options())
        self._running[name] = self._chaos._workers.start(task)

    def _reached_by(self, client: int) -> tuple[tuple[str, str], tuple[str, str]]:
        ways = self._chaos._ways
        first, second = (url(way.port(client)) for url, way in zip(self._chaos._urls, ways, strict=True))
        return (first, second), (ways[0].note(client), ways[1].note(client))

    def _options(self) -> dict[str, Any]:
        return {
            "mode": self._chaos.mode,
            "failover": self._plan.failover,
            "max_lag": LAG,
            "deadline": LONG if self._plan.fault in CALM else DEADLINE,  # a busy machine is no fault
            "health_interval": 0.1,
            "drain_timeout": 0.5,
        }

    def _break_something(self) -> None:
        plan, active = self._plan, self.active
        side = active if plan.victim == "active" else 1 - active
        if plan.fault in OF_SERVERS and not self._chaos._servers[side].port:
            self._plan = plan = plan._replace(fault="closed")
        if plan.fault == "move":
            self._promote(1 - active)
        elif plan.fault == "lag":
            self._fall_behind(active)
        elif plan.fault == "workers":
            for name in list(self._running)[1:]:
                os.kill(self._running.pop(name), signal.SIGKILL)
            self.judge_now()
            for number in range(1, len(WORKERS)):
                self._start(number, WORKERS[number])
        elif plan.fault != "none":
            with self._broken(side):
                time.sleep(self._chance.uniform(0, 0.2))
                if side == active:
                    self._move_to(1 - side)
                self.judge_now()
                time.sleep(self._chance.uniform(0.1, 0.5))

    def _fall_behind(self, active: int) -> None:
        """Cut off the standby until no call is acknowledged any more, then the active side instead."""
        for client in range(len(WORKERS) + 1):
            self._chaos._ways[1 - active].set(client, "closed")
        time.sleep(_FALLING_BEHIND)
        self.judge_now()
        for client in range(len(WORKERS) + 1):
            self._chaos._ways[active].set(client, "closed")
            self._chaos._ways[1 - active].set(client, "open")
        self._move_to(1 - active)
        self.judge_now()
        for client in range(len(WORKERS) + 1):
            self._chaos._ways[active].set(client, "open")

    @contextmanager
    def _broken(self, side: int) -> Iterator[None]:
        server, fault = self._chaos._servers[side], self._plan.fault
        if fault in ("kill", "pause"):
            self.note_failover()
            self.down.add(side)
            stop, go_on = (server.kill, server.start) if fault == "kill" else (server.suspend, server.resume)
            stop()
            try:
                yield
            finally:
                go_on()
                self.down.clear()
        elif fault == "restart":
            server.restart()
            yield
        else:
            with self._cut_off(side):
                yield

    @contextmanager
    def _cut_off(self, side: int) -> Iterator[None]:
        fault = self._plan.fault
        lonely = 0 if fault == "split" else None
        for client in range(len(WORKERS) + 1):
            cut, way = (1 - side if client == lonely else side), ("closed" if fault == "split" else fault)
            self._chaos._ways[cut].set(client, way)  # type: ignore[arg-type]  # these faults are ways
        try:
            yield
        finally:
            for ways in self._chaos._ways:
                for client in range(len(WORKERS) + 1):
                    ways.set(client, "open")

    def _move_to(self, side: int) -> None:
        if self._plan.fault == "restart":  # it is back already
            return
        if self._plan.failover == "manual":
            self._promote(side)
            return
        self.wait_for(lambda: self.active_among([side]) == side, "a client to promote the other side by itself")
        self.note_failover()

    def _promote(self, side: int) -> None:
        self.note_failover()
        self.wait_for(lambda: self._is_promoted("secondary" if side else "primary"), "a promotion")
        self.note_failover()

    def _is_promoted(self, name: SideName) -> bool:
        """Promote a side. A machine that is busy may miss a deadline, so this may take several attempts."""
        try:
            self.operated.promote(name, force=True)
        except StoreError:
            return False
        return True

    def _is_set_up(self) -> bool:
        """Make the tables, which on a busy machine may miss a deadline."""
        try:
            self.operated.setup()
        except StoreError:
            return False
        return True

    def _get_on(self) -> None:
        """Wait until every worker has done some more."""
        wanted = {path: len(_lines_of(path)) + 2 * PUTS for path in self._journals if path.name[8:] in self._running}
        self.wait_for(
            lambda: all(len(_lines_of(path)) >= number for path, number in wanted.items()), "the workers to get on"
        )

    def _stop(self) -> None:
        for process in self._running.values():
            with suppress(ProcessLookupError):  # it failed; its journal has no last line, or another file tells why
                os.kill(process, signal.SIGTERM)
        self.wait_for(lambda: not any(map(is_running, self._running.values())), "the workers to end")
        for name in self._running.keys() - ended_by_themselves(self._lines()):
            errors = self._chaos._folder / f"journal {name}.error"
            self.objections.append(f"worker {name} failed: {errors.read_text() if errors.exists() else 'no word'}")

    def _lines(self) -> list[str]:
        return [line for path in self._journals for line in _lines_of(path)]


def _lines_of(path: Path) -> list[str]:
    """The whole lines: a worker may be writing the last one right now, or was killed while it did."""
    whole, _, _ = path.read_text().rpartition("\n")
    return whole.splitlines()
