"""Moving the writes to the other side: promotion, by a person or by the saver itself, and the copying for it."""

from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TypeVar

from threadmark.errors import ReplicationError
from threadmark.model import OnProgress
from threadmark.replication.applying import CopiedRows
from threadmark.replication.copying import copy_all
from threadmark.replication.model import ReconcileReport
from threadmark.replication.pair import Pair, Roles, SideAwayError
from threadmark.replication.reconciling import reconcile
from threadmark.replication.steps import PairFlow, Side, read_on
from threadmark.replication.terms import (
    agree,
    expect_term,
    follow,
    next_term,
    note_compared,
    note_complete,
    read_compared,
    read_replica,
    roles_in,
    write_replica,
)
from threadmark.store.replica import StaleTermError

T = TypeVar("T")


def promote(pair: Pair, side: Side | None, *, force: bool) -> PairFlow[None]:
    """Have a side take the writes, by default the one that does not."""
    if force and side is not None:
        yield from _replace_lost(pair, side)
    if pair.roles is None:
        yield from agree(pair)
    yield from follow(pair)
    pair.failovers.clear()
    if side is None:
        side = pair.standby
    if side is pair.known.active:
        return
    old = pair.known.active
    try:
        if not pair.is_well(old):
            raise SideAwayError(old, pair.health[old].last_error)  # noqa: TRY301 - as the other way to learn of it
        yield from _hand_over(pair, side)
    except SideAwayError as error:
        if error.side is side:
            raise
        _expect_all_there(pair, side, error, force=force)
        yield from _take_over(pair, side)


def reconcile_pair(
    pair: Pair, *, both_ways: bool, dry_run: bool, after: str, progress: OnProgress | None
) -> PairFlow[ReconcileReport]:
    """Compare both sides thread by thread, and copy the missing rows."""
    if pair.roles is None:
        yield from agree(pair)
    yield from follow(pair)
    known = pair.known
    before = (yield from read_compared(known.active)) if after and not dry_run else ""
    after = min(after, before) if before else after
    continues = bool(before) or not after
    for side in () if dry_run else pair.sides:
        yield from expect_term(pair, side, known)
    report = yield from reconcile(
        known.active,
        pair.standby,
        known.term,
        both_ways=both_ways,
        dry_run=dry_run,
        after=after,
        progress=progress,
        note=partial(note_compared, pair) if continues and not dry_run else None,
    )
    report = report._replace(complete=continues)
    pair.branched.update(dict.fromkeys(report.branched))
    pair.last_reconcile = report
    if not dry_run and continues:
        yield from note_complete(pair)
        yield from note_compared(pair, "")
    return report


def unless_moved(pair: Pair, flow: PairFlow[T]) -> PairFlow[T]:
    """Run a long flow. Raises ReplicationError if another process moves the writes during it."""
    try:
        return (yield from flow)
    except StaleTermError as error:
        yield from follow(pair)
        raise ReplicationError(
            f"another process has moved the writes to {pair.known.active} during this call. Everything copied so far "
            "is there: call this method again"
        ) from error


def fail_over(pair: Pair, away: SideAwayError) -> PairFlow[None]:
    """Have the standby take the writes, if the saver may do so by itself. Raises ReplicationError if it may not."""
    known = pair.known
    if known.active is not away.side:
        return  # another thread was quicker
    standby = pair.standby
    what = f"{away}. Nothing was stored, as far as is known"
    if pair.settings.failover == "manual":
        raise ReplicationError(
            f"{what}. Reads now come from {standby}; saver.promote() moves the writes there"
        ) from away
    if not pair.is_well(standby):
        raise ReplicationError(f"{what}, and {standby} is away, too: {pair.health[standby].last_error}") from away
    if not known.complete:
        raise ReplicationError(
            f"{what}. {standby} has never had everything, so it does not take over by itself: saver.promote(force=True)"
        ) from away
    term = next_term(known.term, standby)
    if term not in pair.failovers and len(pair.failovers) >= pair.settings.max_failover_attempts:
        raise ReplicationError(
            f"{what}. The saver has moved the writes {len(pair.failovers)} times by itself (max_failover_attempts): "
            "saver.promote() moves them again"
        ) from away
    pair.failovers.add(term)
    try:
        yield from _take_over(pair, standby)
    except SideAwayError as second:
        raise ReplicationError(f"{what}, and {second}") from second


