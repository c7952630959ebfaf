"""A simulated database server: rows of the memory backend, with the isolation of another backend, and a disk.

The saver's own programs run here, step by step, and other transactions come between two steps as they do on a real
server:

* "sqlite": one transaction writes at a time, from its begin to its commit. A reader sees the moment of its begin.
* "postgres": read committed. Every statement sees all that is committed by then. A statement that changes a thread
  which another transaction has changed waits for that one to end, and then runs on its result. A circle of such waits
  is a deadlock, of which one is the victim. A transaction that only reads sees the moment of its begin.
* "redis": every step is atomic, is seen by all at once, and is not undone. A program that locks threads keeps its
  changes until its end, and is run again if one of them, or the epoch of one that it has read, has changed by then.

Committed threads are never changed: a transaction changes copies, which replace them.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, get_args

from simulator.clocks import HERE, Machine
from simulator.met import Met
from threadmark.memory import tables as memory_tables
from threadmark.memory.store import MemoryStore
from threadmark.memory.tables import Call, Tables, Thread
from threadmark.program import Program, Step
from threadmark.store.contract import Head

Isolation = Literal["sqlite", "postgres", "redis"]
ISOLATIONS: tuple[Isolation, ...] = get_args(Isolation)

_PAIR = "\0pair"

Name = str | tuple[str, Any]
"""The name of a row that is locked and replaced: a thread, the pair, or a table of another package with a key."""


class ServerError(Exception):
    """The transaction failed for a reason that passes: its driver tries again."""


@dataclass(slots=True)
class Lock(Step):
    """A thread that no other transaction may change until this one ends."""

    thread_id: str


@dataclass(slots=True)
class Twice(Call):
    """A call that a transaction makes twice, for two purposes. The backend of Redis reads for both at once."""

    key: object = None


class SimulatedStore(MemoryStore):
    """The programs of the memory backend. All that change a thread lock it first, but for `add`."""

    def lock(self, thread_id: str) -> Program[int | None]:
        """Like `epoch`, and no one else changes the thread until the transaction ends."""
        epoch: int | None = yield Lock(thread_id)
        return epoch

    def counted_heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        """Return the heads by counting. Those that are recorded are counted here, too."""
        call = next(super().counted_heads(thread_id, ns))
        assert isinstance(call, Call)
        heads: list[Head] = yield Twice(call.function, (thread_id, ns))
        return heads


def _locking(name: str) -> Callable[..., Program[Any]]:
    """Return a program of the memory backend that locks its thread first."""

    def program(self: SimulatedStore, first: Any, *args: Any) -> Program[Any]:
        yield Lock(first if isinstance(first, str) else first.thread_id)
        return (yield from getattr(super(SimulatedStore, self), name)(first, *args))

    return program


_LOCKING = (
    "copy_segments",
    "drop",
    "lock_lease",
    "record",
    "remove",
    "renew_lease",
    "replace",
    "rewrite",
    "set_copied",
    "set_lease",
    "set_thread",
)
for _name in _LOCKING:
    setattr(SimulatedStore, _name, _locking(_name))


def _copied(thread: Thread) -> Thread:
    made = Thread.__new__(Thread)
    made.state, made.deleted_up_to = dict(thread.state), thread.deleted_up_to
    made.checkpoints, made.heads = dict(thread.checkpoints), dict(thread.heads)
    made.writes = {key: dict(some) for key, some in thread.writes.items()}
    made.segments, made.outbox = dict(thread.segments), dict(thread.outbox)
    return made


class _Threads(dict[str, Thread]):
    """The threads that a statement sees. Each is copied when it is touched, and noted."""

    def __init__(self, base: dict[str, Thread], own: dict[str, Thread | None]) -> None:
        super().__init__(base)
        self.touched: dict[str, Thread] = {}
        for name, thread in own.items():
            if thread is None:
                self.pop(name, None)
            else:
                self[name] = self.touched[name] = thread

    def __getitem__(self, name: str) -> Thread:
        if name not in self.touched:
            thread = _copied(super().__getitem__(name))
            self[name] = self.touched[name] = thread
        return self.touched[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - this is `get`

    def values(self) -> Any:
        return [self[name] for name in self]

    def items(self) -> Any:
        return [(name, self[name]) for name in self]


class _Work(Tables):
    """The tables as one statement sees them, and the names of the rows that it changes."""

    def __init__(self, threads: dict[str, Thread], pair: dict[str, Any], others: dict[str, dict[Any, Any]]) -> None:
        super().__init__()
        self.threads = threads
        self.pair = pair
        self.others = others
        self.changed: dict[Name, None] = {}

    def set(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        self._note(table, key)
        if table is self.threads:  # past the copies
            before = dict.get(table, key)
            self._journal.append(lambda: dict.__setitem__(table, key, before) if before else dict.pop(table, key, None))
            dict.__setitem__(table, key, value)
            if isinstance(table, _Threads):
                table.touched[key] = value
        else:
            super().set(table, key, value)

    def unset(self, table: dict[Any, Any], key: Any) -> None:
        if key in table:
            self._note(table, key)
        super().unset(table, key)

    def _note(self, table: dict[Any, Any], key: Any) -> None:
        if table is self.pair:
            self.changed[_PAIR] = None
        elif table is self.threads:
            self.changed[key] = None
        elif others := [name for name, rows in self.others.items() if rows is table]:
            self.changed[others[0], key] = None
        else:
            assert isinstance(self.threads, _Threads)
            (name,) = [
                name for name, each in self.threads.touched.items() if any(table is part for part in _parts(each))
            ]
            self.changed[name] = None


def _parts(thread: Thread) -> Iterable[dict[Any, Any]]:
    of_one = thread.state, thread.checkpoints, thread.heads, thread.writes, thread.segments, thread.outbox
    return *of_one, *thread.writes.values()


class Contents:
    """All that is committed."""

    def __init__(self) -> None:
        self.threads: dict[str, Thread] = {}
        self.pair: dict[str, Any] = Tables().pair
        self.others: dict[str, dict[Any, Any]] = {}
        """The rows of other packages, in tables that are never changed, but replaced."""

    def copied(self) -> "Contents":
        """Return the same once more. Committed rows never change, so they are shared."""
        made = Contents()
        made.threads, made.pair, made.others = dict(self.threads), dict(self.pair), dict(self.others)
        return made

    def seen(self, own: dict[tuple[str, Any], Any]) -> dict[str, dict[Any, Any]]:
        """Return the rows of other packages with the changes of a transaction."""
        seen = {name: dict(rows) for name, rows in self.others.items()}
        for (name, key), row in own.items():
            _set(seen.setdefault(name, {}), key, row)
        return seen


def _set(rows: dict[Any, Any], key: Any, row: Any) -> None:
    if row is None:
        rows.pop(key, None)
    else:
        rows[key] = row


class Database:
    """One server with its disk."""

    def __init__(self, isolation: Isolation, machine: Machine, met: Met, *, syncs: bool = True) -> None:
        self.isolation = isolation
        self.machine = machine
        self.met = met
        self.syncs = syncs
        """Whether a commit is on the disk before it is answered."""
        self.is_up = True
        self.generation = 0
        """Grows with every restart, which ends all connections."""
        self.contents = Contents()
        self.on_pair: Callable[[], object] = lambda: None
        """Is called before and after a commit that changes who takes the writes of a pair."""
        self.losses: list[tuple[float, float]] = []
        """From which moment to which one commits were lost, by power cuts of a disk that had not synced them."""
        self._synced, self._synced_at = Contents(), 0.0
        self._locks: dict[Name, Session] = {}
        self._writer: Session | None = None
        self._ended = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def __str__(self) -> str:
        return f"the simulated {self.machine.name}"

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task of the server."""
        task = self.machine.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def connect(self) -> "Session":
        """Begin a transaction."""
        if not self.is_up:
            raise ServerError("the server is down")
        return Session(self)

    def sync(self) -> None:
        """Have everything on the disk."""
        self._synced, self._synced_at = self.contents.copied(), self.machine.loop.now

    def stop(self, *, power_cut: bool) -> None:
        """End all connections. A power cut loses the commits that were not synced."""
        self.is_up = False
        self.generation += 1
        self._locks.clear()
        self._writer = None
        self._wake()
        if power_cut and self._synced.threads != self.contents.threads:
            self.met.note("a disk lost what was not synced")
            if not self.syncs:
                self.losses.append((self._synced_at, self.machine.loop.now))
            self.contents = self._synced.copied()

    def start(self) -> None:
        """Take connections again."""
        self.is_up = True

    def committed(self) -> None:
        """A transaction is committed."""
        if self.syncs:
            self.sync()

    def run_alone(self, program: Program[Any]) -> Any:
        """Run a program at this moment, without others between its steps: to look, and to judge."""
        work = _Work(_Threads(self.contents.threads, {}), dict(self.contents.pair), self.contents.seen({}))
        answer: Any = None
        with self._own_clock():
            try:
                while True:
                    step = program.send(answer)
                    if isinstance(step, Lock):
                        thread = work.threads.get(step.thread_id)
                        answer = thread.epoch if thread and thread.live else None
                    else:
                        assert isinstance(step, Call)
                        answer = step.function(work)
            except StopIteration as stop:
                assert not work.changed, "only transactions of clients write"
                return stop.value

    async def others_end(self) -> None:
        """Wait until some transaction has ended."""
        await self._ended.wait()

    def _wake(self) -> None:
        self._ended.set()
        self._ended = asyncio.Event()

    @contextmanager
    def _own_clock(self) -> Iterator[None]:
        token = HERE.set(self.machine)
        clock = memory_tables.clock
        memory_tables.clock = lambda: int(self.machine.wall * 1e6)
        try:
            yield
        finally:
            memory_tables.clock = clock
            HERE.reset(token)


