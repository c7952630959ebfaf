"""A new checkpoint with the state of another one: its header shares the bytes, and only new values are encoded."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from threadmark.errors import ConfigError, located
from threadmark.header import Header, with_fields
from threadmark.metadata import merged, run_id_of, to_json
from threadmark.model import MAPPING, Config
from threadmark.names import as_text
from threadmark.rope import Source
from threadmark.saver.context import SaverContext
from threadmark.saver.loading.decoding import decode_metadata
from threadmark.saver.loading.loader import LoadedCheckpoint
from threadmark.saver.operations.delta import is_snapshot, may_be_delta
from threadmark.saver.operations.travel.entries import steps_of
from threadmark.saver.proving.checks import checkpoint_location, checkpoint_row, header_location
from threadmark.saver.pruning.survivors import sends_lie_with_parent
from threadmark.saver.storing import Deduplicator, encode, needed_segments
from threadmark.store import CheckpointRow, Outline, now, rank_after
from threadmark.stored import Stored
from threadmark.travel import Values
from threadmark.versions import Version, next_version

_OF_ANOTHER_STEP = {"run_id", "writes"}
"""Keys of metadata that say what made a checkpoint. Its fork was made by nobody's run."""


class NewState(NamedTuple):
    """New values of channels, encoded."""

    encoded: Mapping[str, tuple[str, bytes]]

    @classmethod
    def given(cls, context: SaverContext, values: object) -> "NewState":
        """Check the values given to `fork`, and encode them."""
        if values is None:
            return cls({})
        if not isinstance(values, MAPPING):
            raise ConfigError(f"values must be a dictionary of channels, not {type(values).__name__}")
        plain: Values = {as_text(channel, "a channel's name"): value for channel, value in values.items()}
        if len(plain) != len(values):
            raise ConfigError("values has two channels of one name")
        return cls({channel: encode(context.serde, f'channel "{channel}"', value) for channel, value in plain.items()})


class Branch(NamedTuple):
    """A checkpoint that is not stored yet."""

    id: str
    parent: str | None
    header: Header
    stored: Stored
    """The header's stored form."""
    source: Source
    metadata: dict[str, Any]

    def row(self, thread_id: str, ns: str, newest: str) -> CheckpointRow:
        """Return its row, where it comes after the newest rank."""
        outline = Outline(
            thread_id, ns, self.id, rank_after(newest, self.id), self.parent, now(), to_json(self.metadata)
        )
        return checkpoint_row(outline, self.stored.body, run_id_of(self.metadata))

    def needs(self) -> tuple[bytes, ...]:
        """The segments that reading it takes."""
        return needed_segments(self.header, self.stored)


def branch_of(
    new: str, config: Config, loaded: LoadedCheckpoint, state: NewState, deduplicator: Deduplicator
) -> Branch:
    """Return a new checkpoint, of a new id, with the state of another one, and new values of some channels."""
    outline, header = loaded.outline, loaded.header
    if any(value.digest for value in header.values.values()):
        deduplicator.inherit()
    values = dict(header.values)
    versions = dict(header.versions)
    changes: dict[str, Any] = {"ts": datetime.now(UTC).isoformat()}
    if state.encoded:
        changes["updated_channels"] = None  # LangGraph would look at no other channels for what runs next
        following: dict[type, Version] = {}  # one version for all that change, as a step of LangGraph gives
        for channel, encoded in state.encoded.items():
            values[channel] = deduplicator.store(encoded, deduplicator.sources(header.values.get(channel)))
            version = _next(header.versions, channel)
            versions[channel] = following.setdefault(type(version), version)
    with located(header_location(outline)):
        header = with_fields(Header(versions, values, header.plain, header.rest), changes)
    stored, source = deduplicator.store_header(header.to_bytes(), loaded.source)
    parent = outline.parent if _is_read_from_ancestors(loaded) else outline.id
    return Branch(new, parent, header, stored, source, _metadata(config, outline))


def expect_plain_channels(
    context: SaverContext, loaded: LoadedCheckpoint, state: NewState, known: Iterable[str], counted: Iterable[str]
) -> None:
    """Raise ConfigError for channels that nobody knows, and for delta channels, whose values only the graph can make.

    `known` are the channels of the thread, `counted` those that are known to be delta channels.
    """
    known, counted = set(known), set(counted)
    where = checkpoint_location(loaded.outline)
    for channel in state.encoded:
        if channel not in known:
            raise ConfigError(
                f"{where} has no channel {channel!r}, and neither has the newest: its channels are "
                f"{', '.join(map(repr, sorted(known)))}. `graph.update_state` sets one that nothing was written to yet"
            )
        value = loaded.header.values.get(channel)
        is_delta = channel in counted if value is None else is_snapshot(context.serde, loaded.encoded(value))
        if is_delta:
            raise ConfigError(
                f"channel {channel!r} of {where} is a delta channel, which is stored as changes: "
                "fork without it, and set it with `graph.update_state`"
            )


def _is_read_from_ancestors(loaded: LoadedCheckpoint) -> bool:
    """Whether a part of the state may lie in the pending writes of ancestors: a delta channel, or packets.

    A child would read the writes of this checkpoint as well. Its sibling reads what it reads.
    """
    header = loaded.header
    lacking = header.versions.keys() - header.values.keys()
    return any(map(may_be_delta, lacking)) or sends_lie_with_parent(header)


def _next(versions: Mapping[str, Version], channel: str) -> Version:
    """A version greater than all of its kind, as LangGraph gives to a channel that changes."""
    example = versions.get(channel, next(iter(versions.values()), None))
    return next_version(max((each for each in versions.values() if type(each) is type(example)), default=None))


def _metadata(config: Config, outline: Outline) -> dict[str, Any]:
    metadata = {key: value for key, value in decode_metadata(outline).items() if key not in _OF_ANOTHER_STEP}
    step = steps_of(metadata).step
    made = {"source": "fork"} if step is None else {"source": "fork", "step": step + 1}
    return merged(config, {**metadata, **made})
