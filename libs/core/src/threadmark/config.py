"""What a saver reads from a run's configuration: the place it names, and what it adds to metadata."""

from typing import Any, NamedTuple
from uuid import UUID

from threadmark.errors import ConfigError
from threadmark.model import Config

# Keys of `configurable` and `metadata` that say where a run is, not what it is about.
_NOT_METADATA = {
    "thread_id",
    "checkpoint_id",
    "checkpoint_ns",
    "checkpoint_map",
    "langgraph_step",
    "langgraph_node",
    "langgraph_triggers",
    "langgraph_path",
    "langgraph_checkpoint_ns",
}


class Place(NamedTuple):
    """A thread, a namespace in it, and perhaps one checkpoint."""

    thread_id: str
    ns: str
    checkpoint_id: str | None

    def config(self) -> dict[str, Any]:
        """The configuration that names this checkpoint."""
        return {
            "configurable": {
                "thread_id": self.thread_id,
                "checkpoint_ns": self.ns,
                "checkpoint_id": self.checkpoint_id,
            }
        }

    def __str__(self) -> str:
        return f"thread {self.thread_id!r}, namespace {self.ns!r}, checkpoint {self.checkpoint_id!r}"


def place(config: Config) -> Place:
    """The place that `config` names; a missing namespace is the root namespace."""
    return Place(thread_id(config), namespace(config) or "", checkpoint_id(config))


def thread_id(config: Config) -> str:
    """The thread that `config` names."""
    return as_thread_id(_configurable(config).get("thread_id"))


def namespace(config: Config) -> str | None:
    """The namespace that `config` names, None where it names none."""
    ns = _configurable(config).get("checkpoint_ns")
    if ns is not None and not isinstance(ns, str):
        raise ConfigError(f"checkpoint_ns must be a string, not {type(ns).__name__}: give the namespace's name")
    return ns


def checkpoint_id(config: Config) -> str | None:
    """The checkpoint that `config` names, None where it names none."""
    value = _configurable(config).get("checkpoint_id")
    if value is None or value == "":
        return None
    if not isinstance(value, (str, UUID)):
        raise ConfigError(f"checkpoint_id must be a string, not {type(value).__name__}: give the checkpoint's id")
    return str(value)


def as_thread_id(value: object) -> str:
    """A thread id as text: an int or a UUID names the same thread as its string."""
    if isinstance(value, (str, int, UUID)) and not isinstance(value, bool):
        return str(value)
    if value is None:
        raise ConfigError("no thread_id: give {'configurable': {'thread_id': ...}}")
    raise ConfigError(f"thread_id must be a string, an int or a UUID, not {type(value).__name__}")


def config_metadata(config: Config) -> dict[str, Any]:
    """The scalars under `metadata` and `configurable` that are kept with each checkpoint of the run."""
    found: dict[str, Any] = {}
    for part in (config.get("metadata"), config.get("configurable")):
        for key, value in (part or {}).items():
            if key in found or key in _NOT_METADATA or key.startswith("__"):
                continue
            if isinstance(value, (str, int, bool, float)):
                found[key] = value
    return found


def _configurable(config: Config) -> dict[str, Any]:
    configurable = config.get("configurable") if hasattr(config, "get") else None
    if not isinstance(configurable, dict):
        raise ConfigError("the config has no 'configurable': give {'configurable': {'thread_id': ...}}")
    return configurable
