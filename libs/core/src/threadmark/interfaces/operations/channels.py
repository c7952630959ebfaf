"""A state as the values of channels, and as a draft of a checkpoint.

A plain dictionary whose keys are plain text has a channel for each key, so that a part of it can be read, and only what
changed is stored. Any other state is the value of one channel. So a state comes back as exactly what it was.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from threadmark.header import Header
from threadmark.rope import Source
from threadmark.saver.arguments import GivenCheckpoint
from threadmark.saver.caches.encoding_cache import Known
from threadmark.saver.storing import Deduplicator, Draft, encode
from threadmark.serde import Serializer
from threadmark.stored import Stored
from threadmark.versions import Version, next_version

_WHOLE = "__root__"
"""LangGraph's name for the channel of a state that is no dictionary."""

_OURS = "__"
"""Keys that begin so could be taken for a channel of the engine's."""

_FORMAT = 4
"""The format of a checkpoint's fields: that of LangGraph's."""


def channels_of(state: Any) -> dict[str, Any]:
    """Return the channel values that a state is stored as."""
    if type(state) is dict and all(type(key) is str and not key.startswith(_OURS) for key in state):
        return dict(state)  # its owner may change it while it is saved
    return {_WHOLE: state}


def state_of(values: Mapping[str, Any]) -> Any:
    """Return the state that is stored as these channel values. Those of a graph are its state."""
    return values[_WHOLE] if _WHOLE in values else dict(values)


def encoded(serde: Serializer, values: Mapping[str, Any]) -> dict[str, tuple[str, bytes]]:
    """Encode channel values. Returns each one's tag and bytes. Errors say where in the state they occurred."""
    locations = {channel: "state" if channel == _WHOLE else f"state[{channel!r}]" for channel in values}
    return {channel: encode(serde, locations[channel], value) for channel, value in values.items()}


class StateDraft(Draft):
    """A state to store. It is encoded at once, so that what cannot be stored is refused before anything is read."""

    def __init__(self, serde: Serializer, checkpoint_id: str, state: Any) -> None:
        fields = {"v": _FORMAT, "ts": datetime.now(UTC).isoformat(), "versions_seen": {}, "updated_channels": None}
        values = channels_of(state)
        super().__init__(serde, GivenCheckpoint(checkpoint_id, fields, values, {}, values.keys()))
        self._encoded |= encoded(serde, values)

    @property
    def size(self) -> int:
        """How long the state is as it was encoded, in bytes."""
        return sum(len(data) for _, data in self._encoded.values())

    def header(
        self, deduplicator: Deduplicator, parent: Known | None, near: Callable[[str, Stored | None], Sequence[Source]]
    ) -> tuple[Header, bytes]:
        """Return the header and its encoding. A channel has a new version if its value is not the parent's."""
        header, _ = super().header(deduplicator, parent, near)
        held = parent.header if parent else None
        new = _next_version(list(held.versions.values())) if held else 1
        versions = {
            channel: held.versions[channel] if held and _same(value, held.values.get(channel)) else new
            for channel, value in header.values.items()
        }
        header = header._replace(versions=versions)
        return header, header.to_bytes()


def _same(value: Stored, other: Stored | None) -> bool:
    """Whether both are one value. A short one has no digest."""
    if other is None or value.tag != other.tag or value.digest != other.digest:
        return False
    return bool(value.digest) or value.packed == other.packed


def _next_version(held: Sequence[Version]) -> Version:
    """A version after all of a checkpoint's. Where they are of several kinds, which no engine makes, of the first's."""
    alike = [version for version in held if isinstance(version, str) == isinstance(held[0], str)]
    return next_version(max(alike, default=None))
