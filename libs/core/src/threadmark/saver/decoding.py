"""Decoding of stored bytes to values. Every call decodes again, so callers never share objects.

A decoded value is thousands of new objects, none of them garbage yet. CPython counts new objects, though. After every
few hundred it looks through the young ones for cycles, and from time to time through everything that the process has
imported. For a list of LangChain messages that is up to three quarters of the time. So savers that were opened with
`pause_gc=True` pause the collector while they decode a large value.
"""

import gc
import os
from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from typing import Any, cast

from threadmark.config import config_of
from threadmark.errors import LocatedError, SerializationError, ThreadmarkError
from threadmark.format.header import Header, joined_fields
from threadmark.format.stored import Stored
from threadmark.metadata import from_json
from threadmark.model import Checkpoint, CheckpointTuple, Metadata, PendingWrite
from threadmark.runtime.compiled import counterpart
from threadmark.saver.batches import Write
from threadmark.saver.context import SaverContext
from threadmark.saver.loading import LoadedCheckpoint
from threadmark.saver.paths import Path
from threadmark.saver.proving import channel_location, checkpoint_location, header_location, write_location
from threadmark.serde import Serde, Serializer
from threadmark.serde.decoder import decode_together
from threadmark.serde.parts import DecodedItems, Items
from threadmark.serde.serializer import PLAIN, finds_parts
from threadmark.serde.steps import items_of, taken
from threadmark.store.contract import Outline

_paused = False
"""Whether it was `with_gc_paused` that switched the collector off."""


def with_gc_paused(make: Callable[[Any], Any], argument: Any) -> Any:
    """Call `make(given)` with the garbage collector paused. Returns its result.

    A collector that is off already stays off, whether the user's program or another thread's pause switched it off. The
    thread that began a pause ends it, so threads that decode all the time cannot keep the collector off.
    """
    global _paused  # noqa: PLW0603 - the collector is the process's, too
    if not gc.isenabled():
        return make(argument)
    try:
        _paused = True
        gc.disable()
        return make(argument)
    finally:
        _paused = False  # first, because a signal's handler may raise as soon as a call has returned
        gc.enable()


def _end_pause() -> None:
    """End a pause in the child of a fork, in which the thread that began it does not exist."""
    if _paused:
        gc.enable()


if hasattr(os, "register_at_fork"):  # some systems have no fork
    os.register_at_fork(after_in_child=_end_pause)


_Typed = tuple[str, bytes]

_TAG, _PACKED, _DIGEST = attrgetter("tag"), attrgetter("packed"), attrgetter("digest")
_ONLY_PLAIN = frozenset({PLAIN})

_LARGE = 16 * 1024
"""Decoding a value of fewer bytes than this makes too few objects for the collector to matter."""


def decoded(context: SaverContext, loaded: LoadedCheckpoint) -> CheckpointTuple:
    """Return the checkpoint as its user sees it."""
    return _whole(context, loaded, context.pause_gc) if type(context.serde) is Serde else _in_parts(context, loaded)


def _in_parts(context: SaverContext, loaded: LoadedCheckpoint) -> CheckpointTuple:
    outline, header = loaded.outline, loaded.header
    thread_id, ns, checkpoint_id, _, parent, _, _ = outline
    checkpoint = _fields(context, outline, header)
    checkpoint["id"] = checkpoint_id
    checkpoint["channel_values"] = _values(context, loaded)
    checkpoint["channel_versions"] = header.versions.copy()
    return CheckpointTuple(
        config=config_of(thread_id, ns, checkpoint_id),
        checkpoint=checkpoint,
        metadata=decode_metadata(outline),
        parent_config=config_of(thread_id, ns, parent) if parent else None,
        pending_writes=_pending_writes(context, loaded) if loaded.writes else [],
    )


def _pending_writes(context: SaverContext, loaded: LoadedCheckpoint) -> list[PendingWrite]:
    writes = loaded.writes
    together = _decoded_together(context.serde, [write.value for write in writes])
    if together is not None:
        return [(row.task_id, row.channel, value) for (row, _), value in zip(writes, together, strict=True)]
    return [decode_write(context, loaded.outline.thread_id, write, loaded.data) for write in writes]


def _values(context: SaverContext, loaded: LoadedCheckpoint) -> dict[str, Any]:
    stored = loaded.header.values
    together = _decoded_together(context.serde, stored.values())
    if together is not None:
        return dict(zip(stored, together, strict=True))
    values: dict[str, Any] = {}
    for channel, value in stored.items():
        values[channel] = decode_channel(context, loaded.outline, channel, value, loaded.data)
    return values


