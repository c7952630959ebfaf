"""A store around one side's store: the active side records its changes, and the standby refuses changes.

Both show epochs as `2 * epoch + number`, where the primary is number 0 and the secondary 1. So a saver's memory
of one database is never trusted on the other: a change that was prepared for an epoch of the other one is answered
with the epoch of this one, and is prepared again. Tokens of leases appear with the term for the same reason.
"""

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from threadmark.around.deferred import StoreCall
from threadmark.errors import ConfigError, ReplicationError
from threadmark.program import Program
from threadmark.replication.entries import Touched
from threadmark.replication.others import is_other
from threadmark.replication.steps import Side
from threadmark.store.contract import ANYONE, Added, Change, CheckpointRow, Found, Key, Store, nothing_held
from threadmark.store.forwarding import ForwardingStore
from threadmark.store.replica import StaleTermError
from threadmark.store.threads import LeaseRow, ThreadRow

T = TypeVar("T")
P = ParamSpec("P")

FIRST_TERM = 1
"""That of a new pair. Under it the standby never has rows that the active side lacks."""

_EVERYTHING = Touched(everything=True)

_TERM = 2**52
"""Tokens of leases appear as `term * _TERM + token`. Those of databases come from a clock in microseconds, and stay
below that for another eighty years. The term comes first, so tokens grow over a promotion whatever the new side's clock
says."""
_ONLY_READ = "the active database is away, and the other one is only read until `promote()`"
_LOST = 1
"""A token that no lease has."""


class Journal:
    """The changes of a transaction, so that they can be copied when the transaction is over."""

    def __init__(self) -> None:
        self.added: list[tuple[Change, Added]] = []
        """The rows that the last attempt added, with epochs as they are stored."""
        self.threads: dict[str, int] = {}
        """Every thread that any attempt may have changed in another way, with the position of that change.

        The position is 0 if it is not known, because an attempt that failed may have been committed.
        """

    def begin(self) -> None:
        """Begin another attempt."""
        self.threads = dict.fromkeys(self.thread_ids, 0)
        self.added.clear()

    def note(self, thread_id: str, position: int = 0) -> None:
        """Note a change that `added` does not have."""
        self.threads[thread_id] = max(position, self.threads.get(thread_id, 0))

    @property
    def only_change(self) -> tuple[Change, Added] | None:
        """The change of a transaction that did nothing else."""
        return self.added[0] if len(self.added) == 1 and not self.threads else None

    @property
    def thread_ids(self) -> list[str]:
        """The threads to be copied."""
        return sorted({*self.threads, *(change.thread_id for change, _ in self.added)})

    def position(self, thread_id: str) -> int:
        """The position up to which the thread is to be copied, 0 for the last one that it has."""
        positions = [added.position for change, added in self.added if change.thread_id == thread_id]
        if thread_id in self.threads:
            positions.append(self.threads[thread_id])
        return max(positions) if all(positions) else 0


def active_store(side: Side, term: int, journal: Journal) -> Store:
    """Return the store of the side that takes the writes under this term."""
    journal.begin()
    return _ActiveStore(side, term, journal)


def standby_store(side: Side) -> Store:
    """Return a store to read from while the active side is away."""
    return _StandbyStore(side)


class SideStore(ForwardingStore):
    """The side's store with other epochs."""

    def __init__(self, side: Side) -> None:
        super().__init__(side.store)
        self.side = side
        self._number = side.number

    def record_others(self, shard_id: str, body: bytes) -> Program[None]:  # noqa: ARG002 - the active side needs them
        """Record a change of other tables (`others`) in the transaction that makes it, and lock their shard."""
        raise ReplicationError(_ONLY_READ)

    def find(
        self, thread_id: str, ns: str, checkpoint_id: str | None, held: Callable[[], str | None] = nothing_held
    ) -> Program[Found | None]:
        found = yield from self._store.find(thread_id, ns, checkpoint_id, held)
        return found and self._found(found)

    def newest(self, thread_ids: Sequence[str], ns: str) -> Program[dict[str, Found]]:
        found = yield from self._store.newest(thread_ids, ns)
        return {thread_id: self._found(each) for thread_id, each in found.items()}

    def epoch(self, thread_id: str) -> Program[int | None]:
        epoch = yield from self._store.epoch(thread_id)
        return None if epoch is None else self._numbered(epoch)

    def lock(self, thread_id: str) -> Program[int | None]:
        epoch = yield from self._store.lock(thread_id)
        return None if epoch is None else self._numbered(epoch)

    def _found(self, found: Found) -> Found:
        return found._replace(epoch=self._numbered(found.epoch))

    def _numbered(self, epoch: int) -> int:
        return 2 * epoch + self._number


def on_side(program: Callable[Concatenate[SideStore, P], Program[T]], *args: P.args, **kwargs: P.kwargs) -> Program[T]:
    """Run a program with the store of the side that the driver of a pair has chosen, as a step of a transaction."""
    result: T = yield _OnSide("", (program, *args), kwargs)
    return result


class _OnSide(StoreCall):
    def on(self, store: Store) -> Program[Any]:
        program, *args = self.args
        return program(store, *args, **self.kwargs)  # type: ignore[no-any-return]  # `on_side` has its type


