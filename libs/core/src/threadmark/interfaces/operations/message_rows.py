"""Messages as rows: each a checkpoint of its own, which shares no bytes with anything else.

So appending one costs the same whatever the length of the conversation, and removing one removes its row and exactly
the segments that this names. Nothing is compared with what was stored before, nothing is remembered to be compared
with, and each stored value begins with bytes of its own, so that no segment of another value can be equal.
"""

import secrets
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgpack

from threadmark.errors import CorruptDataError
from threadmark.header import Header
from threadmark.interfaces.messages import GivenMessage
from threadmark.model import CheckpointTuple
from threadmark.names import MESSAGES_NS
from threadmark.program import Program
from threadmark.saver.caches.encoding_cache import EncodingCache
from threadmark.saver.caches.segment_cache import SegmentCache, fill
from threadmark.saver.context import SaverContext
from threadmark.saver.loading.decoding import decode_channel
from threadmark.saver.loading.loader import CheckpointLoader, LoadedCheckpoint
from threadmark.saver.proving.checks import checkpoint_location, checkpoint_row
from threadmark.saver.storing import Deduplicator, encode
from threadmark.store import CheckpointRow, Key, Outline

_CHANNEL = "message"
_OWN_BYTES = 12
_PARTS = 3
"""Of a stored message: bytes of its own, its id, and the message."""
_NOTHING = EncodingCache(0)
"""Remembers nothing."""
_FIELDS: bytes = msgpack.packb({"v": 4})
"""The fields of each header: the number of the format of checkpoints, as engines of today have it."""


class MessageDraft(NamedTuple):
    """A message, encoded."""

    id: str
    header: bytes
    segments: dict[bytes, bytes]

    def row(self, thread_id: str, rank: str, created_at: int, metadata: str, run_id: str | None) -> CheckpointRow:
        """The row that holds it."""
        outline = Outline(thread_id, MESSAGES_NS, self.id, rank, None, created_at, metadata)
        return checkpoint_row(outline, self.header, run_id)


def drafted(context: SaverContext, thread_id: str, given: GivenMessage) -> MessageDraft:
    """Encode a message."""
    own = secrets.token_bytes(_OWN_BYTES)
    encoded = encode(context.serde, f'message "{given.id}"', (own, given.id, given.message))
    deduplicator = Deduplicator(alone(context), thread_id, None, {})
    value = deduplicator.store(encoded, ())
    header = Header({_CHANNEL: 1}, {_CHANNEL: value}, _FIELDS, None)
    stored, _ = deduplicator.store_header(header.to_bytes(), None)
    return MessageDraft(given.id, stored.body, deduplicator.segments())


def alone(context: SaverContext) -> SaverContext:
    """The same context, with nothing remembered that a message could be compared with, or of it."""
    return context._replace(encoding_cache=_NOTHING)


def message_keys(ids: Iterable[str]) -> list[Key]:
    """The keys of messages."""
    return [(MESSAGES_NS, message_id) for message_id in ids]


def segments_of(context: SaverContext, thread_id: str, rows: Sequence[CheckpointRow]) -> Program[set[bytes]]:
    """Return the segments that belong to these messages, and to nothing else."""
    found = yield from _opened(context, thread_id, rows, context.segment_cache())
    return {key for loader in found for key in (*loader.header_keys(), *loader.value_keys())}


def loaded_messages(
    context: SaverContext, thread_id: str, outlines: Sequence[Outline]
) -> Program[list[LoadedCheckpoint]]:
    """Return what `decoded_message` decodes, for the messages of a page."""
    rows = yield from context.store.rows(thread_id, [outline.key for outline in outlines])
    found = yield from loaded_rows(context, thread_id, rows)
    by_key = {each.outline.key: each for each in found}
    for outline in outlines:
        if outline.key not in by_key:
            raise CorruptDataError("its row is not found by its key", checkpoint_location(outline))
    return [by_key[outline.key] for outline in outlines]


def loaded_rows(
    context: SaverContext, thread_id: str, rows: Sequence[CheckpointRow]
) -> Program[list[LoadedCheckpoint]]:
    """Return what `decoded_message` decodes, for rows."""
    segment_cache = context.segment_cache()
    found = yield from _opened(context, thread_id, rows, segment_cache)
    yield from fill(segment_cache, context.store, thread_id, {key for each in found for key in each.value_keys()})
    return [loader.loaded() for loader in found]


def decoded_message(context: SaverContext, loaded: LoadedCheckpoint) -> Any:
    """Decode a message, anew for each caller."""
    values = loaded.header.values
    if values.keys() == {_CHANNEL}:
        value = decode_channel(context, loaded.outline, _CHANNEL, values[_CHANNEL], loaded.data)
        if type(value) is tuple and len(value) == _PARTS and value[1] == loaded.outline.id:
            return value[2]
    raise CorruptDataError("it is no message, and stands where only messages do", checkpoint_location(loaded.outline))


def message_in(found: CheckpointTuple) -> Any:
    """Return the message of a checkpoint as a saver gives it, which need not know that it is one."""
    _, _, message = found.checkpoint["channel_values"][_CHANNEL]
    return message


def _opened(
    context: SaverContext, thread_id: str, rows: Sequence[CheckpointRow], segment_cache: SegmentCache
) -> Program[list[CheckpointLoader]]:
    found = [CheckpointLoader(row, (), _NOTHING) for row in rows]
    yield from fill(segment_cache, context.store, thread_id, {key for each in found for key in each.header_keys()})
    for loader in found:
        loader.open_header(segment_cache)
    return found
