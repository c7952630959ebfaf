"""Transactions of several steps: data that was read must still hold at the end, and all changes are made at once.

Redis has no transactions that read and then write. So a transaction runs optimistically: each read of a thread includes
the thread's epoch and its revision, which every change raises. Changes to a thread that the transaction has locked are
kept here, so that its later reads see them. At the end one script makes all changes if epoch and revision are still the
same; if not, the driver runs the program again.

A program that locks nothing needs none of that, because each of its steps is atomic.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from secrets import token_bytes
from typing import Any, Literal, TypeVar

from threadmark.backends import Head, Program, StaleTermError, Step, ThreadmarkError, relay
from threadmark_redis.announcing import announce
from threadmark_redis.columns import is_live
from threadmark_redis.locked import Locked
from threadmark_redis.steps import Command, commands, run, script

T = TypeVar("T")

HeadKind = Literal["recorded", "counted"]

ATTEMPTS = 64
"""How often a driver runs a program before it gives up."""

_STRICT_ATTEMPTS = 16
"""After these attempts a program that only reads may have seen rows that were added while it ran."""

_HELD_ATTEMPTS = 8
"""From this attempt on, additions wait for a transaction that has read the thread."""

_HOLD, _LONGEST_HOLD = 200_000, 2_000_000
"""Microseconds for which additions wait then, at most. They double with each attempt: a large thread may take longer to
read, and grows between attempts."""

_COPIED = 2
"""A transaction on two threads may copy one to the other, so both must be unchanged. With more, each is separate."""

_NAME_BYTES = 8
"""A commit has a name, by which it is recognized if it is sent again because its reply was lost."""

COMMIT = script("commit", "thread", "outbox")


class ChangedError(Exception):
    """A thread was changed while a transaction read it. The driver runs the program again after a short pause."""


def state_of(epoch: bytes | None, revision: bytes | None) -> bytes:
    """Return the state that reveals a change of the thread, as lua/commit.lua compares it."""
    return b"%b:%b" % (epoch or b"", revision or b"")


@dataclass(slots=True)
class _Seen:
    """The thread's epoch and revision when it was first read, and whether others were seen since."""

    first: tuple[int, int]
    last: tuple[int, int]
    position: int | None
    """The thread's position when it was first read, None if that is unknown."""
    is_announced: bool = False
    """Whether the program has asked for the position."""


@dataclass(slots=True)
class Work:
    """The knowledge and the changes of a transaction."""

    locked: dict[str, Locked] = field(default_factory=dict)
    seen: dict[str, _Seen] = field(default_factory=dict)
    is_strict: bool = False
    """Whether rows that were added since the first read matter, too."""
    is_late: bool = False
    """Whether the program was tried so often that rows may have been added while it ran."""
    hold: int = 0
    """For how many microseconds others wait with additions, which kept interrupting the program. Mostly not at all."""
    heads: dict[tuple[str | None, HeadKind], list[Head]] = field(default_factory=dict)
    """The heads of a thread (None: of all) that were read together with those of the other kind, and not used yet."""
    after: dict[str | None, Callable[[], Program[None]]] = field(default_factory=dict)
    """The actions for each thread after the commit, and one that is about none (None)."""
    at_end: list[Callable[[], Program[None]]] = field(default_factory=list)
    """The actions that come last, after those of `after`."""
    proofs: list[dict[Command, Any]] = field(default_factory=list)
    """For every read of other data than threads, commands with their replies: all must be the same at the end."""
    kept: dict[Any, Any] = field(default_factory=dict)
    """Whatever such reads keep for later ones of the transaction."""
    term: int | None = None
    """The database's term as the transaction has read it: nothing is committed under a greater one."""

    def see(self, thread_id: str, state: tuple[int, int], position: int | None = None) -> None:
        """Note a thread's epoch and revision, and its position with them."""
        known = self.seen.get(thread_id)
        if known is None:
            self.seen[thread_id] = _Seen(state, state, position)
        elif known.last != state:
            known.last = state

    def expect_whole(self, *, strictly: bool) -> None:
        """Raise ChangedError if rows were removed between two reads of a thread, or `strictly` if anything changed."""
        for seen in self.seen.values():
            if seen.first[0] != seen.last[0] or (strictly and seen.first != seen.last):
                raise ChangedError