class Session:
    """A connection with one transaction."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._generation = database.generation
        self._own: dict[str, Thread | None] = {}
        """This transaction's copies of the threads that it has changed."""
        self._own_pair: dict[str, Any] | None = None
        self._own_others: dict[tuple[str, Any], Any] = {}
        """The rows of other packages that it has changed, None for those that it removed."""
        self._base: dict[Name, Thread | None] = {}
        """For Redis: the locked threads as they were then."""
        self._read: dict[str, Thread] = {}
        """For Redis: each thread as it was read first."""
        self._twice: dict[object, Any] = {}
        self._snapshot: Contents | None = None
        self._waits_for: Session | None = None
        self.is_over = False
        self.is_late = False
        """Whether a request of it is still on its way, although its client has given it up."""

    @property
    def is_by_itself(self) -> bool:
        """Whether the next step needs nothing else of its transaction: it is a script."""
        return self._db.isolation == "redis" and not self._base

    async def begin(self, *, writes: bool) -> None:
        """Begin, after the one that writes now if only one may."""
        if self._db.isolation == "redis":
            return
        if writes and self._db.isolation == "sqlite":
            while self._db._writer is not None:
                self._db.met.note("a writer waited for another one")
                await self._db.others_end()
                self._expect_connected()
            self._db._writer = self
        elif not writes:
            self._snapshot = self._db.contents.copied()

    async def execute(self, step: Step) -> Any:
        """Execute one statement, after waiting for those that have changed the same rows."""
        while True:
            self._expect_connected()
            if isinstance(step, Twice) and step.key in self._twice:
                return self._twice.pop(step.key)
            work, answer = self._tried(step)
            if self._db.isolation == "redis":
                return self._executed_on_redis(step, work, answer)
            names = {*work.changed, *([step.thread_id] if isinstance(step, Lock) else [])}
            holder = next(
                (held for name in sorted(names, key=str) if (held := self._db._locks.get(name, self)) is not self), None
            )
            if holder is None:
                break
            work.roll_back()
            await self._wait_for(holder)
        self._db._locks.update(dict.fromkeys(names, self))
        self._keep(work)
        return answer

    def commit(self) -> None:
        """Make all changes at once. Raises ServerError if it must be run again."""
        self._expect_connected()
        if self._db.isolation == "redis":
            self._expect_unchanged()
        if self._own or self._own_others or self._own_pair is not None:
            self._publish()
        self.end()

    def savepoint(self) -> Callable[[], None]:
        """Return a function that undoes the changes that come after this. Locks stay."""
        own = {name: thread and _copied(thread) for name, thread in self._own.items()}
        pair, others = self._own_pair, dict(self._own_others)

        def undo() -> None:
            self._own, self._own_pair, self._own_others = own, pair, others

        return undo

    def end(self) -> None:
        """End the transaction. Changes that are not committed are undone."""
        if not self.is_over:
            self.is_over = True
            if self._generation == self._db.generation:
                for name in [name for name, holder in self._db._locks.items() if holder is self]:
                    del self._db._locks[name]
                if self._db._writer is self:
                    self._db._writer = None
            self._db._wake()

    def _tried(self, step: Step) -> tuple[_Work, Any]:
        contents = self._snapshot or self._db.contents
        pair = dict(contents.pair if self._own_pair is None else self._own_pair)
        work = _Work(_Threads(contents.threads, self._own), pair, contents.seen(self._own_others))
        with self._db._own_clock():
            if isinstance(step, Lock):
                thread = work.threads.get(step.thread_id)
                return work, thread.epoch if thread and thread.live else None
            assert isinstance(step, Call)
            try:
                return work, step.function(work)
            except BaseException:
                work.roll_back()
                raise

    def _keep(self, work: _Work) -> None:
        for name in work.changed:
            if isinstance(name, tuple):
                self._own_others[name] = work.others[name[0]].get(name[1])
            elif name == _PAIR:
                self._own_pair = work.pair
            else:
                self._own[name] = dict.get(work.threads, name)

    def _executed_on_redis(self, step: Step, work: _Work, answer: Any) -> Any:
        contents = self._db.contents
        assert isinstance(work.threads, _Threads)
        for name in [name for name in work.threads.touched if name in contents.threads]:
            thread = contents.threads[name]
            if self._read.setdefault(name, thread).epoch != thread.epoch:
                self._run_again("rows were removed while they were read")
        if isinstance(step, Lock):
            self._base.setdefault(step.thread_id, contents.threads.get(step.thread_id))
        elif work.changed and self._base:
            for changed in work.changed:
                self._base.setdefault(changed, contents.threads.get(changed) if isinstance(changed, str) else None)
        if isinstance(step, Twice):
            self._twice[step.key] = answer
        self._keep(work)
        if work.changed and not self._base:  # a script by itself
            self._publish()
            self._read = {name: contents.threads[name] for name in self._read if name in contents.threads}
        return answer

    def expect_whole(self) -> None:
        """Raise ServerError if a program that failed has read half of another one's change."""
        threads = self._db.contents.threads
        if self._db.isolation == "redis" and any(threads.get(name) is not each for name, each in self._read.items()):
            self._run_again("a thread was changed while it was read")

    def _expect_unchanged(self) -> None:
        threads = self._db.contents.threads
        changed = [
            name
            for name, thread in self._base.items()
            if isinstance(name, str) and name != _PAIR and threads.get(name) is not thread
        ]
        removed = [name for name, each in self._read.items() if name in threads and threads[name].epoch != each.epoch]
        if changed or removed:
            self._run_again("a thread was changed meanwhile")

    def _run_again(self, why: str) -> NoReturn:
        self._db.met.note("a transaction of Redis was run again")
        raise ServerError(why)

    def _publish(self) -> None:
        contents, moves = self._db.contents, self._own_pair is not None
        if moves:
            self._db.on_pair()
        for name, thread in self._own.items():
            if thread is None:
                contents.threads.pop(name, None)
            else:
                contents.threads[name] = thread
        if self._own_pair is not None:
            contents.pair = self._own_pair
        for (table, key), row in self._own_others.items():
            contents.others[table] = dict(contents.others.get(table, {}))
            _set(contents.others[table], key, row)
        self._own, self._own_pair, self._own_others = {}, None, {}
        if moves:
            self._db.on_pair()
        self._db.committed()

    async def _wait_for(self, holder: "Session") -> None:
        seen: Session | None = holder
        while seen is not None:
            if seen is self:
                self._db.met.note("a deadlock had a victim")
                raise ServerError("deadlock detected")
            seen = seen._waits_for
        self._db.met.note("a statement waited for a lock")
        self._waits_for = holder
        try:
            while not holder.is_over and self._generation == self._db.generation:
                await self._db.others_end()
        finally:
            self._waits_for = None

    def _expect_connected(self) -> None:
        if self.is_over or self._generation != self._db.generation or not self._db.is_up:
            raise ServerError("the connection was lost")
