"""The shapes of sessions, states and conversations, as arguments and results."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from threadmark.config import as_thread_id, parse_config
from threadmark.errors import ConfigError, SerializationError, short_repr
from threadmark.interfaces.interface import json_ready
from threadmark.model import MAPPING
from threadmark.names import THREAD_ID_BYTES, as_text, check_length
from threadmark.saver.kit import SaverContext, checked_owner, checked_run_id, microseconds_of


class StateInfo(NamedTuple):
    """A saved state without its value."""

    id: str
    thread_id: str
    created_at: datetime
    """The time at which its thread began."""
    updated_at: datetime
    """The time at which this state was saved."""
    metadata: dict[str, Any]
    """The metadata that you saved with it."""
    size_bytes: int | None
    """The encoded size, including parts that were stored before. None if a graph made the state."""


class StatePage(NamedTuple):
    """Some states, and the cursor of the next page, which is None on the last page."""

    states: list[StateInfo]
    cursor: str | None


_FIELDS = ("checkpoint_id", "session_id", "timestamp", "node_name", "step")


@dataclass(frozen=True, kw_only=True)
class SessionMetadata:
    """The ids of a checkpoint and its session, and the step that made it."""

    checkpoint_id: str | None = None
    """If it is None, `Sessions.save` makes one."""
    session_id: str
    timestamp: datetime | None = None
    """A time with a time zone, stored as ISO 8601 text with its offset from UTC and microseconds, so that the stored
    time is equal. If it is None, `Sessions.save` sets it."""
    node_name: str | None = None
    """The name of the finished step, any text. Also None if a graph stored the checkpoint without one."""
    step: int | None = None
    """The number of the step; you decide its unit."""

    def __post_init__(self) -> None:
        """Refuse values that cannot be stored."""
        as_text(self.session_id, "session_id")
        if self.checkpoint_id is not None and not as_text(self.checkpoint_id, "checkpoint_id"):
            raise ConfigError("checkpoint_id must not be empty: leave it out to get a new one")
        if self.node_name is not None:
            as_text(self.node_name, "node_name")
        if self.step is not None and (isinstance(self.step, bool) or not isinstance(self.step, int)):
            raise ConfigError(f"step must be a whole number or None, not {short_repr(self.step)}")
        if self.timestamp is not None:
            microseconds_of(self.timestamp, "timestamp")
            object.__setattr__(self, "timestamp", datetime.fromisoformat(self.timestamp.isoformat()))


@dataclass(frozen=True)
class SessionCheckpoint:
    """The state of a session after a step."""

    metadata: SessionMetadata
    state: Any

    def __post_init__(self) -> None:
        """Refuse other types, such as a dictionary in place of the metadata."""
        if not isinstance(self.metadata, SessionMetadata):
            raise ConfigError(
                f"metadata must be a threadmark.types.SessionMetadata, not {type(self.metadata).__name__}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the checkpoint as a dictionary for JSON, from which `from_dict` makes an equal one.

        Times are ISO text. Raises SerializationError with the place of the first part of the state that JSON would
        change: a tuple, bytes, a key that is not text, NaN, an instance of any other class.
        """
        about = self.metadata
        fields = {name: getattr(about, name) for name in _FIELDS}
        fields["timestamp"] = None if about.timestamp is None else about.timestamp.isoformat()
        return {"metadata": json_ready(fields, "metadata"), "state": json_ready(self.state, "state")}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "SessionCheckpoint":
        """Return the checkpoint from a dictionary that `to_dict` made. Raises ConfigError for any other dictionary."""
        fields = _parts(data, "a session's checkpoint", ("metadata", "state"))
        about = _parts(fields["metadata"], "its metadata", _FIELDS)
        time = about["timestamp"]
        try:
            moment = None if time is None else datetime.fromisoformat(as_text(time, "timestamp"))
        except ValueError as error:  # a ConfigError is one, too
            raise ConfigError(f"timestamp must be a time in ISO 8601 with its zone, not {short_repr(time)}") from error
        try:
            state = json_ready(fields["state"], "state")
        except SerializationError as error:
            raise ConfigError(f"{error}; `to_dict` makes no such dictionary") from error
        return cls(SessionMetadata(**{**about, "timestamp": moment}), state)


class SessionStats(NamedTuple):
    """The size of all sessions, without the threads of graphs."""

    sessions: int
    checkpoints: int
    checkpoints_per_session: float
    """The mean, 0 if there is no session."""
    size_bytes: int
    """Their stored size, counted as in `ThreadInfo.size_bytes`."""


def _parts(data: object, what: str, names: Collection[str]) -> dict[str, Any]:
    """Return a dictionary after checking that it has exactly these keys."""
    if not isinstance(data, Mapping) or data.keys() != set(names):
        keys = (
            f"the keys {', '.join(map(short_repr, data))}" if isinstance(data, Mapping) else f"a {type(data).__name__}"
        )
        raise ConfigError(f"{what} must be a dictionary of {', '.join(sorted(names))}, not {keys}")
    return dict(data)


ConversationConfig = Mapping[str, Any]
"""`{"thread_id": ..., "user_id": ..., "run_id": ..., "lease_token": ...}`; only the thread_id is required. The
configuration of a run, which has these under "configurable", is accepted, too."""


class Conversation(NamedTuple):
    """The conversation that a config names."""

    context: SaverContext
    """The saver's context; with a user, limited to this user's threads."""
    thread_id: str
    run_id: str | None
    lease_token: int | None

    def metadata(self) -> dict[str, Any]:
        """The metadata stored with a message or a state."""
        return {} if self.run_id is None else {"run_id": self.run_id}


def parse_conversation(context: SaverContext, config: ConversationConfig) -> Conversation:
    """Check a config. Raises ConfigError if it names no thread, or another owner than that of the saver's view."""
    fields = _fields(config)
    thread_id = as_thread_id(fields.get("thread_id"))
    check_length(thread_id, THREAD_ID_BYTES, "thread_id")
    run_id = fields.get("run_id")
    token = parse_config({"configurable": {"thread_id": thread_id, "lease_token": fields.get("lease_token")}})
    return Conversation(
        _of_user(context, fields), thread_id, None if run_id is None else checked_run_id(run_id), token.lease_token
    )


def user_context(context: SaverContext, config: ConversationConfig | None) -> SaverContext:
    """Return the context of the user in a config, which need not name a thread."""
    return context if config is None else _of_user(context, _fields(config))


def _fields(config: ConversationConfig) -> Mapping[str, Any]:
    if isinstance(config, MAPPING):
        configurable = config.get("configurable", config)
        if isinstance(configurable, MAPPING):
            if configurable is not config:
                _expect_none_beside(config)
            return configurable
    raise ConfigError('a conversation is named by a dictionary: {"thread_id": ..., "user_id": ..., "run_id": ...}')


def _expect_none_beside(config: ConversationConfig) -> None:
    """Raise ConfigError for keys outside of "configurable": to overlook a user there would show every user's threads.

    A run's configuration has its own `run_id` there.
    """
    for name in ("thread_id", "user_id", "lease_token"):
        if name in config:
            raise ConfigError(
                f'the config has {name!r} outside of "configurable", where it would be ignored: put it inside'
            )


def _of_user(context: SaverContext, fields: Mapping[str, Any]) -> SaverContext:
    user = fields.get("user_id")
    if user is None:
        return context
    return context.of_owner(checked_owner(user if isinstance(user, str) else as_thread_id(user)))
