"""From rows to a checkpoint: which bytes are still missing, then the whole, proven and decoded.

Pure: a program asks an `Opening` what it needs, fetches it, and hands it over.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from threadmark.config import Place
from threadmark.errors import SerializationError, ThreadmarkError, located
from threadmark.header import Header, Serializer, joined_fields
from threadmark.metadata import from_json
from threadmark.model import Checkpoint, CheckpointTuple
from threadmark.recall import Known, Recall
from threadmark.rope import Source
from threadmark.saver.checks import checkpoint_place, prove_checkpoint, prove_write, write_place
from threadmark.store import CheckpointRow, Outline, WriteRow
from threadmark.stored import Encoded, Stored

Wanted = Callable[[str], bool]
"""Whether the value of this channel is to be read."""


class Write(NamedTuple):
    """A pending write whose row has been proven."""

    row: WriteRow
    value: Stored


class Loaded(NamedTuple):
    """A checkpoint with the bytes of its values, all of them proven; decoding is left to the one who wants it."""

    epoch: int
    outline: Outline
    header: Header
    stored: Stored
    """The header's own stored form."""
    source: Source
    """The header's own encoding."""
    writes: Sequence[Write]
    data: Mapping[bytes, bytes]
    """The bytes of the values, by digest."""

    @property
    def header_keys(self) -> tuple[bytes, ...]:
        """The segments of the header."""
        return self.stored.keys()

    def known(self) -> Known:
        """The checkpoint as a later put needs it."""
        return Known(self.epoch, self.outline.rank, self.header, self.source, self.stored.digest)

    def values(self) -> dict[bytes, Stored]:
        """The values whose bytes were read, by digest."""
        stored = [*self.header.values.values(), *(write.value for write in self.writes)]
        return {value.digest: value for value in stored if value.digest in self.data}

    def sources(self) -> dict[bytes, Source]:
        """The values that were read, to compare others with."""
        return {digest: value.source(self.data[digest]) for digest, value in self.values().items()}


class Opening:
    """One checkpoint while it is being read.

    Call `header_keys`, fetch, `open_header`, `value_keys`, fetch, `loaded`. Damage raises CorruptDataError that
    names the place.
    """

    header: Header

    def __init__(self, row: CheckpointRow, writes: Sequence[WriteRow], recall: Recall) -> None:
        prove_checkpoint(row)
        self.outline = row.outline
        self._recall = recall
        self._place = checkpoint_place(row.outline)
        with located(f"{self._place}, header"):
            self._header_stored = Stored.from_bytes(row.header)
        self._known = recall.header(*row.outline[:3], self._header_stored.digest)
        self._source = Source(b"", ())
        self._writes = proven_writes(row.outline.thread_id, writes)
        self._data: dict[bytes, bytes] = {}
        self._missing: dict[bytes, tuple[Stored, str]] = {}

    def header_keys(self) -> Sequence[bytes]:
        """The segments of the header."""
        return self._header_stored.keys()

    def missing_header_keys(self) -> Sequence[bytes]:
        """The same, unless the header is remembered."""
        return self.header_keys() if self._known is None else ()

    def header_size(self) -> int:
        """How long the header is."""
        return self._header_stored.size()

    def open_header(self, segments: Mapping[bytes, bytes]) -> None:
        """Read the header."""
        if self._known is not None:
            # The same bytes may lie in other segments by now, so only they are taken from memory.
            self._source = self._header_stored.source(self._known.source.data)
            self.header = self._known.header
            return
        with located(f"{self._place}, header"):
            data = self._header_stored.data(segments)
            self.header = Header.from_bytes(data)
        self._source = self._header_stored.source(data)

    def value_keys(self, wanted: Wanted | None = None) -> set[bytes]:
        """The segments of those values whose bytes are not remembered."""
        for channel, value in self.header.values.items():
            if (wanted is None or wanted(channel)) and self._lacks(value):
                self._missing[value.digest] = (value, f"{self._place}, channel {channel!r}")
        for row, value in self._writes:
            if (wanted is None or wanted(row.channel)) and self._lacks(value):
                self._missing[value.digest] = (value, write_place(self.outline.thread_id, row))
        return {key for value, _ in self._missing.values() for key in value.keys()}  # noqa: SIM118 - not a mapping

    def loaded(self, epoch: int, segments: Mapping[bytes, bytes], expanded: dict[bytes, bytes] | None = None) -> Loaded:
        """The whole, as it was read in this epoch of the thread; `expanded` is shared with other checkpoints."""
        for digest, (value, place) in self._missing.items():
            with located(place):
                self._data[digest] = value.data(segments, expanded)
        return Loaded(epoch, self.outline, self.header, self._header_stored, self._source, self._writes, self._data)

    def _lacks(self, value: Stored) -> bool:
        """Whether the value's segments are needed."""
        if not value.digest or value.digest in self._data:
            return False
        data = self._recall.data(self.outline.thread_id, value.digest)
        if data is not None:
            self._data[value.digest] = data
        return data is None


