"""The shapes of sessions: a checkpoint with its metadata, and what all sessions hold."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from threadmark.errors import ConfigError, SerializationError, shown
from threadmark.interfaces.json_ready import json_ready
from threadmark.names import as_text
from threadmark.saver.thread_arguments import microseconds_of

_FIELDS = ("checkpoint_id", "session_id", "timestamp", "node_name", "step")


@dataclass(frozen=True, kw_only=True)
class SessionMetadata:
    """Which checkpoint of which session it is, and the step that made it."""

    checkpoint_id: str | None = None
    """Made by `Sessions.save` where it is None."""
    session_id: str
    timestamp: datetime | None = None
    """Has a time zone. It is kept as ISO 8601 says it, with its offset from UTC and to the microsecond, so that what
    is stored is equal to it. Made by `Sessions.save` where it is None."""
    node_name: str | None = None
    """The name of the step that was done, any text. None also where a graph stored the checkpoint without one."""
    step: int | None = None
    """Its number; what it counts is the caller's affair."""

    def __post_init__(self) -> None:
        """Refuse what cannot be stored."""
        as_text(self.session_id, "session_id")
        if self.checkpoint_id is not None and not as_text(self.checkpoint_id, "checkpoint_id"):
            raise ConfigError("checkpoint_id must not be empty: leave it out, and one is made")
        if self.node_name is not None:
            as_text(self.node_name, "node_name")
        if self.step is not None and (isinstance(self.step, bool) or not isinstance(self.step, int)):
            raise ConfigError(f"step must be a whole number or None, not {shown(self.step)}")
        if self.timestamp is not None:
            microseconds_of(self.timestamp, "timestamp")
            object.__setattr__(self, "timestamp", datetime.fromisoformat(self.timestamp.isoformat()))


@dataclass(frozen=True)
class SessionCheckpoint:
    """The state of a session after a step."""

    metadata: SessionMetadata
    state: Any

    def __post_init__(self) -> None:
        """Refuse another shape, such as the dictionary of one."""
        if not isinstance(self.metadata, SessionMetadata):
            raise ConfigError(f"metadata must be a threadmark.SessionMetadata, not {type(self.metadata).__name__}")

    def to_dict(self) -> dict[str, Any]:
        """Return it as a dictionary that JSON carries, from which `from_dict` makes an equal one.

        Times are ISO text. Raises SerializationError with the place of the first part of the state that JSON would not
        give back as it is: a tuple, bytes, a key that is not text, NaN, an instance of any other class.
        """
        about = self.metadata
        fields = {name: getattr(about, name) for name in _FIELDS}
        fields["timestamp"] = None if about.timestamp is None else about.timestamp.isoformat()
        return {"metadata": json_ready(fields, "metadata"), "state": json_ready(self.state, "state")}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> "SessionCheckpoint":
        """Return the checkpoint that `to_dict` made a dictionary of. Raises ConfigError for any other dictionary."""
        fields = _parts(given, "a session's checkpoint", ("metadata", "state"))
        about = _parts(fields["metadata"], "its metadata", _FIELDS)
        time = about["timestamp"]
        try:
            moment = None if time is None else datetime.fromisoformat(as_text(time, "timestamp"))
        except ValueError as error:  # a ConfigError is one, too
            raise ConfigError(f"timestamp must be a time in ISO 8601 with its zone, not {shown(time)}") from error
        try:
            state = json_ready(fields["state"], "state")
        except SerializationError as error:
            raise ConfigError(f"{error}; `to_dict` makes no such dictionary") from error
        return cls(SessionMetadata(**{**about, "timestamp": moment}), state)


class SessionStats(NamedTuple):
    """What all sessions hold, those of graphs left out."""

    sessions: int
    checkpoints: int
    checkpoints_per_session: float
    """The mean, 0 where there is no session."""
    bytes: int
    """What is stored of them, as `ThreadInfo.bytes` counts."""


def _parts(given: object, what: str, names: Collection[str]) -> dict[str, Any]:
    """A dictionary with exactly these keys."""
    if not isinstance(given, Mapping) or given.keys() != set(names):
        keys = f"the keys {', '.join(map(shown, given))}" if isinstance(given, Mapping) else f"a {type(given).__name__}"
        raise ConfigError(f"{what} must be a dictionary of {', '.join(sorted(names))}, not {keys}")
    return dict(given)
