"""A checkpoint on its way into the store: encoded values, and the header that says where their bytes lie."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from threadmark.errors import LocatedError, SerializationError, ThreadmarkError
from threadmark.header import Header, split_fields
from threadmark.rope import Source
from threadmark.saver.arguments import GivenCheckpoint
from threadmark.saver.caches.encoding_cache import Known
from threadmark.saver.storing.deduplicator import Deduplicator
from threadmark.serde import Serializer
from threadmark.stored import LONGEST_TAG, Encoded, Stored
from threadmark.versions import Version


class Draft:
    """A checkpoint to store: its values are encoded when first needed, and once."""

    def __init__(self, serde: Serializer, given: GivenCheckpoint) -> None:
        self.id = given.id
        self._serde = serde
        self._values = given.values
        self._versions = dict(given.versions)
        self._new = given.new
        self._plain, self._rest = split_fields(given.fields, partial(encode, serde, "the checkpoint"))
        self._encoded: dict[str, Encoded] = {}

    @property
    def reads(self) -> set[str]:
        """The channels whose value in the parent is worth having, to store only what changed."""
        return {channel for channel in self._values if channel in self._new}

    def header(
        self, deduplicator: Deduplicator, parent: Known | None, written: Callable[[str], Sequence[Source]]
    ) -> Header:
        """Return the header with every value in its stored form. `written` gives what tasks wrote to a channel."""
        held = parent.header if parent else _NOTHING
        values: dict[str, Stored] = {}
        for channel, value in self._values.items():
            if channel in held.values and self._unchanged(channel, held.versions):
                values[channel] = deduplicator.inherit(held.values[channel])
            else:
                base = deduplicator.sources(held.values.get(channel))
                values[channel] = deduplicator.store(self._encode(channel, value), [*base, *written(channel)])
        for channel in self._versions:
            # Where the version has moved on, nothing is inherited: LangGraph puts a copy of a checkpoint as its
            # sibling, with no new versions, and a channel that was emptied on the way stays empty.
            if channel not in values and channel in held.values and self._unchanged(channel, held.versions):
                values[channel] = deduplicator.inherit(held.values[channel])
        return Header(self._versions, values, self._plain, self._rest)

    def _unchanged(self, channel: str, held: Mapping[str, Version]) -> bool:
        return channel not in self._new and channel in held and held[channel] == self._versions.get(channel)

    def _encode(self, channel: str, value: Any) -> Encoded:
        if channel not in self._encoded:
            self._encoded[channel] = encode(self._serde, f'channel "{channel}"', value)
        return self._encoded[channel]


_NOTHING = Header({}, {}, b"", None)


def needed_segments(header: Header, stored: Stored) -> tuple[bytes, ...]:
    """The segments that reading a checkpoint takes, those of its header first."""
    keys = [*stored.segment_keys(), *(key for value in header.values.values() for key in value.segment_keys())]
    return tuple(dict.fromkeys(keys))


def encode(serde: Serializer, what: str, value: Any) -> Encoded:
    """A value, encoded; errors say what it is, such as a channel, and the way inside the value.

    What the user's own serializer raises is the cause of a SerializationError.
    """
    try:
        encoded = Encoded.of(serde.dumps_typed(value))
        length = len(encoded.tag.encode("utf-8", "surrogatepass"))
    except LocatedError as error:
        raise error.at(what) from error.origin
    except ThreadmarkError:
        raise
    except Exception as error:
        raise SerializationError(f"the serializer cannot store a {type(value).__name__}: {error}", what) from error
    if length > LONGEST_TAG:
        raise SerializationError(f"the serializer's tag is longer than {LONGEST_TAG} bytes", what)
    return encoded
