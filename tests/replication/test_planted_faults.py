"""Faults that are planted into replication, each a plausible mistake, are found by the checker of the rounds."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from replication.schedules import ScheduledWorld
from replication.simulated import first_objections
from replication.simulation import Plan
from threadmark import ThreadmarkError
from threadmark.program import Program, Transaction
from threadmark.replication import ReplicatedSaver, comparing, copying, side_store, snapshots, transactions
from threadmark.replication.comparing import Rulings
from threadmark.replication.entries import joined
from threadmark.replication.pair import Pair, Roles
from threadmark.replication.steps import PairFlow, Side, on
from threadmark.store import judging
from threadmark.store.contract import Added, Change
from threadmark.store.replica import Copied

ROUNDS = 40

Plant = Callable[[pytest.MonkeyPatch], None]


def _acknowledge_before_copying(patch: pytest.MonkeyPatch) -> None:
    """In mode "sync", a write is left to the thread that copies waiting changes."""

    def not_copied(pair: Pair, *_: object) -> PairFlow[None]:
        pair.wake()
        yield from ()

    patch.setattr(transactions, "_replicate", not_copied)


def _ignore_the_term(patch: pytest.MonkeyPatch) -> None:
    """A client that has not heard of a promotion goes on writing to the old side."""
    active_store = side_store.active_store
    patch.setattr(transactions, "active_store", lambda side, _, journal: active_store(side, 2**50, journal))


def _blame_a_side_for_mistakes(patch: pytest.MonkeyPatch) -> None:
    """Whatever a call raises, the side that takes the writes counts as away."""
    for name in ("put", "put_writes"):
        put, aput = getattr(ReplicatedSaver, name), getattr(ReplicatedSaver, f"a{name}")

        def blaming(self: ReplicatedSaver, *args: Any, put: Any = put) -> Any:
            try:
                return put(self, *args)
            except ThreadmarkError as error:
                _blame(self, error)
                raise

        async def ablaming(self: ReplicatedSaver, *args: Any, aput: Any = aput) -> Any:
            try:
                return await aput(self, *args)
            except ThreadmarkError as error:
                _blame(self, error)
                raise

        patch.setattr(ReplicatedSaver, name, blaming)
        patch.setattr(ReplicatedSaver, f"a{name}", ablaming)


def _blame(saver: ReplicatedSaver, error: Exception) -> None:
    pair = saver._pair.pair
    if pair.roles is not None:  # until it is in use, no side takes the writes
        pair.note_failure(pair.known.active, error)


def _do_not_copy_deletions(patch: pytest.MonkeyPatch) -> None:
    """A deletion is made on the active side, and recorded nowhere."""

    def drop(self: Any, thread_id: str, now: int) -> Program[None]:
        yield from self._store.drop(thread_id, now)

    patch.setattr(side_store._ActiveStore, "drop", drop)


def _merge_what_was_removed(patch: pytest.MonkeyPatch) -> None:
    """If both sides changed a thread, the removals of one are ignored."""
    patch.setattr(comparing, "rulings", lambda *_: Rulings())


def _record_in_another_transaction(patch: pytest.MonkeyPatch) -> None:
    """The entry is recorded after the commit of the write."""
    late: list[Change] = []
    changed, copied = side_store._ActiveStore._changed, transactions._replicate

    def unrecorded(self: Any, make: Any, change: Change, touched: Any) -> Program[tuple[Change, Added]]:
        def without_entry(change: Change) -> Program[Added]:
            late.append(change)
            return (yield from make(change._replace(entry=None)))  # type: ignore[no-any-return]  # `make` is any

        return (yield from changed(self, without_entry, change, touched))

    def recorded(pair: Pair, known: Roles, journal: side_store.Journal) -> PairFlow[None]:
        while late:
            change = late.pop()
            program = partial(known.active.store.record, change.thread_id, change.entry or b"", known.term)
            yield from on(known.active, Transaction(program, writes=True))
            journal.note(change.thread_id)
        yield from copied(pair, known, journal)

    patch.setattr(side_store._ActiveStore, "_changed", unrecorded)
    patch.setattr(transactions, "_replicate", recorded)


def _settle_before_applying(patch: pytest.MonkeyPatch) -> None:
    """An entry is removed from the outbox before its rows are copied."""
    copy_change, settle = copying.copy_change, copying._settle

    def settled_first(source: Side, target: Side, change: Change, added: Added, term: int) -> PairFlow[bool]:
        yield from settle(source, change.thread_id, Copied(added.position, added.epoch))
        return (yield from copy_change(source, target, change, added, term))

    patch.setattr(transactions, "copy_change", settled_first)


def _write_old_over_new(patch: pytest.MonkeyPatch) -> None:
    """The target's position is not checked when rows arrive that were read earlier."""
    patch.setattr(judging, "_is_behind", lambda *_: False)


def _apply_out_of_order(patch: pytest.MonkeyPatch) -> None:
    """The newest of a thread's entries is applied first, and counts for those before it."""
    patch.setattr(snapshots, "joined", lambda bodies: joined(list(bodies)[-1:]))


LACKS, STILL_HAS, DIFFERS, DAMAGED = " lacks ", " still has ", "after the copying: ", "kind='damaged'"
FAILED = "failed though both sides were well"

PLANTED: list[tuple[Plant, Plan, str]] = [
    (_acknowledge_before_copying, Plan("sync", "standby"), LACKS),
    (_acknowledge_before_copying, Plan("sync", "active"), LACKS),
    (_write_old_over_new, Plan("sync", "slow"), DIFFERS),
    (_apply_out_of_order, Plan("async", "standby"), f"{DIFFERS}|{DAMAGED}"),
    (_ignore_the_term, Plan("async", "move", interval=10.0), LACKS),
    (_blame_a_side_for_mistakes, Plan("sync", "none"), FAILED),
    (_blame_a_side_for_mistakes, Plan("async", "none", "automatic"), f"the term was raised though|{FAILED}"),
    (_do_not_copy_deletions, Plan("sync", "none"), STILL_HAS),
    (_do_not_copy_deletions, Plan("async", "none"), DIFFERS),
    (_record_in_another_transaction, Plan("async", "death"), DIFFERS),
    (_settle_before_applying, Plan("sync", "death"), DIFFERS),
]
"""Each with a kind of round that reveals it, and the checker's objection."""


@pytest.mark.parametrize(("plant", "plan", "words"), PLANTED)
def test_the_checker_objects(
    plant: Plant, plan: Plan, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    objections = first_objections([plan], tmp_path, rounds=ROUNDS)
    assert any(re.search(words, each) for each in objections), objections
    assert not any(" broke: " in each for each in objections), "the planted fault is broken by itself"


def test_the_checker_objects_to_a_checkpoint_that_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _merge_what_was_removed(monkeypatch)
    plans = [Plan("async", "active", "automatic")]
    objections = first_objections(plans, tmp_path, rounds=ROUNDS, make_world=ScheduledWorld)
    assert any(STILL_HAS in each and "the deletion of" in each for each in objections), objections
