"""Whether a checkpoint is the same on both sides, and if not, in what it differs."""

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from langgraph.checkpoint.base import Checkpoint, CheckpointTuple

from threadmark import Serde, ThreadmarkError

Same = Callable[[Any, Any], bool]


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
    """What is not the same on the other side; None if all is."""
    if moved.parent != there.parent:
        return "the parent"
    pairs = {
        "the metadata": (_sorted(moved.metadata), _sorted(there.metadata)),
        "the order of pending writes": (
            [write[:2] for write in moved.writes],
            [write[:2] for write in there.writes],
        ),
        "the pending writes": (list(moved.writes), list(there.writes)),
    }
    ours: Any = dict(moved.checkpoint)
    theirs: Any = dict(there.checkpoint)
    values, values_there = ours.pop("channel_values"), theirs.pop("channel_values")
    for channel in values.keys() | values_there.keys():
        pairs[f"channel {channel!r}"] = (values.get(channel), values_there.get(channel))
    for key in ours.keys() | theirs.keys():
        pairs[f"the checkpoint's {key}"] = (ours.get(key), theirs.get(key))
    return next((what for what, (one, other) in pairs.items() if not same(one, other)), None)


def _sorted(metadata: Any) -> str:
    """Metadata as text; the order of its keys is not kept by databases that understand JSON."""
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
