"""Comparison of a checkpoint on both sides, and the name of the first difference."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass
from typing import Any, NamedTuple

from langgraph.checkpoint.base import WRITES_IDX_MAP, Checkpoint, CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import RESUME
from pydantic import BaseModel

from threadmark.serde.exact import exactly_equal, says_equal
from threadmark_langgraph.moving.differences import Difference, first_difference, pairs

Same = Callable[[Any, Any], bool]

_Slot = tuple[str, str, int]
"""The place of a write: its task, its channel, and its number among the task's writes to the channel."""

_REPLACED = -1
"""The place in a channel that keeps only a task's newest write."""

_NO_TASK = "00000000-0000-0000-0000-000000000000"
"""Writes of the run itself, such as the answer to a question."""


_DEEPEST = 50
"""Levels at which parts are compared by themselves."""


class Content(NamedTuple):
    """The parts of a checkpoint that must be equal on both sides."""

    parent: str | None
    checkpoint: Checkpoint
    metadata: Any
    writes: Sequence[tuple[str, str, Any]]


def content_of(found: CheckpointTuple) -> Content:
    """Return the parts of a checkpoint that are compared."""
    parent = found.parent_config["configurable"]["checkpoint_id"] if found.parent_config else None
    return Content(parent, found.checkpoint, found.metadata, found.pending_writes or [])


def difference(moved: Content, there: Content, same: Same) -> Difference | None:
    """Return the first difference of the other side, or None if both are equal.

    A side may have pending writes that the other lacks, if the thread went on there.
    """
    if moved.parent != there.parent:
        return first_difference("the parent", moved.parent, there.parent, same)
    if not _same_metadata(moved.metadata, there.metadata):
        return first_difference("the metadata", moved.metadata, there.metadata, _same_metadata)
    ours: Any = dict(moved.checkpoint)
    theirs: Any = dict(there.checkpoint)
    values, values_there = ours.pop("channel_values"), theirs.pop("channel_values")
    parts = [
        *(
            (f"channel {each!r}", values.get(each), values_there.get(each))
            for each in values.keys() | values_there.keys()
        ),
        *((f"the checkpoint's {key}", ours.get(key), theirs.get(key)) for key in ours.keys() | theirs.keys()),
    ]
    for what, one, other in parts:
        if not same(one, other):
            return first_difference(what, one, other, same)
    return _difference_of_writes(_slots(moved), _slots(there), same)


def lacking(moved: Content, there: Content) -> int:
    """Return how many pending writes are missing on the other side."""
    return len(_lacking(moved, there))


def added(moved: Content, there: Content) -> Content:
    """Return the content with the pending writes that are to be added to the other side's.

    Those of a task to ordinary channels are left out if all of them are there. In the channels that keep only the
    newest write, it replaces the other side's.
    """
    tasks = {task_id for task_id, channel, _ in _lacking(moved, there) if channel not in WRITES_IDX_MAP}
    writes = [write for write in moved.writes if write[1] in WRITES_IDX_MAP or write[0] in tasks]
    return moved._replace(writes=writes)


def joined(there: Content, moved: Content, same: Same) -> list[tuple[str, str, Any]]:
    """Return the pending writes to move in their order, with the other side's value for each that is the same there."""
    values = _slots(there)
    slots = {
        slot: values[slot] if slot in values and same(values[slot], value) else value
        for slot, value in _slots(moved).items()
    }
    return _writes(slots)


def _lacking(moved: Content, there: Content) -> set[_Slot]:
    return _slots(moved).keys() - _slots(there).keys()


def _difference_of_writes(moved: dict[_Slot, Any], there: dict[_Slot, Any], same: Same) -> Difference | None:
    only_moved, only_there = moved.keys() - there.keys(), there.keys() - moved.keys()
    if only_moved and only_there:
        what = "the pending writes, of which each side has some that the other lacks"
        return first_difference(what, _named(only_moved), _named(only_there), same)
    # If the thread went on, a task may have asked its next question in place of the first.
    stays = not (only_moved or only_there)
    for slot, value in moved.items():
        if slot in there and (stays or slot[2] != _REPLACED) and not same(value, there[slot]):
            return first_difference(_what_differs(slot), value, there[slot], same)
    order, order_there = _order(moved, there), _order(there, moved)
    if order == order_there:
        return None
    return first_difference("the order of pending writes", _named(order), _named(order_there), same)


