"""The clients' side: processes that stop and pause, and drivers and a cache at the other end of a bad network.

A driver here is like those of servers: a transaction whose connection is lost runs again, even if its
commit may have been carried out, until its time is over.
"""

import asyncio
import random
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextvars import copy_context
from functools import partial
from typing import Any, NoReturn, TypeVar

from simulator.clocks import HERE, Machine, SimulatedLoop
from simulator.database import Database, ServerError, Session
from simulator.history import NOW
from simulator.met import Met
from threadmark import MemoryCache, Saver, ThreadmarkError, TransientStoreError
from threadmark.caching.cache import CacheRequest, Filling, Got
from threadmark.program import Attempts, Program, Step, Transaction
from threadmark.transactions import HeldTransaction

T = TypeVar("T")

TIMEOUT = 4.0
"""The seconds for which a driver tries a transaction again."""


class LostError(Exception):
    """A message was lost, and with it the connection."""


class Process:
    """A process that can be stopped for good, or for a while."""

    def __init__(self, name: str, machine: Machine, met: Met) -> None:
        self.name = name
        self.machine = machine
        self.met = met
        self.is_dead = False
        self.paused_until = 0.0
        self.tasks: set[asyncio.Task[Any]] = set()
        self.clients: set[asyncio.Task[Any]] = set()
        """Those of its tasks that come to an end by themselves."""
        self.links: dict[str, Link] = {}

    @property
    def loop(self) -> SimulatedLoop:
        """The world's event loop."""
        return self.machine.loop

    def begin(self, work: Coroutine[Any, Any, Any], *, for_ever: bool = False) -> None:
        """Run a task until the process ends."""
        context = copy_context()
        context.run(HERE.set, self.machine)
        task = self.loop.create_task(work, context=context)
        for tasks in (self.tasks,) if for_ever else (self.tasks, self.clients):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    def kill(self) -> None:
        """End it at once. Whatever its code does from now on reaches no server."""
        self.is_dead = True
        self.machine.host.processes.pop(self.machine.holder.process, None)
        for task in list(self.tasks):
            task.cancel()

    async def awake(self) -> None:
        """Wait while the process is paused. Raises CancelledError in one that was killed."""
        while self.paused_until > self.loop.now:  # noqa: ASYNC110 - it may be paused again
            await asyncio.sleep(self.paused_until - self.loop.now)
        if self.is_dead:
            raise asyncio.CancelledError


class Link:
    """The way from one process to one server."""

    def __init__(self, process: Process, chance: random.Random, *, local: bool) -> None:
        self.process = process
        self.chance = chance
        self.local = local
        """Whether it is no network: the server is a part of the process."""
        self.loses_until = self.slow_until = self.cut_until = self.silent_until = 0.0
        self._sent = self._arrived = 0

    @property
    def loses(self) -> bool:
        """Whether messages are being lost."""
        return self._is_on(self.loses_until)

    async def travel(self) -> None:
        """Wait until a message has come to the other end."""
        process, loop = self.process, self.process.loop
        if process.is_dead:
            raise asyncio.CancelledError
        if self._is_on(self.cut_until):
            process.met.note("a way was cut")
            raise LostError("the way is cut")
        self._sent += 1
        number = self._sent
        seconds = self.chance.expovariate(20_000.0 if self.local else 1_000.0)
        if self._is_on(self.slow_until) and self.chance.random() < _SLOW:
            process.met.note("a message was delayed")
            seconds += self.chance.uniform(0.05, 1.5)
        await asyncio.sleep(seconds)
        while self._is_on(self.silent_until):
            process.met.note("a server was silent")
            await asyncio.sleep(self.silent_until - loop.now)
        if number < self._arrived:
            process.met.note("a message was overtaken")
        self._arrived = max(number, self._arrived)

    async def back(self) -> None:
        """Wait until an answer has come, and the process can use it."""
        await self.travel()
        if self.loses and self.chance.random() < _LOST:
            self.process.met.note("an answer was lost")
            raise LostError("no answer came")
        await self.process.awake()

    def _is_on(self, until: float) -> bool:
        return not self.local and self.process.loop.now < until


_SLOW, _LOST, _LATE = 0.4, 0.15, 0.5


