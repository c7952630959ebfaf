"""The place of a call in a run: the task, its checkpoint at each level, and how often the task has made this call.

LangGraph keeps the configuration of the running task in a context variable. It is looked up in the module that has
it, if that was imported: without the engine there is no such module, and nothing of it is needed.
"""

import sys
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from threadmark.config import ParsedConfig, as_config, owner_in, parse_config
from threadmark.effects.table import Levels
from threadmark.errors import ConfigError
from threadmark.model import Config

_ENGINE = "langchain_core.runnables.config", "var_child_runnable_config"
_TASK = "__pregel_read"
"""An object that the engine makes for each execution of a task; all configurations inside of the task have it."""


class Place(NamedTuple):
    """The place of a call."""

    thread_id: str
    token: int | None = None
    owner: tuple[str, str] | None = None
    levels: Levels = ()
    """The checkpoint of the task at each level. Empty without an engine."""
    nodes: str = ""
    """The names of the nodes that lead to the task, which are the same in each run."""
    path: str = ""
    task: object = None
    attempt: int = 1
    step: int | None = None
    node: str | None = None
    durability: str | None = None
    """The engine's way of storing checkpoints, if the run names it."""

    @property
    def in_engine(self) -> bool:
        """Whether a task of an engine makes the call."""
        return bool(self.levels)


def place_of(thread: Config | str, owner_key: str | None) -> Place:
    """Return the place of a call without an engine."""
    config = as_config(thread)
    where = parse_config(config)
    return Place(where.thread_id, where.lease_token, _owner(config, owner_key))


def current_place(owner_key: str | None) -> Place:
    """Return the place of the running task. Raises ConfigError if there is none."""
    variable = getattr(sys.modules.get(_ENGINE[0]), _ENGINE[1], None)
    config: Config = (None if variable is None else variable.get()) or {}
    configurable = config.get("configurable") or {}
    if configurable.get("thread_id") is None:
        raise ConfigError(
            "no run with a thread_id is going on here, so the effect has no thread: call it in a node, task or tool of "
            "a graph with a checkpointer, or name the thread with effects.of(thread_id).once(...)"
        )
    where = parse_config({"configurable": {**configurable, "checkpoint_id": None}})
    metadata = config.get("metadata") or {}
    checkpoints = configurable.get("checkpoint_map") or {}
    ns = where.ns
    return Place(
        where.thread_id,
        where.lease_token,
        _owner(config, owner_key),
        _levels(checkpoints, where),
        "|".join(part.partition(":")[0] for part in ns.split("|")),
        repr(metadata.get("langgraph_path")),
        configurable.get(_TASK),
        _attempt(configurable),
        metadata.get("langgraph_step"),
        metadata.get("langgraph_node"),
        configurable.get("__pregel_durability"),
    )


def _levels(checkpoints: Mapping[str, str], where: ParsedConfig) -> Levels:
    """The checkpoints around a task, the graph's own first. JSON gives them back equal."""
    around = (ns for ns in checkpoints if ns == "" or where.ns.startswith(f"{ns}|") or ns == where.ns)
    return [[ns, checkpoints[ns]] for ns in sorted(around, key=len)]


def _attempt(configurable: Mapping[str, Any]) -> int:
    info = getattr(configurable.get("__pregel_runtime"), "execution_info", None)
    return getattr(info, "node_attempt", 1)


def _owner(config: Config, key: str | None) -> tuple[str, str] | None:
    owner = None if key is None else owner_in(config, {}, key)
    return None if owner is None or key is None else (key, owner)


class _Counter:
    """The calls of one execution of a task, by call site. Each attempt of it counts from the beginning."""

    def __init__(self) -> None:
        self.attempt = 0
        self.counts: dict[str, int] = {}


_counters: WeakKeyDictionary[object, _Counter] = WeakKeyDictionary()
_lock = threading.Lock()


def next_count(place: Place, ns: str) -> int:
    """Return how often this attempt of the task has come to a call site, this time included."""
    if place.task is None:
        return 1
    with _lock:
        counter = _counters.setdefault(place.task, _Counter())
        if counter.attempt != place.attempt:
            counter.attempt, counter.counts = place.attempt, {}
        counter.counts[ns] = counter.counts.get(ns, 0) + 1
        return counter.counts[ns]
