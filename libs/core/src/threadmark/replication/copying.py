"""Copying the changes of a thread from one database to the other."""

from typing import NamedTuple

from threadmark.errors import ClosedError, ThreadmarkError, TransientStoreError
from threadmark.replication.applying import (
    Batch,
    Compared,
    CopiedRows,
    Fetched,
    Route,
    add_entry_rows,
    add_some,
    batches,
    fetch,
    finish,
)
from threadmark.replication.comparing import Difference, compare, lacks_parents, take_target
from threadmark.replication.entries import Touched
from threadmark.replication.others import OtherRoute, is_other, tables_of
from threadmark.replication.snapshots import (
    CopyState,
    EntryRows,
    Snapshot,
    read_copy_states,
    read_entry_rows,
    read_parents,
    take_snapshot,
)
from threadmark.replication.steps import PairFlow, Side, pause, read_on, write_on
from threadmark.store.contract import ANYONE, NEVER, Added, Change, Follows
from threadmark.store.replica import Copied, StaleTermError

__all__ = ["CopiedRows", "CopiedUpTo", "copy_all", "copy_change", "copy_thread", "copy_up_to"]

ATTEMPTS = 16
"""How often the copying of a thread begins again because others change it."""

_PAUSE = 0.01


class CopiedUpTo(NamedTuple):
    """The position up to which a thread is copied now, and the rows copied for that."""

    position: int
    rows: CopiedRows


def copy_change(source: Side, target: Side, change: Change, added: Added, term: int) -> PairFlow[bool]:
    """Copy one change that the source has just made, with the rows at hand, and settle its entry.

    `change` is the argument of the source's store and `added` its result, with the entry recorded. Returns False,
    having done nothing, if the target lacks something of the thread that came before (it is not at
    `added.previous`), or has entries itself: call `copy_thread` then. Raises StaleTermError if the
    target's term is greater.
    """
    if change.entry is None or Touched.from_bytes(change.entry).whole:
        return False
    begins = not added.previous and added.epoch == change.now
    copy = change._replace(
        epoch=None,
        continues=None,
        token=ANYONE,
        only_owner=False,
        expects=None,
        sorts_last=False,
        term=term,
        entry=None,
        copied=Follows(NEVER if begins else added.previous, added.position, added.epoch),
    )
    outcome = yield from write_on(target, target.store.add, copy)
    if outcome.refused == "term":
        raise StaleTermError
    if outcome.refused is not None or outcome.exists:
        return False
    yield from _settle(source, change.thread_id, Copied(added.position, added.epoch))
    return True


def copy_thread(
    source: Side, target: Side, thread_id: str, term: int, *, everything: bool = False, dry_run: bool = False
) -> PairFlow[CopiedRows]:
    """Make a thread of the target equal to the source's: the changes in its outbox, or `everything`.

    Reads the thread's entries, its position and the rows that they name in one transaction of the source; writes them
    in one transaction of the target that locks the thread and looks up the copied position, so that nothing older
    is ever written over anything newer, even if others copy it at the same time. Then settles the entries.

    A large thread is written in several transactions: segments first, then checkpoints, parents before children. Until
    the last of them the target shows the thread as it was earlier, or the beginning of a new one.

    If the target has entries itself for the thread, both have written to it: then nothing is removed from it,
    unless the source deleted the whole thread, all that it lacks is copied, and the target records that the
    merged thread is to be copied back. Raises StaleTermError if the target's term is greater than `term`.
    """
    route = Route(source, target, thread_id, term)
    state = yield from _read_copy_state(route)
    done = yield from _copy(route, state, everything=everything, dry_run=dry_run)
    if not dry_run:
        yield from _settle(source, thread_id, done.copied)
    return done.rows


def copy_up_to(source: Side, target: Side, thread_id: str, term: int, position: int) -> PairFlow[CopiedUpTo]:
    """Like `copy_thread`, but only up to this position of the thread, 0 for the last one.

    If another process has copied so much, that takes one query. Returns the copied position.
    """
    route = Route(source, target, thread_id, term)
    state = yield from _read_copy_state(route)
    done = yield from _copy(route, state, everything=False, dry_run=False, goal=position)
    if done.copied != state.copied:
        yield from _settle(source, thread_id, done.copied)
    return CopiedUpTo(done.copied.position if done.copied else 0, done.rows)