def drain(pair: Pair, within: float) -> PairFlow[int]:
    """Copy the waiting changes of the active side, for so many seconds. Returns how many changes are still waiting."""
    if pair.roles is None:
        yield from agree(pair)
    until = monotonic() + within
    active, standby = pair.known.active, pair.standby
    try:
        while (yield from copy_waiting(pair, active, standby)) and monotonic() < until:
            continue
    except SideAwayError as away:
        if away.side is active:
            raise
    return (yield from count_waiting(pair, active))


def copy_waiting(pair: Pair, source: Side, target: Side) -> PairFlow[int]:
    """Copy some of the waiting changes of one side. Returns the number of their threads."""
    known = pair.known
    yield from expect_term(pair, target, known)
    copied = yield from copy_all(source, target, known.term)
    note_copied(pair, copied)
    return len(copied)


def note_copied(pair: Pair, copied: dict[str, CopiedRows]) -> None:
    """Note which threads have branches by now, because both sides had written to them."""
    pair.branched.update(dict.fromkeys(thread_id for thread_id, rows in copied.items() if rows.branched))


def count_waiting(pair: Pair, side: Side) -> PairFlow[int]:
    """Ask a side how many of its changes the other one lacks."""
    noted = pair.health[side].noted
    waiting = yield from read_on(side, side.store.waiting)
    pair.note_count(side, waiting, noted)
    return waiting.entries


def _hand_over(pair: Pair, side: Side) -> PairFlow[None]:
    """Move the writes while both sides are there: compare, let the old one refuse writes, copy the rest, go on."""
    known = pair.known
    old = known.active
    report = yield from reconcile_pair(pair, both_ways=False, dry_run=False, after="", progress=None)
    # Rows that only the new side had were not copied, so now the old side lacks them.
    complete = not report.only_there and not report.items_only_there
    roles = known._replace(term=next_term(known.term, side), active=side, complete=complete)
    yield from _expect_raised(pair, old, roles)
    try:
        while copied := (yield from copy_all(old, side, roles.term)):
            note_copied(pair, copied)
        yield from _expect_raised(pair, side, roles)
    except Exception:
        # Otherwise writers would wait until the new side holds the term.
        with suppress(ReplicationError):
            yield from write_replica(old, roles._replace(term=next_term(roles.term, old), active=old))
            yield from follow(pair)
        raise
    pair.set_roles(roles)


def _take_over(pair: Pair, side: Side) -> PairFlow[None]:
    """Move the writes to a side while the other one is away: it learns of the term when it is back."""
    known = pair.known
    roles = known._replace(term=next_term(known.term, side), active=side)
    replica = yield from write_replica(side, roles)
    if replica.term == roles.term:
        pair.set_roles(roles)
        pair.wake()
    else:  # another process was quicker
        yield from follow(pair)


def _expect_raised(pair: Pair, side: Side, roles: Roles) -> PairFlow[None]:
    replica = yield from write_replica(side, roles)
    if replica.term != roles.term:
        yield from follow(pair)
        raise ReplicationError(
            f"another process has moved the writes during this call, to {pair.known.active}: look at saver.status()"
        )


def _expect_all_there(pair: Pair, side: Side, away: SideAwayError, *, force: bool) -> None:
    """Raise ReplicationError if the side may lack something, unless `force` says that this does not matter."""
    lacks = pair.settings.mode == "async" or pair.health[away.side].waiting or not pair.known.complete
    if lacks and not force:
        raise ReplicationError(
            f"{away}, and {side} may lack the last writes. saver.promote({side.name!r}, force=True) moves the writes "
            "there in any case: missing writes are merged when the other one is back, as branches if both sides wrote"
        ) from away


def _replace_lost(pair: Pair, side: Side) -> PairFlow[None]:
    """Have this side take the writes if the other side should, but is a new database."""
    try:
        replica = yield from read_replica(side)
        other = yield from read_replica(pair.other(side))
    except SideAwayError:
        return
    if not replica.body or other.body:
        return
    roles = roles_in(pair, replica)
    if roles.active is not side:
        yield from write_replica(side, roles._replace(term=next_term(roles.term, side), active=side))