def _what_differs(slot: _Slot) -> str:
    if slot[2] == _REPLACED:
        return f"the newest write of a task to channel {slot[1]!r}, since the task ran again on one side"
    return f"the pending writes to channel {slot[1]!r}"


def _named(slots: Iterable[_Slot]) -> list[str]:
    return [f"to {channel!r} by task {task_id}" for task_id, channel, _ in slots]


def _slots(content: Content) -> dict[_Slot, Any]:
    """Return every write in its slot. Answers to a task have one slot each, because their list grows."""
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


def _writes(slots: dict[_Slot, Any]) -> list[tuple[str, str, Any]]:
    """Return the writes that have these slots."""
    writes: dict[_Slot, tuple[str, str, Any]] = {}
    for (task_id, channel, number), value in slots.items():
        if channel == RESUME and number != _REPLACED:
            _, _, answers = writes.setdefault((task_id, channel, _REPLACED), (task_id, channel, []))
            answers.append(value)
        else:
            writes[task_id, channel, number] = (task_id, channel, value)
    return list(writes.values())


def _order(slots: dict[_Slot, Any], others: dict[_Slot, Any]) -> list[_Slot]:
    """Return the order of the writes that both sides have, except in channels that each saver orders its own way."""
    return [slot for slot in slots if slot in others and slot[1] not in WRITES_IDX_MAP]


def _same_metadata(one: Any, other: Any) -> bool:
    """Compare as text with sorted keys: metadata is JSON, and databases that parse it do not keep the order."""
    return json.dumps(one, sort_keys=True, default=repr) == json.dumps(other, sort_keys=True, default=repr)


def kept_by(serde: SerializerProtocol) -> Same:
    """Return a comparison that is true if the serializer turns the first value into the second."""

    def same(one: Any, other: Any) -> bool:
        if _equal(one, other):
            return True
        try:
            kept = serde.loads_typed(serde.dumps_typed(one))
        except Exception:  # noqa: BLE001 - a serializer may raise anything; a value that it cannot keep is not the same
            return False
        return _equal(kept, other)

    return same


def alike(one: Any, other: Any) -> bool:
    """Return whether two values are equal, whatever their types, if a list may stand for a tuple anywhere inside."""
    if _equal(one, other):
        return True
    parts = list(pairs(one, other))
    if not parts and not (isinstance(one, (list, tuple)) and isinstance(other, (list, tuple))):
        return False
    return all(alike(*pair) for _, *pair in parts)


def _equal(one: Any, other: Any, depth: int = 0) -> bool:
    return exactly_equal(one, other) or says_equal(one, other) or _has_equal_parts(one, other, depth + 1)


def _has_equal_parts(one: Any, other: Any, depth: int) -> bool:
    """Whether two values of one type consist of parts that are equal.

    A model says that it is equal to one with other fields set by hand. An object with a model may be unable to say
    so, such as a dataclass without `__eq__`, or a list in which an array stands as well.
    """
    kind = type(one)
    if kind is not type(other) or depth > _DEEPEST:
        return False
    if kind is dict:
        return one.keys() == other.keys() and all(_equal(one[key], other[key], depth) for key in one)
    if kind in (list, tuple):
        return len(one) == len(other) and all(_equal(*pair, depth) for pair in zip(one, other, strict=True))
    return _is_plain(kind) and _has_equal_parts(_state(one), _state(other), depth)


def _is_plain(kind: type) -> bool:
    """Whether a class is one of fields, and keeps nothing elsewhere."""
    if not (is_dataclass(kind) or issubclass(kind, BaseModel)):
        return False
    own = kind.__mro__[:-1]  # without `object`
    own = own[: own.index(BaseModel)] if BaseModel in own else own
    return all(each.__flags__ & _MADE_IN_PYTHON and not vars(each).get("__slots__") for each in own)


def _state(value: Any) -> dict[str, Any]:
    if not isinstance(value, BaseModel):
        return dict(vars(value))
    return {**vars(value), "extra": value.__pydantic_extra__, "private": value.__pydantic_private__}


_MADE_IN_PYTHON = 1 << 9
"""The flag of a type that a program has made: one in C may hold more than its attributes."""
