"""The fields of a run's configuration that a saver reads: the checkpoint that it names, and metadata that it adds."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from threadmark.errors import ConfigError, short_repr
from threadmark.model import MAPPING, Config
from threadmark.names import THREAD_ID_BYTES, as_text, check_length

NOT_METADATA = frozenset(
    {
        "thread_id",
        "checkpoint_id",
        "checkpoint_ns",
        "checkpoint_map",
        "langgraph_step",
        "langgraph_node",
        "langgraph_triggers",
        "langgraph_path",
        "langgraph_checkpoint_ns",
        "lease_token",
        "expect_newest",
    }
)
"""Keys of `configurable` and `metadata` that locate a run and do not describe it."""


_NO_TOKEN = 2**63 - 1
"""Tokens of users are smaller: this one is `store.ANYONE`, which ignores leases."""

NO_CONFIGURABLE = "the config has no 'configurable': give {'configurable': {'thread_id': ...}}"


class ParsedConfig(NamedTuple):
    """A thread, a namespace in it, and perhaps one checkpoint."""

    thread_id: str
    ns: str
    checkpoint_id: str | None
    lease_token: int | None = None

    def config(self) -> dict[str, Any]:
        """The configuration that names this checkpoint, with the token of the lease that it was stored under."""
        thread_id, ns, checkpoint_id, token = self
        named: dict[str, Any] = {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}
        if token is not None:
            named["lease_token"] = token
        return {"configurable": named}

    def __str__(self) -> str:
        checkpoint = "" if self.checkpoint_id is None else f", checkpoint {self.checkpoint_id!r}"
        return f"thread {self.thread_id!r}, namespace {self.ns!r}{checkpoint}"


def config_of(thread_id: str, ns: str, checkpoint_id: str | None) -> dict[str, Any]:
    """The configuration that names a checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}


def parse_config(config: Config | str) -> ParsedConfig:
    """Parse a run's configuration. A missing namespace is the root namespace."""
    configurable = config.get("configurable") if type(config) is dict else None
    get = (configurable if type(configurable) is dict else _configurable(config)).get
    thread_id, ns, checkpoint_id = get("thread_id"), get("checkpoint_ns"), get("checkpoint_id")
    token = get("lease_token")
    if checkpoint_id is not None and type(checkpoint_id) is not str:
        checkpoint_id = _as_checkpoint_id(checkpoint_id)
    return ParsedConfig(
        thread_id=thread_id if type(thread_id) is str else as_thread_id(thread_id),
        ns=ns if type(ns) is str else _as_namespace(ns) or "",
        checkpoint_id=checkpoint_id or None,
        lease_token=None if token is None else _as_token(token),
    )


def thread_id(config: Config | str) -> str:
    """The thread that `config` names."""
    return as_thread_id(_configurable(config).get("thread_id"))


def namespace(config: Config | str) -> str | None:
    """The namespace that `config` names, or None."""
    return _as_namespace(_configurable(config).get("checkpoint_ns"))


def checkpoint_id(config: Config | str) -> str | None:
    """The checkpoint that `config` names, or None."""
    return _as_checkpoint_id(_configurable(config).get("checkpoint_id"))


def as_thread_id(value: object) -> str:
    """A thread id as text: an int or a UUID names the same thread as its string."""
    if isinstance(value, (str, UUID)):
        return as_text(value if isinstance(value, str) else str(value), "thread_id")
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return int.__repr__(value)
        except ValueError as error:
            raise ConfigError("the thread_id is an int of too many digits: give its text") from error
    if value is None:
        raise ConfigError("no thread_id: give {'configurable': {'thread_id': ...}}")
    raise ConfigError(f"thread_id must be a string, an int or a UUID, not {type(value).__name__}")


def as_config(thread: object) -> Config:
    """A configuration as it is; for a thread's id, the configuration that names the thread and nothing else."""
    return thread if isinstance(thread, MAPPING) else {"configurable": {"thread_id": thread}}


def named_thread(thread: object) -> str:
    """The thread that a caller names: by its id, or by a configuration."""
    return thread_id(as_config(thread))


def config_metadata(config: Config) -> dict[str, Any]:
    """The scalars under `metadata` and `configurable` that are kept with each checkpoint of the run."""
    if not isinstance(config, MAPPING):
        raise ConfigError(NO_CONFIGURABLE)
    found: dict[str, Any] = {}
    for part in (config.get("metadata"), config.get("configurable")):
        if part is None:
            continue
        if not isinstance(part, MAPPING):
            raise ConfigError(f"the config's 'metadata' must be a dictionary, not {type(part).__name__}")
        if NOT_METADATA.issuperset(part):
            continue
        for key, value in part.items():
            if key in NOT_METADATA or key in found:
                continue
            if not isinstance(key, str):
                raise ConfigError(f"the config's key {short_repr(key)} is not a string: keys become those of metadata")
            if not key.startswith("__") and isinstance(value, (str, int, bool, float)):
                found[key] = value
    return found


def _as_namespace(value: object) -> str | None:
    return None if value is None else as_text(value, "checkpoint_ns")


def _as_checkpoint_id(value: object) -> str | None:
    """None for an empty one, too: no checkpoint has it."""
    if value is None:
        return None
    return as_text(str(value) if isinstance(value, UUID) else value, "checkpoint_id") or None


def owner_in(config: Config, metadata: Mapping[str, Any], key: str) -> str | None:
    """The owner that is named under a key: in the configuration's `configurable` or `metadata`, or a checkpoint's."""
    for part in (config.get("configurable"), config.get("metadata"), metadata):
        value = part.get(key) if part is not None and isinstance(part, MAPPING) else None
        if value is None:
            continue
        if isinstance(value, (str, UUID)) or (isinstance(value, int) and not isinstance(value, bool)):
            owner = as_thread_id(value)
            check_length(owner, THREAD_ID_BYTES, f"owner, which {key!r} names,")
            return owner or None
    return None


def _as_token(value: object) -> int:
    if type(value) is int and 0 < value < _NO_TOKEN:
        return value
    raise ConfigError(f"lease_token must be the token of a lease, a positive int, not {short_repr(value)}")


def _configurable(config: Config | str) -> Mapping[str, Any]:
    """The `configurable` of a configuration, or of the one that a thread's id stands for."""
    if isinstance(config, (str, UUID)):
        config = as_config(config)
    configurable = config.get("configurable") if isinstance(config, MAPPING) else None
    if not isinstance(configurable, MAPPING):
        raise ConfigError(NO_CONFIGURABLE)
    return configurable
