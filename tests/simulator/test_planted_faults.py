"""Faults that are planted into the saver and into replication, each a plausible mistake, are found by few seeds"""

import re
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import pytest

from simulator.database import Database
from simulator.plan import Mode, Plan, Topic
from simulator.play import play
from simulator.playing import quiet
from threadmark import ThreadmarkError
from threadmark.memory import adding, store
from threadmark.memory.tables import Tables
from threadmark.program import Program, Transaction
from threadmark.replication import ReplicatedSaver, comparing, copying, side_store, snapshots, transactions
from threadmark.replication.comparing import Rulings
from threadmark.replication.entries import joined
from threadmark.replication.pair import Pair, Roles
from threadmark.replication.steps import PairFlow, Side, on
from threadmark.saver.operations import writing
from threadmark.store import judging
from threadmark.store.contract import ANYONE, Added, Change
from threadmark.store.judging import Facts, judged
from threadmark.store.replica import Copied

WORLDS = 400
"""So many worlds with one database, or with a pair in one mode, are played until one fails."""

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
        pair.note_failure(pair.known.active, error, pair.health[pair.known.active].returns)


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


def _do_not_prove_the_epoch(patch: pytest.MonkeyPatch) -> None:
    """Segments that a saver remembers are not proven to be there still."""
    add_change = adding.add_change

    def unproven(tables: Tables, change: Change, *, replace: bool) -> Added:
        added = add_change(tables, change._replace(epoch=None), replace=replace)
        return added._replace(epoch=change.epoch or added.epoch)

    patch.setattr(store, "add_change", unproven)


def _ignore_tokens(patch: pytest.MonkeyPatch) -> None:
    """A write is taken under any lease, and under none."""

    def unfenced(change: Change, facts: Facts, *, replaces: bool) -> Added | None:
        return judged(change._replace(token=ANYONE), facts, replaces=replaces)

    patch.setattr(adding, "judged", unfenced)


def _forget_deletions(patch: pytest.MonkeyPatch) -> None:
    """A write that continues a thread which was deleted begins it again."""
    patch.setattr(adding, "may_be_gone", lambda *_: False)


def _acknowledge_before_syncing(patch: pytest.MonkeyPatch) -> None:
    """A commit is answered before it is on the disk."""
    patch.setattr(Database, "committed", lambda _: None)


def _rank_by_id(patch: pytest.MonkeyPatch) -> None:
    """A checkpoint whose clock was set back sorts before its parent."""
    patch.setattr(writing, "rank_after", lambda _, checkpoint_id: checkpoint_id)


def _follow_pruned_checkpoints(patch: pytest.MonkeyPatch) -> None:
    """A checkpoint is stored whose delta channel has no history, because its parent was pruned."""
    patch.setattr(writing, "check_parent", lambda *_: False)


LACKS, STILL_HAS, DIFFERS, DAMAGED = " lacks ", " still has ", "after the copying: ", "kind='damaged'"
FAILED = "failed though both sides were well"
NOT_THERE, TAKEN = "acknowledged, and not there", "continues what was deleted"

WORLD_OF: dict[Plant, Topic] = {_follow_pruned_checkpoints: "deltas"}
"""The topic of the worlds that reveal a fault, unless they are about checkpoints."""

PLANTED: list[tuple[Plant, Mode, str]] = [
    (_do_not_prove_the_epoch, "one", f"CorruptDataError|{DAMAGED}|missing"),
    (_ignore_tokens, "one", "a put under a lease was taken|follow .* of"),
    (_forget_deletions, "one", TAKEN),
    (_acknowledge_before_syncing, "one", NOT_THERE),
    (_rank_by_id, "one", "an ancestor was found|listed after its parent|is not done in the ledger"),
    (_follow_pruned_checkpoints, "one", "has not the texts"),
    (_acknowledge_before_copying, "sync", LACKS),
    (_write_old_over_new, "sync", f"{DIFFERS}|without its parent"),
    (_apply_out_of_order, "async", f"{DIFFERS}|{DAMAGED}"),
    (_ignore_the_term, "async", LACKS),
    (_blame_a_side_for_mistakes, "sync", FAILED),
    (_do_not_copy_deletions, "async", f"{STILL_HAS}|{DIFFERS}"),
    (_record_in_another_transaction, "sync", f"{DIFFERS}|{LACKS}"),
    (_settle_before_applying, "sync", f"{DIFFERS}|{LACKS}"),
    (_merge_what_was_removed, "async", STILL_HAS),
]
"""Each with the kind of world that reveals it, and the objection."""


@pytest.mark.parametrize(("plant", "mode", "words"), PLANTED)
def test_a_seed_finds_it(plant: Plant, mode: Mode, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    objections = first_objections(mode, WORLD_OF.get(plant, "checkpoints"))
    assert any(re.search(words, each) for each in objections), objections
    assert not any(" broke: " in each for each in objections), "the planted fault is broken by itself"


def first_objections(mode: Mode, topic: Topic) -> list[str]:
    """Play worlds of a kind until one fails."""
    plans = (plan for seed in count() if (plan := Plan.of(seed))[1:3] == (mode, topic))
    with quiet():
        for _ in range(WORLDS):
            if objections := play(next(plans)).objections:
                return objections
    return []