def _decoded_together(serde: Serializer, stored: Collection[Stored]) -> list[Any] | None:
    """Decode values that all are short and plain. Returns None for others, and if one of them cannot be read."""
    if not finds_parts(serde):
        return None
    if any(map(_DIGEST, stored)) or not _ONLY_PLAIN.issuperset(map(_TAG, stored)):
        return None
    return decode_together(list(map(_PACKED, stored)))


def decode_channel(
    context: SaverContext, outline: Outline, channel: str, value: Stored, data: Mapping[bytes, bytes]
) -> Any:
    """Decode a channel's value. Errors name the channel."""
    try:
        return _decoded(context, context.serde.loads_typed, value, data)
    except LocatedError as error:
        raise error.at(channel_location(outline, channel)) from error.origin


def decode_part(context: SaverContext, outline: Outline, path: Path, value: Stored, data: Mapping[bytes, bytes]) -> Any:
    """Decode the part of a channel's value that a path leads to. Returns `NOTHING` if there is none."""
    serde = context.serde

    def loads(encoded: _Typed) -> Any:
        return (
            serde.loads_part(encoded, path.steps)
            if finds_parts(serde)
            else taken(serde.loads_typed(encoded), path.steps)
        )

    try:
        return _decoded(context, loads, value, data)
    except LocatedError as error:
        raise error.at(channel_location(outline, path.channel)) from error.origin


def decode_items(
    context: SaverContext, outline: Outline, channel: str, value: Stored, data: Mapping[bytes, bytes]
) -> Items | DecodedItems | None:
    """Find the items of a channel's value, each of which is decoded when it is asked for. None if it has none."""
    serde = context.serde
    try:
        found = _decoded(context, serde.loads_items, value, data) if finds_parts(serde) else None
        if found is None:
            whole = items_of(_decoded(context, serde.loads_typed, value, data))
            found = None if whole is None else DecodedItems(whole)
    except LocatedError as error:
        raise error.at(channel_location(outline, channel)) from error.origin
    return cast("Items | DecodedItems | None", found)  # decoded values are Any


def decode_write(context: SaverContext, thread_id: str, write: Write, data: Mapping[bytes, bytes]) -> PendingWrite:
    """Decode a pending write. Errors name its task and channel."""
    row = write.row
    try:
        return row.task_id, row.channel, _decoded(context, context.serde.loads_typed, write.value, data)
    except LocatedError as error:
        raise error.at(write_location(thread_id, row)) from error.origin


def _fields(context: SaverContext, outline: Outline, header: Header) -> Checkpoint:
    """The fields of a checkpoint that are not its values."""
    try:
        fields: Any = joined_fields(header, context.serde)
        checkpoint: Checkpoint = fields  # they are those that were put
    except LocatedError as error:
        raise error.at(header_location(outline)) from error
    except ThreadmarkError:
        raise
    except Exception as error:
        raise SerializationError(f"the serializer cannot read its fields: {error}", header_location(outline)) from error
    return checkpoint


def decode_metadata(outline: Outline) -> Metadata:
    """Decode a checkpoint's metadata. Errors name the checkpoint."""
    try:
        return from_json(outline.metadata)
    except LocatedError as error:
        raise error.at(checkpoint_location(outline)) from error


def _decoded(context: SaverContext, loads: Callable[[_Typed], Any], value: Stored, data: Mapping[bytes, bytes]) -> Any:
    encoded = data[value.digest] if value.digest else value.packed
    try:
        if context.pause_gc and len(encoded) >= _LARGE:
            return with_gc_paused(loads, (value.tag, encoded))
        return loads((value.tag, encoded))
    except ThreadmarkError:
        raise
    except Exception as error:
        raise SerializationError(f"the serializer cannot read it: {error}") from error


@counterpart("reading.decoded", CheckpointTuple, _fields, decode_channel, decode_metadata, decode_write)
def _whole(
    context: SaverContext,
    loaded: LoadedCheckpoint,
    pauses: bool,  # noqa: ARG001, FBT001 - for the counterpart, to which large values are not plain then
) -> CheckpointTuple:
    """Like `decoded`, for values that this package's serializer has encoded."""
    return _in_parts(context, loaded)
