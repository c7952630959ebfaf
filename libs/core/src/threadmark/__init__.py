"""Threadmark: checkpoint savers for Pregel-style graph engines. A put stores what changed.

import threadmark

with threadmark.open("sqlite:///agents.db") as saver:
    ...
"""

from threadmark.errors import (
    ClosedError,
    ConfigError,
    CorruptDataError,
    ForbiddenTypeError,
    MissingDependencyError,
    SchemaError,
    SerializationError,
    StoreError,
    ThreadDeletedError,
    ThreadmarkError,
    TransientStoreError,
)
from threadmark.ids import new_id
from threadmark.memory import MemorySaver
from threadmark.model import (
    ChannelStats,
    Checkpoint,
    CheckpointRef,
    CheckpointTuple,
    DeltaChannelHistory,
    Problem,
    ProblemKind,
    Pruned,
    PruneStrategy,
    Stats,
    Verified,
)
from threadmark.saver import Saver, SaverProtocol
from threadmark.sealing import Keyring
from threadmark.serde import Serde, Serializer
from threadmark.urls import open  # noqa: A004 - used as `threadmark.open`

__version__ = "0.1.0"

__all__ = [
    "ChannelStats",
    "Checkpoint",
    "CheckpointRef",
    "CheckpointTuple",
    "ClosedError",
    "ConfigError",
    "CorruptDataError",
    "DeltaChannelHistory",
    "ForbiddenTypeError",
    "Keyring",
    "MemorySaver",
    "MissingDependencyError",
    "Problem",
    "ProblemKind",
    "PruneStrategy",
    "Pruned",
    "Saver",
    "SaverProtocol",
    "SchemaError",
    "Serde",
    "SerializationError",
    "Serializer",
    "Stats",
    "StoreError",
    "ThreadDeletedError",
    "ThreadmarkError",
    "TransientStoreError",
    "Verified",
    "__version__",
    "new_id",
    "open",
]
