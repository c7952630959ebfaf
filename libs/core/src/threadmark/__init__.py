"""Threadmark: checkpoint savers for Pregel-style graph engines. A put stores what changed.

import threadmark

with threadmark.open("sqlite:///agents.db") as saver:
    ...

`threadmark.types` has the types of what a saver returns, `threadmark.backends` the names for authors of backends.
"""

import threadmark.types  # noqa: F401 - it is there after `import threadmark`, as the others below
from threadmark.caching import MemoryCache, cached
from threadmark.effects import Effects
from threadmark.errors import (
    CheckpointNotFoundError,
    ClosedError,
    ConfigError,
    ConflictError,
    CorruptDataError,
    EffectError,
    EffectFailedError,
    EffectLostError,
    EffectUnknownError,
    ForbiddenTypeError,
    LeaseLostError,
    MissingDependencyError,
    ReplicationError,
    SchemaError,
    SerializationError,
    StoreError,
    ThreadBusyError,
    ThreadDeletedError,
    ThreadmarkError,
    ThreadNotFoundError,
    TransientStoreError,
)
from threadmark.ids import new_id
from threadmark.interfaces import CleanedStates, Conversations, Sessions, States
from threadmark.memory import MemorySaver
from threadmark.model import Checkpoint, CheckpointTuple
from threadmark.persistent import PersistentDict
from threadmark.replication import replicated
from threadmark.retention import Retention
from threadmark.saver import Saver, SaverProtocol
from threadmark.sealing import Keyring
from threadmark.serde import Serde
from threadmark.urls import open  # noqa: A004 - used as `threadmark.open`

__version__ = "0.1.0"

__all__ = [
    "Checkpoint",
    "CheckpointNotFoundError",
    "CheckpointTuple",
    "CleanedStates",
    "ClosedError",
    "ConfigError",
    "ConflictError",
    "Conversations",
    "CorruptDataError",
    "EffectError",
    "EffectFailedError",
    "EffectLostError",
    "EffectUnknownError",
    "Effects",
    "ForbiddenTypeError",
    "Keyring",
    "LeaseLostError",
    "MemoryCache",
    "MemorySaver",
    "MissingDependencyError",
    "PersistentDict",
    "ReplicationError",
    "Retention",
    "Saver",
    "SaverProtocol",
    "SchemaError",
    "Serde",
    "SerializationError",
    "Sessions",
    "States",
    "StoreError",
    "ThreadBusyError",
    "ThreadDeletedError",
    "ThreadNotFoundError",
    "ThreadmarkError",
    "TransientStoreError",
    "__version__",
    "cached",
    "new_id",
    "open",
    "replicated",
]

_MODULES = ["errors", "serde", "types"]
"""The modules with documented names. They are imported with the package."""


def __dir__() -> list[str]:
    """The public names, without the modules that only the packages of this project use."""
    return [*__all__, *_MODULES]