class SimulatedDriver:
    """Runs transactions on a simulated server."""

    def __init__(self, link: Link, database: Database, *, timeout: float = TIMEOUT) -> None:
        self.link = link
        self.database = database
        self.may_hang = not link.local
        self._timeout = timeout

    def __str__(self) -> str:
        return str(self.database)

    def run(self, transaction: Transaction[T]) -> T:
        """Look at the database at this moment. Only the judge calls this."""
        assert not transaction.writes, "clients use the API for asyncio"
        result: T = self.database.run_alone(transaction.begin())
        return result

    async def arun(self, transaction: Transaction[T]) -> T:
        """Run the program in one transaction and return its result."""
        attempts = Attempts(self._timeout)
        while True:
            await self.link.process.awake()
            try:
                result: T = await self._attempt(transaction)
            except (ServerError, LostError) as error:
                if attempts.left <= 0:
                    raise TransientStoreError(f"{self} could not be used for {self._timeout:g} s: {error}") from error
                self.link.process.met.note("a transaction was tried again")
            else:
                return result
            await asyncio.sleep(max(attempts._longer_wait(), 0.001))

    def close(self) -> None:
        """There is nothing to close."""

    async def aclose(self) -> None:
        """There is nothing to close."""

    async def _attempt(self, transaction: Transaction[Any]) -> Any:
        await self._there(_nothing)
        session = self.database.connect()
        try:
            await session.begin(writes=transaction.writes)
            return await self._played(session, transaction.begin(), writes=transaction.writes)
        finally:
            if session.is_late:
                self.link.process.met.note("a request came late")
            else:
                session.end()

    async def _played(self, session: Session, program: Program[Any], *, writes: bool) -> Any:
        try:
            result = await self._steps(session, program, writes=writes)
        except ThreadmarkError:
            session.expect_whole()
            raise
        await self._commit(session)
        return result

    async def _steps(self, session: Session, program: Program[Any], *, writes: bool) -> Any:
        try:
            step = next(program)
            while True:
                try:
                    await self._there(partial(self._execute_late, session, step) if writes else _nothing)
                    answer = await session.execute(step)
                    await self.link.back()
                except Exception as error:  # noqa: BLE001 - the program may handle it; if not, it passes through
                    step = program.throw(error)
                else:
                    step = program.send(answer)
        except StopIteration as stop:
            return stop.value
        finally:
            program.close()

    async def _commit(self, session: Session) -> None:
        try:
            await self._there(lambda: self._commit_late(session))
        except asyncio.CancelledError:
            if self.link.chance.random() < _LATE and not self.link.local:
                self.link.process.met.note("a commit came from a process that was stopped")
                self._commit_late(session)
            raise
        session.commit()
        await self.link.back()

    async def _there(self, late: Callable[[], object]) -> None:
        """Have a request come to the server: or lose it, perhaps so that it comes later all the same."""
        await self.link.travel()
        if self.link.loses and self.link.chance.random() < _LOST:
            self.link.process.met.note("a request was lost")
            if self.link.chance.random() < _LATE:
                late()
            raise LostError("the request was lost")

    def _commit_late(self, session: Session) -> None:
        self._later(session, lambda: _committed(session))

    def _execute_late(self, session: Session, step: Step) -> None:
        if session.is_by_itself:
            if call := NOW.get(None):
                call.is_late = True
            self._later(session, lambda: _executed(session, step))

    def _later(self, session: Session, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        session.is_late = True
        seconds = self.link.chance.expovariate(1.0)

        async def later() -> None:
            await asyncio.sleep(seconds)
            await work()

        self.database.begin(later())


class SimulatedTransaction(SimulatedDriver):
    """A transaction over several calls. Nothing of it is tried again, as with servers."""

    _session: Session

    async def abegin(self) -> None:
        """Begin it."""
        self._session = self.database.connect()
        await self._safely(self._session.begin(writes=True))

    async def aend(self, *, commit: bool) -> None:
        """Commit it, or roll it back."""
        try:
            if commit:
                await self._safely(self._commit(self._session))
        finally:
            if not self._session.is_late:
                self._session.end()

    async def arun(self, transaction: Transaction[T]) -> T:
        """Run the program in a savepoint."""
        undo = self._session.savepoint()
        try:
            return await self._safely(self._steps(self._session, transaction.begin(), writes=True))
        except BaseException:
            undo()
            raise

    def begin(self) -> None:
        """Clients use the API for asyncio."""
        raise NotImplementedError

    def end(self, *, commit: bool) -> None:
        """Clients use the API for asyncio."""
        raise NotImplementedError

    async def _safely(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await work
        except (ServerError, LostError) as error:
            raise TransientStoreError(f"{self} has lost the transaction: {error}") from error


class SimulatedSaver(Saver):
    """A saver over a simulated database, which has transactions over several calls unless it is like Redis."""

    def _held_transaction(self) -> HeldTransaction:
        driver: Any = self._driver
        if driver.database.isolation == "redis":
            raise self._refusal()
        return SimulatedTransaction(driver.link, driver.database)


def _nothing() -> None:
    pass


async def _committed(session: Session) -> None:
    try:
        session.commit()
    except ServerError:
        pass  # its client heard long ago that it failed
    finally:
        session.end()


async def _executed(session: Session, step: Step) -> None:
    try:
        await session.execute(step)
    except Exception:  # noqa: BLE001, S110 - its client heard long ago that it failed
        pass
    finally:
        session.end()


class SimulatedCache:
    """A cache of several processes, which can be away, lose everything, or answer late."""

    def __init__(self, shared: MemoryCache, link: Link) -> None:
        self._shared = shared
        self._link = link

    def __str__(self) -> str:
        return "the simulated cache"

    async def aget(self, requests: Mapping[bytes, CacheRequest], ttl: float, within: float) -> dict[bytes, Got]:
        """Return the entries that these threads have."""
        return await self._in_time(lambda: self._shared.get(requests, ttl, within), within)

    async def aset(self, fillings: Mapping[bytes, Filling], within: float) -> None:
        """Add entries to threads."""
        await self._in_time(lambda: self._shared.set(fillings, within), within)

    async def aforget(self, thread_keys: Collection[bytes], within: float) -> None:
        """Remove all entries of these threads."""
        await self._in_time(lambda: self._shared.forget(thread_keys, within), within)

    def get(self, *_: object) -> NoReturn:
        """Clients use the API for asyncio."""
        raise NotImplementedError

    set = forget = get

    def close(self) -> None:
        """There is nothing to close."""

    async def aclose(self) -> None:
        """There is nothing to close."""

    async def _in_time(self, call: Callable[[], T], within: float) -> T:
        async def asked() -> T:
            await self._link.travel()
            answer = call()
            await self._link.back()
            return answer

        return await asyncio.wait_for(asked(), within)
