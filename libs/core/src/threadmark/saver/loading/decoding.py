"""From stored bytes to what a saver's user sees. Every call decodes anew, so that nothing handed out is shared."""

from collections.abc import Mapping
from typing import Any, cast

from threadmark.config import ParsedConfig
from threadmark.errors import LocatedError, SerializationError, ThreadmarkError
from threadmark.header import Header, joined_fields
from threadmark.metadata import from_json
from threadmark.model import Checkpoint, CheckpointTuple, Metadata
from threadmark.saver.loading.gc_pause import with_gc_paused
from threadmark.saver.loading.loader import LoadedCheckpoint, Write
from threadmark.saver.proving.checks import channel_location, checkpoint_location, header_location, write_location
from threadmark.serde import Serializer
from threadmark.store import Outline
from threadmark.stored import Encoded, Stored

_LARGE = 16 * 1024
"""The size in bytes from which on a value may be decoded with garbage collection paused."""


def decoded(loaded: LoadedCheckpoint, serde: Serializer) -> CheckpointTuple:
    """The checkpoint as its user sees it."""
    outline, header, data = loaded.outline, loaded.header, loaded.data
    thread_id, ns, checkpoint_id, _, parent, _, _ = outline
    checkpoint: Checkpoint = _fields(outline, header, serde)
    checkpoint["id"] = checkpoint_id
    checkpoint["channel_values"] = {
        channel: decode_channel(outline, channel, value, data, serde) for channel, value in header.values.items()
    }
    checkpoint["channel_versions"] = header.versions.copy()
    return CheckpointTuple(
        ParsedConfig(thread_id, ns, checkpoint_id).config(),
        checkpoint,
        decode_metadata(outline),
        ParsedConfig(thread_id, ns, parent).config() if parent else None,
        [decode_write(thread_id, write, data, serde) for write in loaded.writes],
    )


def decode_channel(
    outline: Outline, channel: str, value: Stored, data: Mapping[bytes, bytes], serde: Serializer
) -> Any:
    """Decode a channel's value. Errors name the channel."""
    try:
        return _loads(serde, value, data)
    except LocatedError as error:
        raise error.at(channel_location(outline, channel)) from error.origin


def decode_write(thread_id: str, write: Write, data: Mapping[bytes, bytes], serde: Serializer) -> tuple[str, str, Any]:
    """Decode a pending write. Errors name its task and channel."""
    row = write.row
    try:
        return row.task_id, row.channel, _loads(serde, write.value, data)
    except LocatedError as error:
        raise error.at(write_location(thread_id, row)) from error.origin


def _fields(outline: Outline, header: Header, serde: Serializer) -> Checkpoint:
    """The fields of a checkpoint that are not its values."""
    try:
        return cast("Checkpoint", joined_fields(header, serde))  # they are those that were put
    except LocatedError as error:
        raise error.at(header_location(outline)) from error
    except ThreadmarkError:
        raise
    except Exception as error:
        raise SerializationError(f"the serializer cannot read its fields: {error}", header_location(outline)) from error


def decode_metadata(outline: Outline) -> Metadata:
    """Decode a checkpoint's metadata. Errors name the checkpoint."""
    try:
        return from_json(outline.metadata)
    except LocatedError as error:
        raise error.at(checkpoint_location(outline)) from error


def _loads(serde: Serializer, value: Stored, data: Mapping[bytes, bytes]) -> Any:
    encoded = Encoded(value.tag, data[value.digest] if value.digest else value.packed)
    try:
        if len(encoded.data) < _LARGE:
            return serde.loads_typed(encoded)
        return with_gc_paused(serde.loads_typed, encoded)
    except ThreadmarkError:
        raise
    except Exception as error:
        raise SerializationError(f"the serializer cannot read it: {error}") from error