def copy_all(source: Side, target: Side, term: int, *, limit: int = 256) -> PairFlow[dict[str, CopiedRows]]:
    """Copy the threads of the first `limit` entries of the source's outbox. Returns the rows copied of each.

    Returns nothing if the outbox is empty. A thread whose copying fails, because its rows are damaged, say, does
    not stop the others: it is tried again next time, and the error is raised when the others are done.
    """
    store = source.store
    entries = yield from read_on(source, store.outbox, None, limit)
    names = list(dict.fromkeys(entry.thread_id for entry in entries))
    if not names:
        return {}
    found_there = yield from read_on(target, read_copy_states, target.store, names)
    found: dict[str, CopiedRows] = {}
    problem: ThreadmarkError | None = None
    for thread_id in names:
        route = Route(source, target, thread_id, term)
        try:
            done = yield from _copy(route, found_there[thread_id], everything=False, dry_run=False)
        except (TransientStoreError, StaleTermError, ClosedError):
            raise
        except ThreadmarkError as error:
            problem = problem or error
            continue
        yield from _settle(source, thread_id, done.copied)
        found[thread_id] = done.rows
    if problem is not None:
        raise problem
    return found


class _Outcome(NamedTuple):
    """The outcome of an attempt to copy a thread."""

    copied: Copied | None
    """The position up to which the thread is copied to the target."""
    rows: CopiedRows
    is_complete: bool = True
    is_part: bool = False
    """Whether some of it is copied, and there is more."""


def _copy(route: Route, state: CopyState, *, everything: bool, dry_run: bool, goal: int = 0) -> PairFlow[_Outcome]:
    """Copy a thread that is in this state at the target. Begins again if others change it."""
    total, failed = CopiedRows(), 0
    if is_other(route.thread_id):
        others = yield from tables_of(route.thread_id).copy(OtherRoute(*route), goal)
        return _Outcome(Copied(others.position, 0), CopiedRows(items=others.rows))
    while failed < ATTEMPTS:
        if failed:
            yield from pause(_PAUSE * (failed - 1))
            state = yield from _read_copy_state(route)
        copied_to = state.copied.position if state.copied else NEVER
        if goal and copied_to >= goal:
            return _Outcome(state.copied, total)
        done: _Outcome | None = None
        if not everything and not dry_run and (copied_to >= 0 or (copied_to == NEVER and not state.is_live)):
            done = yield from _copy_entry_rows(route, state.copied, goal)
        if done is None:
            done = yield from _copy_whole(route, state.copied, dry_run=dry_run)
        total = total.plus(done.rows)
        if done.is_complete:
            return _Outcome(done.copied, total)
        if done.is_part:
            state = CopyState(done.copied)
        else:
            failed += 1
    raise TransientStoreError(
        f"thread {route.thread_id!r} was changed {ATTEMPTS} times while it was copied to the other database: it "
        "is still in the outbox, and is tried again"
    )


def _copy_entry_rows(route: Route, copied: Copied | None, goal: int) -> PairFlow[_Outcome | None]:
    """Copy the few rows that entries name. Returns None if more than adding them is to be done."""
    store, target = route.source.store, route.target
    copied_to = copied.position if copied else NEVER
    found = yield from read_on(route.source, read_entry_rows, store, route.thread_id, copied_to)
    if found == "more" or (found == "settled" and (yield from _read_copy_state(route)).copied == copied):
        return None
    if not isinstance(found, EntryRows):
        return _Outcome(copied, CopiedRows(), is_complete=False)
    if found.outline is None:
        return _Outcome(copied, CopiedRows())
    # If a saver that records nothing has removed something, no entry names it.
    removed = copied is not None and copied.epoch not in (0, found.epoch)
    fetched = Fetched((), found.bodies)
    read = CopiedRows(rows_read=fetched.rows_read)
    outcome = None if removed else (yield from write_on(target, add_entry_rows, route, found, copied_to))
    if removed or outcome == "more":
        return None
    if outcome == "moved":
        return _Outcome(copied, read, is_complete=False)
    is_complete = found.position >= (goal or found.known_to)
    reached = Copied(found.position, found.epoch)
    return _Outcome(reached, fetched.counts.plus(read), is_complete, is_part=not is_complete)


