"""Transactions of several steps: what was read must still hold at the end, and what is written is written at once.

Redis has no transactions that read and then write. So a transaction runs optimistically: what it reads of a thread
comes with the thread's epoch and its revision, which every change raises. What it changes in a thread that it has
locked is kept here, where later reads of the same transaction see it. At the end one script makes all changes, if both
are still the same; if not, the driver runs the program again.

A program that locks nothing needs none of that: each of its steps is atomic.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from secrets import token_bytes
from typing import TypeVar

from threadmark.errors import ThreadmarkError
from threadmark.program import Program, Step
from threadmark.store import Head
from threadmark_redis.columns import Head as Fields
from threadmark_redis.columns import is_live, pack
from threadmark_redis.keys import ThreadKeys
from threadmark_redis.steps import commands, run, script

T = TypeVar("T")

ATTEMPTS = 64
"""How often a driver runs a program before it gives up."""

_STRICT_ATTEMPTS = 16
"""In later attempts a program that only read may have seen rows that were added meanwhile."""

_COPIED = 2
"""A transaction on two threads may copy one into the other, so that both must be as they were read. One on more of them
treats each by itself."""

_NAME_BYTES = 8
"""By its name a commit that is sent again, because its reply was lost, is known to be made."""

COMMIT = script("commit", "thread")


class ChangedError(Exception):
    """A thread was changed while a transaction read it. The driver runs the program again, after a short pause."""


def state_of(epoch: bytes | None, revision: bytes | None) -> bytes:
    """Return what tells whether a thread was changed, as lua/commit.lua compares it."""
    return b"%b:%b" % (epoch or b"", revision or b"")


@dataclass(slots=True)
class Table:
    """The changes to one hash of a thread: the new value of each field, None for one that goes."""

    changes: dict[bytes, bytes | None] = field(default_factory=dict)


@dataclass(slots=True)
class Locked:
    """A thread that a transaction has read in order to change it."""

    thread_id: str
    keys: ThreadKeys
    state: bytes
    """Its epoch and its revision. The revision alone would not tell a thread that has expired and begun anew."""
    moment: int
    """The server's clock when it was locked."""
    stored: Fields
    head: dict[bytes, bytes]
    """The head as the transaction leaves it."""
    checkpoints: Table = field(default_factory=Table)
    writes: Table = field(default_factory=Table)
    segments: Table = field(default_factory=Table)
    is_torn: bool = False
    """Whether keys of it are missing: nothing can be read of it, but it can be dropped."""
    emptied: bool = False
    """Whether all that was stored goes first."""

    @property
    def is_changed(self) -> bool:
        """Whether there is anything to commit."""
        tables = (self.checkpoints, self.writes, self.segments)
        return self.emptied or self.head != self.stored or any(table.changes for table in tables)

    def set_head(self, fields: Mapping[bytes, bytes | None]) -> None:
        """Set fields of the head, and remove those that are None."""
        for name, value in fields.items():
            if value is None:
                self.head.pop(name, None)
            else:
                self.head[name] = value

    def empty(self) -> None:
        """Let everything go but the head."""
        self.emptied = True
        self.checkpoints, self.writes, self.segments = Table(), Table(), Table()

    def columns(self) -> bytes:
        """Return the changes as lua/commit.lua takes them: the state alone where there are none."""
        if not self.is_changed:
            return pack((self.state,))
        head: dict[bytes, bytes | None] = dict.fromkeys(self.stored)
        head.update(self.head)
        changed = {name: value for name, value in head.items() if self.stored.get(name) != value}
        members = {name: value for name, value in self.checkpoints.changes.items() if name[:1] != b"\xff"}
        return pack(
            (
                self.state,
                self.emptied,
                *_set_and_removed(changed),
                *_set_and_removed(self.checkpoints.changes),
                [name for name, value in members.items() if value is not None],
                [name for name, value in members.items() if value is None],
                *_set_and_removed(self.writes.changes),
                *_set_and_removed(self.segments.changes),
            )
        )


def _set_and_removed(changes: Mapping[bytes, bytes | None]) -> tuple[list[bytes], list[bytes]]:
    given = [part for name, value in changes.items() if value is not None for part in (name, value)]
    return given, [name for name, value in changes.items() if value is None]


