"""One transaction of a replicated saver: the side that runs it, and the copying before it is acknowledged.

If the writes move to the other side during the transaction, it runs again there.
"""

import logging
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from threadmark.around.deferred import resolve
from threadmark.around.read_from import READ_FROM
from threadmark.errors import ReplicationError, ThreadmarkError
from threadmark.program import Program, Transaction
from threadmark.replication.copying import copy_change, copy_thread, copy_up_to
from threadmark.replication.others import shown
from threadmark.replication.pair import Pair, Roles, SideAwayError, Waiters
from threadmark.replication.promoting import count_waiting, fail_over
from threadmark.replication.side_store import Journal, active_store, standby_store
from threadmark.replication.steps import PairFlow, on, pause, read_on
from threadmark.replication.terms import agree, expect_term, follow
from threadmark.runtime.logs import log
from threadmark.store.replica import StaleTermError

T = TypeVar("T")

_MOVES = 8
"""How often one transaction is run again on the other side before it gives up."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.1

_FEW_WRITERS = 4
"""Up to so many callers that write to a thread at once copy a change each. If there are more, one copies for all."""

_COUNTED = 16
"""After `max_lag // _COUNTED` own changes a process counts those that wait, because other processes write as well."""

_MOST_LISTED = 3


def run_transaction(pair: Pair, transaction: Transaction[T]) -> PairFlow[T]:
    """Run a transaction of a saver. Returns its result."""
    if pair.roles is None:
        yield from agree(pair)
    return (yield from (_write if transaction.writes else _read)(pair, transaction))


def _read(pair: Pair, transaction: Transaction[T]) -> PairFlow[T]:
    known = pair.known
    try:
        return (yield from on(known.active, _on_active(transaction, known, Journal())))
    except SideAwayError as away:
        standby = pair.other(away.side)
        try:
            result = yield from on(standby, transaction.through(_on_new_store, partial(standby_store, standby)))
        except SideAwayError as second:
            raise ReplicationError(f"{away}, and {second}") from second
    readers = READ_FROM.get()
    if readers is not None:
        readers.append(standby.name)
    return result


def _write(pair: Pair, transaction: Transaction[T]) -> PairFlow[T]:
    journal = Journal()
    for _ in range(_MOVES):
        known = pair.known
        try:
            yield from _wait_for_room(pair)
            result = yield from on(known.active, _on_active(transaction, known, journal))
            yield from _replicate(pair, known, journal)
        except StaleTermError:
            yield from follow(pair)
        except SideAwayError as away:
            yield from fail_over(pair, away)
        else:
            return result
    raise ReplicationError(
        f"the writes were moved between {pair} {_MOVES} times while this was written: whether it was stored is not "
        "known. Look at saver.status()"
    )


def _on_active(transaction: Transaction[T], known: Roles, journal: Journal) -> Transaction[T]:
    return transaction.through(_on_new_store, partial(active_store, known.active, known.term, journal))


def _on_new_store(begin: Callable[[], Program[T]], make_store: Callable[[], Any]) -> Program[T]:
    """Run a program on a store that is made for this attempt of the driver alone."""
    return resolve(begin, make_store())


def _replicate(pair: Pair, known: Roles, journal: Journal) -> PairFlow[None]:
    """In mode "sync" copy the new writes to the standby; in mode "async" have the background thread do so."""
    changed = journal.thread_ids
    if not changed:
        return
    if pair.settings.mode == "async":
        pair.note_waiting(known.active, len(changed))
        pair.wake()
        return
    standby = pair.other(known.active)
    try:
        if not pair.is_well(standby):
            raise SideAwayError(standby, pair.health[standby].last_error)
        yield from _copy_to_standby(pair, known, journal)
    except StaleTermError:
        raise
    except ThreadmarkError as error:
        pair.note_waiting(known.active, len(changed))
        pair.wake()
        pair.last_error = str(error)
        listed = list(dict.fromkeys(map(shown, changed)))
        names = ", ".join(listed[:_MOST_LISTED]) + (" and others" if len(listed) > _MOST_LISTED else "")
        what = (
            f"{known.active} has what was written to {names}, and it will be copied to {standby}, which does not have "
            f"it yet: {error}"
        )
        if pair.settings.on_secondary_failure == "raise":
            raise ReplicationError(f"{what}. Until both have it a write fails (on_secondary_failure)") from error
        log.write(logging.WARNING, "%s", what)


def _copy_to_standby(pair: Pair, known: Roles, journal: Journal) -> PairFlow[None]:
    yield from expect_term(pair, pair.other(known.active), known)
    for thread_id in journal.thread_ids:
        with pair.turns.join(thread_id, known.term) as waiters:
            yield from _copy_in_turn(pair, known, thread_id, waiters, journal)


def _copy_in_turn(pair: Pair, known: Roles, thread_id: str, waiters: Waiters, journal: Journal) -> PairFlow[None]:
    """Copy the waiting changes of a thread, unless another caller that wrote to it has copied this change as well."""
    position = journal.position(thread_id)
    seconds = _FIRST_PAUSE
    while not (taken := waiters.take_turn()) and not _is_copied(waiters, position):
        yield from pause(seconds)
        # The more callers wait, the longer each pauses: together they look no more often than a few would.
        seconds = min(2 * seconds, _FIRST_PAUSE * max(_FEW_WRITERS, waiters.count))
    try:
        if not _is_copied(waiters, position):
            waiters.copied_to = yield from _copy_what_waits(pair, known, thread_id, waiters, journal)
    finally:
        if taken:
            waiters.end_turn()


def _copy_what_waits(pair: Pair, known: Roles, thread_id: str, waiters: Waiters, journal: Journal) -> PairFlow[int]:
    """Copy the one change, or all that waits of the thread. Returns the position up to which it is copied."""
    source, target = known.active, pair.other(known.active)
    if journal.only_change is not None:
        change, added = journal.only_change
        may_follow = waiters.copied_to in (0, added.previous) and waiters.count <= _FEW_WRITERS
        if may_follow and (yield from copy_change(source, target, change, added, known.term)):
            return added.position
    copied_to, rows = yield from copy_up_to(source, target, thread_id, known.term, journal.position(thread_id))
    if (yield from read_on(target, target.store.outbox, thread_id, 1)):
        # The standby has changes from when it took the writes. They are merged now, before anything else is written: a
        # deletion among them would delete that as well.
        yield from copy_thread(target, source, thread_id, known.term)
    if rows.branched:
        pair.branched[thread_id] = None
    return copied_to


def _is_copied(waiters: Waiters, position: int) -> bool:
    return 0 < position <= waiters.copied_to


def _wait_for_room(pair: Pair) -> PairFlow[None]:
    """In mode "async" wait while `max_lag` changes are to be copied."""
    settings, active = pair.settings, pair.known.active
    if settings.mode != "async":
        return
    health = pair.health[active]
    if (health.waiting or 0) < settings.max_lag and health.uncounted < max(1, settings.max_lag // _COUNTED):
        return
    until = monotonic() + (settings.deadline or settings.drain_timeout)
    seconds = _FIRST_PAUSE
    while (yield from count_waiting(pair, active)) >= settings.max_lag:
        pair.wake()
        standby = pair.other(active)
        if not pair.is_well(standby) or monotonic() > until:
            raise ReplicationError(
                f"{settings.max_lag:,} changes (max_lag) of {active} are waiting to be copied to {standby}: nothing "
                f"was stored. {pair.health[standby].last_error or 'Try again later'}"
            )
        yield from pause(seconds)
        seconds = min(2 * seconds, _LONGEST_PAUSE)
