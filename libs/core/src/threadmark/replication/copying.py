"""Bringing a thread of one database up to what the other one has."""

from functools import partial
from typing import NamedTuple

from threadmark.errors import ClosedError, ThreadmarkError, TransientStoreError
from threadmark.program import Transaction
from threadmark.replica_store import Copied, StaleTermError
from threadmark.replication.applying import Brought, Compared, CopiedRows, Route, add_named, add_some, finish
from threadmark.replication.batches import Batch, batches, fetch
from threadmark.replication.comparing import Difference, compare
from threadmark.replication.entries import Touched
from threadmark.replication.held import Held, Place, held, places
from threadmark.replication.named import Named, named
from threadmark.replication.steps import Exchange, Side, on, pause
from threadmark.store import ANYONE, NEVER, Added, Change, Follows

__all__ = ["Come", "CopiedRows", "copy_all", "copy_change", "copy_thread", "copy_up_to"]

ATTEMPTS = 16
"""How often a thread is begun again that others change while it is copied."""

_PAUSE = 0.01


class Come(NamedTuple):
    """How far a thread has come, and what was copied for that."""

    position: int
    rows: CopiedRows


def copy_change(source: Side, target: Side, change: Change, added: Added, term: int) -> Exchange[bool]:
    """Copy one change that the source has just made, with the rows at hand, and settle its entry.

    Both are as the source's store had them, which has added the change and recorded its entry. Returns False, having
    done nothing, where the target lacks something of the thread that came before (it is not at `added.previous`), or
    has entries of its own: `copy_thread` is to be called then. Raises StaleTermError where the target's term is
    greater.
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
    outcome = yield from on(target, Transaction(partial(target.store.add, copy), writes=True))
    if outcome.refused == "term":
        raise StaleTermError
    if outcome.refused is not None or outcome.exists:
        return False
    yield from _settle(source, change.thread_id, Copied(added.position, added.epoch))
    return True


def copy_thread(
    source: Side, target: Side, thread_id: str, term: int, *, everything: bool = False, dry_run: bool = False
) -> Exchange[CopiedRows]:
    """Bring a thread of the target up to what the source has now, as far as its outbox says that it changed, or whole.

    Reads the thread's entries, its position and the rows that they name in one transaction of the source; writes them
    in one transaction of the target that locks the thread and looks how far it has come, so that nothing older is ever
    written over anything newer, whoever else copies it at the same time. Then settles the entries.

    A large thread is written in several transactions: segments first, then checkpoints, parents before children. Until
    the last of them the target shows the thread as it was earlier, or the beginning of a new one.

    Where the target has entries of its own for the thread, both have written to it: then nothing is removed from it,
    unless the source deleted the whole thread, all that it lacks is copied, and the target records that this is to be
    copied back. Raises StaleTermError where the target's term is greater than `term`.
    """
    route = Route(source, target, thread_id, term)
    place = yield from _place(route)
    done = yield from _copy(route, place, everything=everything, dry_run=dry_run)
    if not dry_run:
        yield from _settle(source, thread_id, done.copied)
    return done.rows


def copy_up_to(source: Side, target: Side, thread_id: str, term: int, position: int) -> Exchange[Come]:
    """Like `copy_thread`, but it is enough that the target has come up to this position of the thread, 0 for the last.

    Where somebody else has brought it so far, that is seen with one question. Returns how far it has come.
    """
    route = Route(source, target, thread_id, term)
    place = yield from _place(route)
    done = yield from _copy(route, place, everything=False, dry_run=False, goal=position)
    if done.copied != place.copied:
        yield from _settle(source, thread_id, done.copied)
    return Come(done.copied.position if done.copied else 0, done.rows)


def copy_all(source: Side, target: Side, term: int, *, limit: int = 256) -> Exchange[dict[str, CopiedRows]]:
    """Copy the threads of the first `limit` entries of the source's outbox. Returns what was copied of each.

    Returns nothing where the outbox is empty. A thread whose copying fails, because its rows are damaged, say, does
    not stop the others: it is tried again next time, and the error is raised when the others are done.
    """
    store = source.store
    entries = yield from on(source, Transaction(partial(store.outbox, None, limit), writes=False))
    names = list(dict.fromkeys(entry.thread_id for entry in entries))
    if not names:
        return {}
    found_there = yield from on(target, Transaction(partial(places, target.store, names), writes=False))
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


class _Done(NamedTuple):
    """What an attempt has come to."""

    copied: Copied | None
    """How far the thread has come to the target."""
    rows: CopiedRows
    is_complete: bool = True
    is_part: bool = False
    """Whether it has come further, and there is more."""


def _copy(route: Route, place: Place, *, everything: bool, dry_run: bool, goal: int = 0) -> Exchange[_Done]:
    """Copy a thread that has come to the target so far. Begins again where others change it meanwhile."""
    total, failed = CopiedRows(), 0
    while failed < ATTEMPTS:
        if failed:
            yield from pause(_PAUSE * (failed - 1))
            place = yield from _place(route)
        come = place.copied.position if place.copied else NEVER
        if goal and come >= goal:
            return _Done(place.copied, total)
        done: _Done | None = None
        if not everything and not dry_run and (come >= 0 or (come == NEVER and not place.is_live)):
            done = yield from _copy_named(route, place.copied, goal)
        if done is None:
            done = yield from _copy_whole(route, place.copied, dry_run=dry_run)
        total = total.plus(done.rows)
        if done.is_complete:
            return _Done(done.copied, total)
        if done.is_part:
            place = Place(done.copied)
        else:
            failed += 1
    raise TransientStoreError(
        f"thread {route.thread_id!r} was changed {ATTEMPTS} times while it was copied to the other database; "
        "it waits there, and is tried again"
    )


def _copy_named(route: Route, copied: Copied | None, goal: int) -> Exchange[_Done | None]:
    """Copy the few rows that entries name. Returns None where more than adding them is to be done."""
    store, target = route.source.store, route.target
    come = copied.position if copied else NEVER
    found = yield from on(route.source, Transaction(partial(named, store, route.thread_id, come), writes=False))
    if found == "more" or (found == "settled" and (yield from _place(route)).copied == copied):
        return None
    if not isinstance(found, Named):
        return _Done(copied, CopiedRows(), is_complete=False)
    if found.outline is None:
        return _Done(copied, CopiedRows())
    brought = Brought((), found.bodies)
    read = CopiedRows(rows_read=brought.rows_read)
    # A removal ends the epoch, and has an entry; but for one by somebody who records nothing.
    is_told = copied is None or copied.epoch in (0, found.epoch)
    program = partial(add_named, route, found, come)
    outcome = (yield from on(target, Transaction(program, writes=True))) if is_told else "more"
    if outcome == "more":
        return None
    if outcome == "moved":
        return _Done(copied, read, is_complete=False)
    is_complete = found.position >= (goal or found.known_to)
    come_to = Copied(found.position, found.epoch)
    return _Done(come_to, brought.counts.plus(read), is_complete, is_part=not is_complete)


def _copy_whole(route: Route, copied: Copied | None, *, dry_run: bool) -> Exchange[_Done]:
    """Compare a thread in both databases, and copy what differs."""
    compared = yield from _compare(route, copied)
    if isinstance(compared, _Done):
        return compared
    theirs, ours, difference = compared
    read = CopiedRows(rows_read=theirs.rows + ours.rows)
    goal = Copied(theirs.known_to, theirs.epoch)
    if difference.is_empty and not difference.merges and (dry_run or copied == goal):
        return _Done(copied, read)
    if dry_run:
        return _Done(copied, read.plus((yield from _would_copy(route, theirs, difference))))
    done = yield from _bring(route, compared)
    return done._replace(rows=read.plus(done.rows))


def _compare(route: Route, copied: Copied | None) -> Exchange[Compared | _Done]:
    """Compare a thread that has come so far, unless it changes meanwhile."""
    source, target, thread_id = route.source, route.target, route.thread_id
    come = copied.position if copied else NEVER
    theirs = yield from on(source, Transaction(partial(held, source.store, thread_id, come), writes=False))
    if theirs is None:
        return _Done(copied, CopiedRows(), is_complete=False)
    seen = theirs.copied.position if theirs.copied else NEVER
    ours = yield from on(target, Transaction(partial(held, target.store, thread_id, seen), writes=False))
    if ours is None or ours.copied != copied:
        return _Done(copied, CopiedRows(rows_read=theirs.rows), is_complete=False)
    return Compared(theirs, ours, compare(theirs, ours))


def _bring(route: Route, compared: Compared) -> Exchange[_Done]:
    """Copy what differs, in parts: only the last one says that the thread has come."""
    theirs, ours, difference = compared
    come, total = ours.copied, CopiedRows()
    *before, last = batches(difference)
    for batch in before:
        brought = yield from _fetch(route, theirs, batch)
        if brought is None:
            return _Done(come, total, is_complete=False)
        program = partial(add_some, route, compared, come, brought)
        come = yield from on(route.target, Transaction(program, writes=True))
        total = total.plus(CopiedRows(rows_read=brought.rows_read))
        if come is None:
            return _Done(come, total, is_complete=False)
        total = total.plus(brought.counts)
    brought = yield from _fetch(route, theirs, last)
    if brought is None:
        return _Done(come, total, is_complete=False)
    done = yield from on(route.target, Transaction(partial(finish, route, theirs, come, brought), writes=True))
    total = total.plus(done or CopiedRows()).plus(CopiedRows(rows_read=brought.rows_read))
    is_complete = done is not None and (not done.dropped or theirs.outline is None)
    return _Done(Copied(theirs.known_to, theirs.epoch), total, is_complete)


def _would_copy(route: Route, theirs: Held, difference: Difference) -> Exchange[CopiedRows]:
    """Return what would be copied, having read it."""
    total = CopiedRows(removed=len(difference.removed), dropped=difference.drops)
    total = total._replace(branched=difference.branches, kept=difference.merges)
    for batch in batches(difference):
        brought = yield from _fetch(route, theirs, batch)
        if brought is not None:
            total = total.plus(brought.counts._replace(rows_read=brought.rows_read))
    return total


def _fetch(route: Route, theirs: Held, batch: Batch) -> Exchange[Brought | None]:
    """Read a part of a thread, None where it is not what it was when the thread was compared."""
    program = partial(fetch, route.source.store, route.thread_id, theirs, batch)
    return (yield from on(route.source, Transaction(program, writes=False)))


def _place(route: Route) -> Exchange[Place]:
    """Return how far the thread has come to the target."""
    program = partial(places, route.target.store, [route.thread_id])
    found = yield from on(route.target, Transaction(program, writes=False))
    return found[route.thread_id]


def _settle(source: Side, thread_id: str, copied: Copied | None) -> Exchange[None]:
    """Remove the entries of a thread up to where it has come to the target."""
    if copied is not None and copied.position > 0:
        yield from on(source, Transaction(partial(source.store.settle, thread_id, copied.position), writes=True))