class _ActiveStore(SideStore):
    """Makes changes under a term, and records each in the outbox."""

    def __init__(self, side: Side, term: int, journal: Journal) -> None:
        super().__init__(side)
        self._term = term
        self._journal = journal
        self._whole: set[str] = set()
        """The threads of which this transaction has recorded that all rows are to be compared."""

    def add(self, change: Change) -> Program[Added]:
        touched = Touched(
            frozenset(row.outline.key for row in change.checkpoints),
            frozenset((row.ns, row.checkpoint_id) for row in change.writes),
            frozenset(change.segments),
            # It may begin the thread, and does nothing else.
            everything=not (change.checkpoints or change.writes or change.segments),
        )
        change, added = yield from self._changed(self._store.add, change, touched)
        if added.position:
            self._journal.added.append((change, added))
        return added._replace(epoch=self._numbered(added.epoch))

    def replace(self, change: Change) -> Program[Added]:
        change, added = yield from self._changed(self._store.replace, change, _EVERYTHING)
        if added.position:
            self._journal.note(change.thread_id, added.position)
        return added._replace(epoch=self._numbered(added.epoch))

    def rewrite(self, thread_id: str, rows: Sequence[CheckpointRow]) -> Program[None]:
        yield from self._store.rewrite(thread_id, rows)
        if rows:
            yield from self._record(thread_id)

    def remove(self, thread_id: str, keys: Sequence[Key], segments: Sequence[bytes]) -> Program[int]:
        epoch = yield from self._store.remove(thread_id, keys, segments)
        yield from self._record(thread_id)
        return self._numbered(epoch)

    def forget(self, thread_id: str, keys: Sequence[Key], *, removes: bool) -> Program[None]:
        """Once the writes have moved, it is recorded even if nothing is there: the other side may have it."""
        if not removes and self._term == FIRST_TERM:
            yield from self._note_nothing(thread_id)
            return
        yield from self._enter(thread_id, Touched(removed=frozenset(keys), everything=removes))
        if removes:
            self._whole.add(thread_id)

    def drop(self, thread_id: str, now: int) -> Program[int | None]:
        """Once the writes have moved, it is recorded even if the thread is not there: the other side may have it."""
        yield from self._store.lock_lease(thread_id)  # no other caller begins it before this is recorded
        epoch = yield from self._store.drop(thread_id, now)
        if epoch is not None or self._term > FIRST_TERM:
            self._whole.discard(thread_id)
            yield from self._record(thread_id, Touched(dropped=True))
        else:
            yield from self._note_nothing(thread_id)
        return None if epoch is None else self._numbered(epoch)

    def set_thread(self, row: ThreadRow) -> Program[None]:
        yield from self._store.set_thread(row)
        yield from self._record(row.thread_id, Touched(thread=True))

    def copy_segments(self, source: str, target: str) -> Program[None]:
        yield from self._store.copy_segments(source, target)
        yield from self._record(target)

    def lease(self, thread_id: str) -> Program[LeaseRow | None]:
        found = yield from self._store.lease(thread_id)
        return found and self._numbered_lease(found)

    def lock_lease(self, thread_id: str) -> Program[LeaseRow]:
        return self._numbered_lease((yield from self._store.lock_lease(thread_id)))

    def set_lease(self, thread_id: str, lease: LeaseRow) -> Program[LeaseRow]:
        return self._numbered_lease((yield from self._store.set_lease(thread_id, lease)))

    def renew_lease(self, thread_id: str, token: int, left: int) -> Program[bool]:
        return (yield from self._store.renew_lease(thread_id, self._stored_token(token), left))

    def _numbered_lease(self, lease: LeaseRow) -> LeaseRow:
        """Return the lease with a token that includes the term, so that it ends when the writes move."""
        return lease._replace(token=self._term * _TERM + lease.token) if lease.token else lease

    def _stored_token(self, token: int) -> int:
        term, stored = divmod(token, _TERM)
        return stored if stored and term == self._term else _LOST

    def _changed(
        self, make: Callable[[Change], Program[Added]], change: Change, touched: Touched
    ) -> Program[tuple[Change, Added]]:
        """Make a change with its epoch and token as they are stored. Returns it, and the answer, in that form."""
        if change.epoch is not None:
            epoch, number = divmod(change.epoch, 2)
            if number != self._number:
                there = yield from self._store.epoch(change.thread_id)
                return change, Added(there or 0)
            change = change._replace(epoch=epoch)
        if change.token is not None and change.token != ANYONE:
            change = change._replace(token=self._stored_token(change.token))
        _expect_thread(change.thread_id)
        change = change._replace(term=self._term, entry=touched.to_bytes())
        added = yield from make(change)
        if added.refused == "term":
            raise StaleTermError
        return change, added

    def _record(self, thread_id: str, touched: Touched = _EVERYTHING) -> Program[None]:
        """Record a change, unless an entry of this transaction says as much already."""
        if thread_id in self._whole:
            return
        yield from self._enter(thread_id, touched)
        if touched.everything or touched.dropped:
            self._whole.add(thread_id)

    def record_others(self, shard_id: str, body: bytes) -> Program[None]:
        return self._recorded(shard_id, body)

    def _enter(self, thread_id: str, touched: Touched) -> Program[None]:
        _expect_thread(thread_id)
        return self._recorded(thread_id, touched.to_bytes())

    def _recorded(self, thread_id: str, body: bytes) -> Program[None]:
        self._journal.note(thread_id)
        position = yield from self._store.record(thread_id, body, self._term)
        if position is None:
            raise StaleTermError
        self._journal.note(thread_id, position)

    def _note_nothing(self, thread_id: str) -> Program[None]:
        """Record nothing, but have the thread copied: an earlier call may have removed rows that the other side has."""
        self._journal.note(thread_id)
        if (yield from self._store.replica()).term > self._term:
            raise StaleTermError


class _StandbyStore(SideStore):
    """Can be read, and refuses every change."""

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise ReplicationError(_ONLY_READ)

    add = replace = rewrite = remove = forget = drop = set_thread = copy_segments = mend = _refused
    lock_lease = set_lease = renew_lease = _refused


def _expect_thread(thread_id: str) -> None:
    if is_other(thread_id):
        raise ConfigError(f"a pair uses the id {thread_id!r} itself: give the thread another one")