def proven_writes(thread_id: str, rows: Sequence[WriteRow]) -> list[Write]:
    """Proven writes in the order in which a step applies them."""
    for row in rows:
        prove_write(thread_id, row)  # before they are sorted: what is damaged may not even compare
    writes = []
    for row in sorted(rows, key=lambda row: (row.task_path, row.task_id, row.idx)):
        with located(write_place(thread_id, row)):
            writes.append(Write(row, Stored.from_bytes(row.value)))
    return writes


def remember(recall: Recall, loaded: Loaded) -> None:
    """Keep what was read for the put that may follow."""
    thread_id, ns, checkpoint_id = loaded.outline[:3]
    recall.see_checkpoint(thread_id, ns, checkpoint_id, loaded.known())
    for digest, value in loaded.values().items():
        recall.see_value(thread_id, loaded.epoch, value, value.source(loaded.data[digest]))
    for row, value in loaded.writes:
        recall.see_write(thread_id, ns, checkpoint_id, row.channel, value.digest)


def decoded(loaded: Loaded, serde: Serializer) -> CheckpointTuple:
    """The checkpoint as its user sees it; every call decodes anew, so that nothing is shared."""
    outline, header = loaded.outline, loaded.header
    place = checkpoint_place(outline)
    with located(f"{place}, header"):
        fields = decode_fields(header, serde)
    checkpoint: dict[str, Any] = {
        **fields,
        "id": outline.id,
        "channel_values": {
            channel: decode_value(value, loaded.data, serde, f"{place}, channel {channel!r}")
            for channel, value in header.values.items()
        },
        "channel_versions": dict(header.versions),
    }
    with located(place):
        metadata = from_json(outline.metadata)
    return CheckpointTuple(
        config=Place(outline.thread_id, outline.ns, outline.id).config(),
        checkpoint=Checkpoint(**checkpoint),  # type: ignore[typeddict-item]  # the fields are those that were put
        metadata=metadata,
        parent_config=Place(outline.thread_id, outline.ns, outline.parent).config() if outline.parent else None,
        pending_writes=[decode_write(outline.thread_id, write, loaded.data, serde) for write in loaded.writes],
    )


def decode_write(thread_id: str, write: Write, data: Mapping[bytes, bytes], serde: Serializer) -> tuple[str, str, Any]:
    """A pending write as its user sees it."""
    row = write.row
    value = decode_value(write.value, data, serde, write_place(thread_id, row))
    return row.task_id, row.channel, value


def decode_value(value: Stored, data: Mapping[bytes, bytes], serde: Serializer, place: str) -> Any:
    """A stored value as its user sees it; errors name the place."""
    literal = value.literal
    encoded = Encoded(value.tag, data[value.digest] if literal is None else literal)
    with located(place):
        return _loads(serde, encoded)


def decode_fields(header: Header, serde: Serializer) -> dict[str, Any]:
    """The fields of a checkpoint that are not its values."""
    try:
        return joined_fields(header, serde)
    except ThreadmarkError:
        raise
    except Exception as error:
        raise SerializationError(f"the serializer cannot read its fields: {error}") from error


def _loads(serde: Serializer, encoded: Encoded) -> Any:
    try:
        return serde.loads_typed(encoded)
    except ThreadmarkError:
        raise
    except Exception as error:
        raise SerializationError(f"the serializer cannot read it: {error}") from error