@dataclass(slots=True)
class _Seen:
    """The epoch and the revision that a thread had when it was first read, and whether another one was seen since."""

    first: tuple[int, int]
    last: tuple[int, int]


@dataclass(slots=True)
class Work:
    """What a transaction knows and has changed."""

    locked: dict[str, Locked] = field(default_factory=dict)
    seen: dict[str, _Seen] = field(default_factory=dict)
    is_strict: bool = False
    """Whether rows that were added meanwhile matter, too."""
    is_late: bool = False
    """Whether this was tried so often that rows may have been added meanwhile."""
    counted: dict[str, list[Head]] = field(default_factory=dict)
    """The heads of threads, counted when what is recorded of them was read."""
    after: dict[str, Callable[[], Program[None]]] = field(default_factory=dict)
    """What is done for each thread when all is committed."""

    def see(self, thread_id: str, state: tuple[int, int]) -> None:
        """Note a thread's epoch and revision."""
        known = self.seen.get(thread_id)
        if known is None:
            self.seen[thread_id] = _Seen(state, state)
        elif known.last != state:
            known.last = state

    def expect_whole(self, *, strictly: bool) -> None:
        """Raise ChangedError if rows were removed between two reads of a thread, or `strictly` if anything changed."""
        for seen in self.seen.values():
            if seen.first[0] != seen.last[0] or (strictly and seen.first != seen.last):
                raise ChangedError


@dataclass(slots=True)
class AskWork(Step):
    """Is answered by the transaction itself: no driver sees it."""


def the_work() -> Program[Work]:
    """Return what the running transaction knows."""
    work: Work = yield AskWork()
    return work


def in_transaction(
    program: Callable[[], Program[T]], attempt: int = 0, *, grace: int, clustered: bool = False
) -> Program[T]:
    """Run a program as a transaction. Raises ChangedError where it is to be run again.

    `grace` is for how many milliseconds a thread that has expired stays. In a cluster every thread is committed for
    itself: first those that stay, so that a thread that is moved is never nowhere.
    """
    work = Work(is_late=attempt >= _STRICT_ATTEMPTS)
    try:
        result = yield from _played(program(), work)
    except ThreadmarkError:
        # It may have met half of what somebody else did.
        work.expect_whole(strictly=not work.is_late)
        yield from _expect_locked(work)
        raise
    work.expect_whole(strictly=work.is_strict and not work.is_late)
    yield from _commit(work, grace, clustered=clustered)
    for program_after in work.after.values():
        yield from program_after()
    return result


def _played(steps: Program[T], work: Work) -> Program[T]:
    try:
        step = next(steps)
        while True:
            if isinstance(step, AskWork):
                step = steps.send(work)
                continue
            try:
                answer = yield step
            except Exception as error:  # noqa: BLE001 - it may know what to do; if not, the error passes through
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # what a generator returns is untyped in StopIteration
    finally:
        steps.close()


def _expect_locked(work: Work) -> Program[None]:
    """Raise ChangedError unless every locked thread is as it was when it was locked."""
    threads = list(work.locked.values())
    states = yield from commands([(b"HMGET", each.keys.head, b"e", b"r") for each in threads])
    for each, (epoch, revision) in zip(threads, states, strict=True):
        if state_of(epoch, revision) != each.state:
            raise ChangedError


def _commit(work: Work, grace: int, *, clustered: bool) -> Program[None]:
    threads = list(work.locked.values())
    changed = [each for each in threads if each.is_changed]
    if not changed:
        return
    name = token_bytes(_NAME_BYTES)
    if len(threads) > _COPIED:
        threads = changed
    if not clustered:
        yield from _committed(name, threads, grace)
        return
    if len(threads) == _COPIED:
        yield from _expect_locked(work)
    for thread in sorted(changed, key=lambda each: not is_live(each.head)):
        yield from _committed(name, [thread], grace)
        if thread.thread_id in work.after:  # at once, because the next one may be refused
            yield from work.after.pop(thread.thread_id)()


def _committed(name: bytes, threads: Sequence[Locked], grace: int) -> Program[None]:
    keys = [key for thread in threads for key in thread.keys]
    done = yield from run(COMMIT, keys, [grace, name, *(thread.columns() for thread in threads)])
    if not done:
        raise ChangedError
