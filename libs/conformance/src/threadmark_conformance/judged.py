"""Changes with one or two reasons to be refused, and the outcome that each must have.

The reasons have the same order on all backends: whether a pair of databases admits the change, the epoch, the owner,
the lease, whether the thread was deleted, whether the checkpoint exists, and whether it follows the newest one.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

from threadmark.program import Program
from threadmark.saver.proving import checkpoint_row, write_row
from threadmark.store.contract import ANYONE, Added, Change, CheckpointRow, Follows, Outline, Store, now
from threadmark.store.threads import LeaseRow, beginning
from threadmark_conformance.backend import World
from threadmark_conformance.engine import early_id

OWN_REASONS = ("epoch", "owner", "lease", "too late", "exists", "conflict")
PAIR_REASONS = ("term", "behind")
"""The reasons that only apply to changes that a pair of databases makes. They count before all others."""

TERM = 7
LONG = 3600 * 1_000_000
GONE, THERE, NEW = early_id(1), early_id(2), early_id(3)
"""A checkpoint that went with its thread, one that is there, and one that is added."""


class Judged(NamedTuple):
    """A thread, a change to it, and the outcome that the change must have."""

    thread_id: str
    reasons: tuple[str, ...]
    has_token: bool


def judged_for(reasons: tuple[str, ...]) -> list[Judged]:
    """Return every set of up to two reasons, each for a change without a token and for one with a token."""
    sets = [chosen for count in range(3) for chosen in combinations(reasons, count)]
    return [
        Judged(f"thread {number} {has_token}", chosen, has_token)
        for number, chosen in enumerate(sets)
        for has_token in (False, True)
    ]


async def judge(world: World, every: list[Judged], *, at_once: bool) -> None:
    """Make the changes, one after the other or all at once, and compare their outcomes.

    A refused change must leave nothing behind.
    """
    epochs = {each: await world.in_base_store(partial(_prepared, judged=each)) for each in every}
    before = await _content(world)
    refused = [each for each in every if each.reasons]
    changes = {each: _change(each, epochs[each]) for each in every}
    if at_once:
        asked = [world.in_base_store(partial(_add, change=changes[each])) for each in refused]
        answers = dict(zip(refused, await asyncio.gather(*asked), strict=True))
    else:
        answers = {each: await world.in_base_store(partial(_add, change=changes[each])) for each in refused}
    for each, answer in answers.items():
        assert _outcome(answer, changes[each]) == _expected(each), f"{each} ended as {answer}"
    assert await _content(world) == before, "what is refused leaves nothing behind"
    for each in every:
        if not each.reasons:
            made = await world.in_base_store(partial(_add, change=changes[each]))
            assert _outcome(made, changes[each]) == "made"
        await world.in_base_store(partial(_dropped, judged=each))  # the rows contain nothing readable


def _add(store: Store, change: Change) -> Program[Added]:
    return store.add(change)


def _dropped(store: Store, judged: Judged) -> Program[None]:
    yield from store.lock(judged.thread_id)
    yield from store.drop(judged.thread_id, now())


def _prepared(store: Store, judged: Judged) -> Program[int]:
    """Bring the thread into the state that the reasons need. Returns its epoch."""
    name, reasons, has_token = judged
    if "too late" in reasons:
        yield from store.add(Change(name, None, now(), {}, [_row(name, GONE)], (), None))
        yield from store.lock(name)
        yield from store.drop(name, now())
    owner = beginning(name, "Ann", None)
    added = yield from store.add(Change(name, None, now(), {}, [_row(name, THERE)], (), None, beginning=owner))
    if has_token or "lease" in reasons:
        yield from store.lock_lease(name)
        yield from store.set_lease(name, LeaseRow(0, LONG if "lease" in reasons else 0, "somebody"))
    return added.epoch


def _change(judged: Judged, epoch: int) -> Change:
    name, reasons, has_token = judged
    checkpoint_id = THERE if "exists" in reasons else NEW
    fields: dict[str, Any] = {
        "epoch": epoch + 1 if "epoch" in reasons else epoch,
        "beginning": beginning(name, "Bob" if "owner" in reasons else "Ann", None),
        "only_owner": True,
        "token": (1 if "lease" in reasons else ANYONE) if has_token else None,
        "continues": GONE if "too late" in reasons else THERE,
        "expects": early_id(9) if "conflict" in reasons else THERE,
        "term": TERM - 1 if "term" in reasons else None,
        "copied": Follows(3, 4, 0) if "behind" in reasons else None,
    }
    write = write_row(name, "", checkpoint_id, "task", 0, "", "channel", b"\0\1m1")
    return Change(name, None, now(), {bytes(12): b"\0data"}, [_row(name, checkpoint_id)], [write], None)._replace(
        **fields
    )


def _row(name: str, checkpoint_id: str) -> CheckpointRow:
    return checkpoint_row(Outline(name, "", checkpoint_id, checkpoint_id, None, 1, "{}"), b"header", None)


def _expected(judged: Judged) -> str:
    """The first of the reasons, as an outcome."""
    first = next(reason for reason in (*PAIR_REASONS, *OWN_REASONS) if reason in judged.reasons)
    lease = "lost" if judged.has_token else "busy"
    return lease if first == "lease" else first


def _outcome(added: Added, change: Change) -> str:
    """Return an answer in a word or two."""
    outcomes: Mapping[str, bool] = {
        "too late": added.too_late,
        "exists": added.exists,
        str(added.refused): added.refused is not None,
    }
    said = [word for word, is_so in outcomes.items() if is_so]
    assert len(said) <= 1, f"an answer says one thing: {added}"
    return said[0] if said else "made" if added.epoch == change.epoch else "epoch"


async def _content(world: World) -> tuple[Any, ...]:
    """Return everything that must be unchanged after refused changes."""
    heads = await world.in_base_store(lambda store: store.counted_heads(None, None))
    listed = await world.in_base_store(lambda store: store.heads(None, None))
    return sorted(heads), sorted(listed)
