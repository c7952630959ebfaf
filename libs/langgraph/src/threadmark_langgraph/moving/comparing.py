"""Whether a checkpoint is the same on both sides, and if not, in what it differs."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from langgraph.checkpoint.base import WRITES_IDX_MAP, Checkpoint, CheckpointTuple
from langgraph.checkpoint.serde.types import RESUME

from threadmark import Serde, ThreadmarkError

Same = Callable[[Any, Any], bool]

_Slot = tuple[str, str, int]
"""Where a write is kept: its task, its channel, and which of the task's writes to the channel it is."""

_REPLACED = -1
"""Of some channels a task has one write, the newest."""

_NO_TASK = "00000000-0000-0000-0000-000000000000"
"""Writes of the run itself, such as the answer to a question."""


class Content(NamedTuple):
    """What has to be equal on both sides."""

    parent: str | None
    checkpoint: Checkpoint
    metadata: Any
    writes: Sequence[tuple[str, str, Any]]


def content_of(found: CheckpointTuple) -> Content:
    """What a saver gave, as far as it is compared."""
    parent = found.parent_config["configurable"]["checkpoint_id"] if found.parent_config else None
    return Content(parent, found.checkpoint, found.metadata, found.pending_writes or [])


def difference(moved: Content, there: Content, same: Same) -> str | None:
    """What is not the same on the other side; None if all is.

    A side may have pending writes that the other lacks: there the thread went on.
    """
    if moved.parent != there.parent:
        return "the parent"
    pairs = {
        "the metadata": (_sorted(moved.metadata), _sorted(there.metadata)),
    }
    ours: Any = dict(moved.checkpoint)
    theirs: Any = dict(there.checkpoint)
    values, values_there = ours.pop("channel_values"), theirs.pop("channel_values")
    for channel in values.keys() | values_there.keys():
        pairs[f"channel {channel!r}"] = (values.get(channel), values_there.get(channel))
    for key in ours.keys() | theirs.keys():
        pairs[f"the checkpoint's {key}"] = (ours.get(key), theirs.get(key))
    differing = next((what for what, (one, other) in pairs.items() if not same(one, other)), None)
    return differing or _difference_of_writes(_slots(moved), _slots(there), same)


def lacking(moved: Content, there: Content) -> int:
    """How many pending writes are not on the other side."""
    return len(_slots(moved).keys() - _slots(there).keys())


def _difference_of_writes(moved: dict[_Slot, Any], there: dict[_Slot, Any], same: Same) -> str | None:
    if moved.keys() - there.keys() and there.keys() - moved.keys():
        return "the pending writes, of which each side has some that the other lacks"
    # Where a thread went on, a task may have asked its next question in place of the first.
    stays = moved.keys() == there.keys()
    both = [slot for slot in moved if slot in there and (stays or slot[2] != _REPLACED)]
    if not all(same(moved[slot], there[slot]) for slot in both):
        return "the pending writes"
    if _order(moved, there) != _order(there, moved):
        return "the order of pending writes"
    return None


def _slots(content: Content) -> dict[_Slot, Any]:
    """Every write in its slot; the answers that a task was given have one each, because their list grows."""
    slots: dict[_Slot, Any] = {}
    count: Counter[tuple[str, str]] = Counter()
    for task_id, channel, value in content.writes:
        if channel == RESUME and task_id != _NO_TASK and isinstance(value, list):
            slots.update({(task_id, channel, index): answer for index, answer in enumerate(value)})
        elif channel in WRITES_IDX_MAP:
            slots[task_id, channel, _REPLACED] = value
        else:
            slots[task_id, channel, count[task_id, channel]] = value
            count[task_id, channel] += 1
    return slots


def _order(slots: dict[_Slot, Any], others: dict[_Slot, Any]) -> list[_Slot]:
    """The order of what both have, except where savers have orders of their own."""
    return [slot for slot in slots if slot in others and slot[1] not in WRITES_IDX_MAP]


def _sorted(metadata: Any) -> str:
    """Return metadata as text with sorted keys, because databases that parse JSON do not keep their order."""
    return json.dumps(metadata, sort_keys=True)


_EXACT = Serde()


def exactly_equal(one: Any, other: Any) -> bool:
    """Whether two values are of the same types throughout, and equal; also of classes that cannot say so."""
    try:
        return _EXACT.dumps_typed(one) == _EXACT.dumps_typed(other)
    except ThreadmarkError:
        return _say_equal(one, other)


def equal(one: Any, other: Any) -> bool:
    """Whether two values are equal, whatever their types."""
    return exactly_equal(one, other) or _say_equal(one, other)


def _say_equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 - arrays that differ do not say it by False
        return False
