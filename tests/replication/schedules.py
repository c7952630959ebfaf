"""Rounds of a simulation in which nothing happens by itself: the seed chooses the next task after each transaction.

Every client has two tasks: its work, and that of its pair's own thread. A task goes on by one transaction, or by
the answer to one. How often each is chosen changes all the time, so that one is left alone for long while others go on.
The same seed reproduces each finding.
"""

from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from pathlib import Path
from types import coroutine
from typing import Any, TypeVar

from replication.actor import atake_step
from replication.links import Link
from replication.simulation import LAG, Client, Plan, Simulation
from threadmark import Saver, ThreadmarkError
from threadmark.program import Pause, aplay
from threadmark.replication.driver import PairDriver
from threadmark.replication.pair import Pair, Settings
from threadmark.replication.steps import On, PairFlow, Side
from threadmark.types import ReplicatedSaver

T = TypeVar("T")

Task = Coroutine[None, None, object]

_NEVER = 3600.0
_TURNS = 40_000
"""The turns after which an expected event counts as missing."""
_ATTEMPTS = 50
_RARELY = 2.5
"""A task may be chosen so many powers of ten less often than another one."""
_LASTS = (20, 400)
"""For how many turns the tasks are chosen as often as before: at least, and at most."""
_ENDING = ("works", "is late")
"""How the names of those tasks end that come to an end by themselves."""
_LOOKS = 0.5
"""In this part of its rounds a pair's own task looks at both sides, and does not only copy."""


class ScheduledWorld(Simulation):
    """A simulation whose clients take turns at each transaction."""

    def __init__(self, plan: Plan, seed: int, folder: Path) -> None:
        self._tasks: dict[str, Task] = {}
        self._often: dict[str, float] = {}
        self._turns = self._until = 0
        self._steps: dict[str, int] = {}
        super().__init__(plan, seed, folder)
        for client in (self.operator, *self.clients):
            self._begin(f"{client.name} copies", self._copy(client))
        for client in self.clients:
            self._begin(f"{client.name} works", self._work(client))

    def pair(self, primary: Saver, secondary: Saver) -> ReplicatedSaver:
        """Open the pair once more, without its own thread. Turns take the place of time."""
        first = Side("primary", _store(primary), primary._driver)
        second = Side("secondary", _store(secondary), secondary._driver)
        settings = Settings(
            self.plan.mode,
            failover=self.plan.failover,
            max_lag=LAG,
            deadline=_NEVER,
            health_interval=1e-6,
            drain_timeout=0.01,
        )
        return ReplicatedSaver(_TurnDriver(Pair(first, second, settings)))

    def work(self, rounds: int = 5) -> None:
        """Go on until every client has taken so many steps more."""
        wanted = {client.name: self._steps.get(client.name, 0) + rounds for client in self.clients}
        self.wait_for(
            lambda: all(self._steps.get(name, 0) >= number for name, number in wanted.items()), "the clients to get on"
        )

    def come_late(self, link: Link) -> None:
        """Have the late writes of a way carried out, each at another moment."""
        self._begin(f"{id(link)} is late", self._come_late(link))

    def promote(self) -> None:
        """Move the writes to the other side, while the others go on."""
        side = 1 - self.active
        self.note_failover()
        self._begin("operator promotes", self._promote(side))
        self.wait_for(lambda: "operator promotes" not in self._tasks, "a promotion")
        self.note_failover()

    def wait_for(self, come: Callable[[], bool], what: str) -> None:
        """Go on until something is so, or object."""
        for _ in range(_TURNS):
            if come():
                return
            self._turn()
        self.objections.append(f"waited in vain for {what}")

    def judge_at_the_end(self, *, calm: bool) -> None:
        """Let the clients finish their work, and judge."""
        for client in self.clients:
            self._steps[client.name] = -1
        self.wait_for(lambda: not any(name.endswith(_ENDING) for name in self._tasks), "the clients to end")
        super().judge_at_the_end(calm=calm)

    def close(self) -> None:
        """End all tasks, then the clients."""
        for task in self._tasks.values():
            task.close()
        super().close()

    def _begin(self, name: str, task: Task) -> None:
        self._tasks[name] = task
        self._until = self._turns

    def _turn(self) -> None:
        """Have a task go on."""
        if self._turns >= self._until:
            self._often = {name: 10 ** self._chance.uniform(-_RARELY, 0) for name in self._tasks}
            self._until = self._turns + self._chance.randrange(*_LASTS)
        self._turns += 1
        (name,) = self._chance.choices(list(self._tasks), [self._often[name] for name in self._tasks])
        try:
            self._tasks[name].send(None)
        except StopIteration:
            del self._tasks[name]

    async def _work(self, client: Client) -> None:
        while self._steps.get(client.name, 0) >= 0:
            await atake_step(client.actor, client.pair)
            if self._steps.get(client.name, 0) >= 0:
                self._steps[client.name] = self._steps.get(client.name, 0) + 1
            await _turn_of_others()

    async def _copy(self, client: Client) -> None:
        driver = client.pair._pair
        while True:
            with suppress(ThreadmarkError):  # the next round may succeed
                await driver.aplay(driver._background._round(looks=self._chance.random() < _LOOKS))
            await _turn_of_others()

    async def _come_late(self, link: Link) -> None:
        while link.late:
            link.carry_out_late()
            await _turn_of_others()

    async def _promote(self, side: int) -> None:
        for _ in range(_ATTEMPTS):
            try:
                await self.operator.pair.apromote(self.looks[side].name, force=True)  # type: ignore[arg-type]  # a SideName
            except ThreadmarkError as error:
                problem = error
            else:
                return
        self.objections.append(f"promote failed: {type(problem).__name__}: {problem}")


class _TurnDriver(PairDriver):
    """Lets others have their turn before and after each transaction of a caller of the asyncio API."""

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


def _store(saver: Saver) -> Any:
    return saver._store