@dataclass(slots=True)
class AskWork(Step):
    """A step that the transaction itself answers: no driver sees it."""


def the_work() -> Program[Work]:
    """Return the `Work` of the running transaction."""
    work: Work = yield AskWork()
    return work


def in_transaction(
    program: Callable[[], Program[T]], attempt: int = 0, *, grace: int, clustered: bool = False
) -> Program[T]:
    """Run a program as a transaction. Raises ChangedError if it must be run again.

    `grace` is the number of milliseconds for which an expired thread stays. In a cluster every thread is committed by
    itself, those that stay first, so that a thread that is moved always exists.
    """
    work = Work(is_late=attempt >= _STRICT_ATTEMPTS, hold=_hold(attempt))
    try:
        result = yield from _played(program(), work)
    except ThreadmarkError:
        # It may have seen half of another client's change.
        work.expect_whole(strictly=not work.is_late)
        yield from _expect_locked(work)
        raise
    work.expect_whole(strictly=work.is_strict and not work.is_late)
    yield from expect_proven(work)
    if clustered and not (yield from _announced(work)):
        raise ChangedError
    yield from _commit(work, grace, clustered=clustered)
    for program_after in (*work.after.values(), *work.at_end):
        yield from program_after()
    if clustered and not (yield from _announced(work)):
        raise StaleTermError
    return result


def _hold(attempt: int) -> int:
    """Return for how many microseconds additions wait for this attempt."""
    return min(_HOLD * 2 ** (attempt - _HELD_ATTEMPTS), _LONGEST_HOLD) if attempt >= _HELD_ATTEMPTS else 0


def _played(steps: Program[T], work: Work) -> Program[T]:
    def answer(step: Step) -> Program[Any]:
        return work if isinstance(step, AskWork) else (yield step)

    return relay(steps, answer)


def _expect_locked(work: Work) -> Program[None]:
    """Raise ChangedError unless every locked thread is as it was when it was locked."""
    threads = list(work.locked.values())
    states = yield from commands([(b"HMGET", each.keys.head, b"e", b"r") for each in threads])
    for each, (epoch, revision) in zip(threads, states, strict=True):
        if state_of(epoch, revision) != each.state:
            raise ChangedError


def expect_proven(work: Work) -> Program[None]:
    """Raise ChangedError if reads of other data than threads do not show one moment. One read proves itself."""
    if len(work.proofs) > 1 and not work.is_late:
        proofs: dict[Command, Any] = {}
        for each in work.proofs:
            if any(proofs.setdefault(command, reply) != reply for command, reply in each.items()):
                raise ChangedError
        if (yield from commands(list(proofs))) != list(proofs.values()):
            raise ChangedError


def _announced(work: Work) -> Program[bool]:
    """Name the threads whose outbox changes. Returns whether the term is still the one that was read."""
    changed = [each for each in work.locked.values() if each.is_changed]
    recorded = [each.thread_id for each in changed if each.entries]
    if not recorded and (work.term is None or not changed):
        return True
    return (yield from announce(changed[0].replica_keys, work.term, recorded))


def _commit(work: Work, grace: int, *, clustered: bool) -> Program[None]:
    threads = list(work.locked.values())
    changed = [each for each in threads if each.is_changed]
    if not changed:
        return
    name = token_bytes(_NAME_BYTES)
    if len(threads) > _COPIED:
        threads = changed
    if not clustered:
        yield from _committed(name, threads, grace, work.term, clustered=False)
        return
    if len(threads) == _COPIED:
        yield from _expect_locked(work)
    for thread in sorted(changed, key=lambda each: not is_live(each.head)):
        yield from _committed(name, [thread], grace, None, clustered=True)
        if thread.thread_id in work.after:  # now, because the next commit may be refused
            yield from work.after.pop(thread.thread_id)()


def _committed(
    name: bytes, threads: Sequence[Locked], grace: int, term: int | None, *, clustered: bool
) -> Program[None]:
    keys = [key for thread in threads for key in (*thread.keys, thread.replica_keys.outbox)]
    keys += [] if clustered else [threads[0].replica_keys.term, threads[0].replica_keys.pending]
    term_bytes = b"" if term is None else term
    done = yield from run(COMMIT, keys, [grace, name, term_bytes, *(thread.columns() for thread in threads)])
    if not done:
        raise ChangedError