def _copy_whole(route: Route, copied: Copied | None, *, dry_run: bool) -> PairFlow[_Outcome]:
    """Compare a thread in both databases, and copy the differences."""
    compared = yield from _compare(route, copied)
    if isinstance(compared, _Outcome):
        return compared
    theirs, ours, difference = compared
    read = CopiedRows(rows_read=theirs.rows + ours.rows)
    goal = Copied(theirs.known_to, theirs.epoch)
    if difference.is_empty and not difference.merges and (dry_run or copied == goal):
        return _Outcome(copied, read)
    if dry_run:
        return _Outcome(copied, read.plus((yield from _would_copy(route, theirs, difference))))
    done = yield from _copy_in_parts(route, compared)
    return done._replace(rows=read.plus(done.rows))


def _compare(route: Route, copied: Copied | None) -> PairFlow[Compared | _Outcome]:
    """Compare a thread that is copied up to there, unless it changes during the comparison."""
    source, target, thread_id = route.source, route.target, route.thread_id
    copied_to = copied.position if copied else NEVER
    theirs = yield from read_on(source, take_snapshot, source.store, thread_id, copied_to)
    if theirs is None:
        return _Outcome(copied, CopiedRows(), is_complete=False)
    ours = yield from read_on(target, take_target, target.store, thread_id, theirs)
    if ours is None or ours.copied != copied:
        return _Outcome(copied, CopiedRows(rows_read=theirs.rows), is_complete=False)
    if lacks_parents(theirs, ours):
        theirs = theirs._replace(parents=(yield from read_on(source, read_parents, source.store, thread_id)))
    return Compared(theirs, ours, compare(theirs, ours))


def _copy_in_parts(route: Route, compared: Compared) -> PairFlow[_Outcome]:
    """Copy the differences in parts. Only the last one notes that the thread is copied."""
    theirs, ours, difference = compared
    copied, total = ours.copied, CopiedRows()
    *before, last = batches(difference)
    for batch in before:
        fetched = yield from _fetch(route, theirs, batch)
        if fetched is None:
            return _Outcome(copied, total, is_complete=False)
        copied = yield from write_on(route.target, add_some, route, compared, copied, fetched)
        total = total.plus(CopiedRows(rows_read=fetched.rows_read))
        if copied is None:
            return _Outcome(copied, total, is_complete=False)
        total = total.plus(fetched.counts)
    fetched = yield from _fetch(route, theirs, last)
    if fetched is None:
        return _Outcome(copied, total, is_complete=False)
    done = yield from write_on(route.target, finish, route, compared, copied, fetched)
    total = total.plus(done or CopiedRows()).plus(CopiedRows(rows_read=fetched.rows_read))
    is_complete = done is not None and (not done.dropped or theirs.outline is None)
    return _Outcome(Copied(theirs.known_to, theirs.epoch), total, is_complete)


def _would_copy(route: Route, theirs: Snapshot, difference: Difference) -> PairFlow[CopiedRows]:
    """Read the rows to copy, and return their count."""
    total = CopiedRows(removed=len(difference.removed), dropped=difference.drops)
    total = total._replace(branched=difference.branches, kept=difference.merges)
    for batch in batches(difference):
        fetched = yield from _fetch(route, theirs, batch)
        if fetched is not None:
            total = total.plus(fetched.counts._replace(rows_read=fetched.rows_read))
    return total


def _fetch(route: Route, theirs: Snapshot, batch: Batch) -> PairFlow[Fetched | None]:
    """Read a part of a thread, None if it has changed since the thread was compared."""
    return (yield from read_on(route.source, fetch, route.source.store, route.thread_id, theirs, batch))


def _read_copy_state(route: Route) -> PairFlow[CopyState]:
    """Return the position up to which the thread is copied to the target."""
    found = yield from read_on(route.target, read_copy_states, route.target.store, [route.thread_id])
    return found[route.thread_id]


def _settle(source: Side, thread_id: str, copied: Copied | None) -> PairFlow[None]:
    """Remove the entries of a thread that are copied to the target."""
    if copied is not None and copied.position > 0 and not is_other(thread_id):  # those have settled their entries
        yield from write_on(source, source.store.settle, thread_id, copied.position)
