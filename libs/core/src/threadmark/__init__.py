"""Threadmark: checkpoint savers for Pregel-style graph engines. A put stores what changed.

import threadmark

with threadmark.open("sqlite:///agents.db") as saver:
    ...
"""

from threadmark.caching import Cache, CachedSaver, MemoryCache, cached
from threadmark.errors import (
    CheckpointNotFoundError,
    ClosedError,
    ConfigError,
    ConflictError,
    CorruptDataError,
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
from threadmark.interfaces import (
    CleanedStates,
    Conversations,
    SessionCheckpoint,
    SessionMetadata,
    Sessions,
    SessionStats,
    SharedCache,
    StateInfo,
    StatePage,
    States,
)
from threadmark.leases.lease import Lease
from threadmark.leases.taking import OnBusy
from threadmark.memory import MemorySaver
from threadmark.model import (
    UNSET,
    Checkpoint,
    CheckpointRef,
    CheckpointTuple,
    DeltaChannelHistory,
    MessagePage,
    OnProgress,
    Problem,
    ProblemKind,
    Progress,
    PruneReport,
    PruneStrategy,
    RetentionReport,
    ThreadInfo,
    ThreadPage,
)
from threadmark.operating.model import ChannelStats, Stats, VerifyReport
from threadmark.persistent import PersistentDict
from threadmark.replication import ReconcileReport, ReplicatedSaver, ReplicationStatus, SideStatus, replicated
from threadmark.retention import Retention
from threadmark.saver import Saver, SaverProtocol
from threadmark.sealing import Keyring
from threadmark.serde import Serde, Serializer
from threadmark.serde.object_view import ObjectView
from threadmark.travel.model import (
    Blame,
    Branch,
    Change,
    Diff,
    Edit,
    HistoryEntry,
    HistoryPage,
    Match,
    SearchPage,
    Tree,
    TreeNode,
    WriteInfo,
)
from threadmark.urls import open  # noqa: A004 - used as `threadmark.open`

__version__ = "0.1.0"

__all__ = [
    "UNSET",
    "Blame",
    "Branch",
    "Cache",
    "CachedSaver",
    "Change",
    "ChannelStats",
    "Checkpoint",
    "CheckpointNotFoundError",
    "CheckpointRef",
    "CheckpointTuple",
    "CleanedStates",
    "ClosedError",
    "ConfigError",
    "ConflictError",
    "Conversations",
    "CorruptDataError",
    "DeltaChannelHistory",
    "Diff",
    "Edit",
    "ForbiddenTypeError",
    "HistoryEntry",
    "HistoryPage",
    "Keyring",
    "Lease",
    "LeaseLostError",
    "Match",
    "MemoryCache",
    "MemorySaver",
    "MessagePage",
    "MissingDependencyError",
    "ObjectView",
    "OnBusy",
    "OnProgress",
    "PersistentDict",
    "Problem",
    "ProblemKind",
    "Progress",
    "PruneReport",
    "PruneStrategy",
    "ReconcileReport",
    "ReplicatedSaver",
    "ReplicationError",
    "ReplicationStatus",
    "Retention",
    "RetentionReport",
    "Saver",
    "SaverProtocol",
    "SchemaError",
    "SearchPage",
    "Serde",
    "SerializationError",
    "Serializer",
    "SessionCheckpoint",
    "SessionMetadata",
    "SessionStats",
    "Sessions",
    "SharedCache",
    "SideStatus",
    "StateInfo",
    "StatePage",
    "States",
    "Stats",
    "StoreError",
    "ThreadBusyError",
    "ThreadDeletedError",
    "ThreadInfo",
    "ThreadNotFoundError",
    "ThreadPage",
    "ThreadmarkError",
    "TransientStoreError",
    "Tree",
    "TreeNode",
    "VerifyReport",
    "WriteInfo",
    "__version__",
    "cached",
    "new_id",
    "open",
    "replicated",
]

_MODULES = ["errors", "program", "sealing", "serde", "store"]
"""The modules with documented names of their own. They are imported with the package."""


def __dir__() -> list[str]:
    """The public names, without the modules that only the packages of this project use."""
    return [*__all__, *_MODULES]
