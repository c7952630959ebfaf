"""The types that savers return and take, for annotations and `isinstance`. `threadmark` has the callables.

from threadmark.types import ThreadInfo
"""

from threadmark.caching import Cache, CachedSaver
from threadmark.effects import EffectInfo, EffectState, OnUnknown, Per, Restored, Undo
from threadmark.interfaces import SessionCheckpoint, SessionMetadata, SessionStats, SharedCache, StateInfo, StatePage
from threadmark.leases.lease import Lease
from threadmark.leases.taking import OnBusy
from threadmark.model import (
    UNSET,
    CheckpointRef,
    DeltaChannelHistory,
    MessagePage,
    OnProgress,
    Problem,
    ProblemKind,
    Progress,
    PruneReport,
    PruneStrategy,
    RetentionReport,
    ThreadFilter,
    ThreadInfo,
    ThreadPage,
    ThreadSort,
    ThreadStatus,
    Unset,
    UpgradeReport,
)
from threadmark.operating.model import ChannelStats, Stats, VerifyReport
from threadmark.replication import ReconcileReport, ReplicatedSaver, ReplicationStatus, SideStatus
from threadmark.serde import Serializer
from threadmark.serde.object_view import ObjectView
from threadmark.transactions import SaverTransaction
from threadmark.travel.model import (
    Blame,
    Branch,
    ChangeKind,
    Diff,
    Edit,
    EditKind,
    HistoryEntry,
    HistoryPage,
    Match,
    SearchPage,
    Tree,
    TreeNode,
    ValueChange,
    WriteInfo,
)

__all__ = [
    "UNSET",
    "Blame",
    "Branch",
    "Cache",
    "CachedSaver",
    "ChangeKind",
    "ChannelStats",
    "CheckpointRef",
    "DeltaChannelHistory",
    "Diff",
    "Edit",
    "EditKind",
    "EffectInfo",
    "EffectState",
    "HistoryEntry",
    "HistoryPage",
    "Lease",
    "Match",
    "MessagePage",
    "ObjectView",
    "OnBusy",
    "OnProgress",
    "OnUnknown",
    "Per",
    "Problem",
    "ProblemKind",
    "Progress",
    "PruneReport",
    "PruneStrategy",
    "ReconcileReport",
    "ReplicatedSaver",
    "ReplicationStatus",
    "Restored",
    "RetentionReport",
    "SaverTransaction",
    "SearchPage",
    "Serializer",
    "SessionCheckpoint",
    "SessionMetadata",
    "SessionStats",
    "SharedCache",
    "SideStatus",
    "StateInfo",
    "StatePage",
    "Stats",
    "ThreadFilter",
    "ThreadInfo",
    "ThreadPage",
    "ThreadSort",
    "ThreadStatus",
    "Tree",
    "TreeNode",
    "Undo",
    "Unset",
    "UpgradeReport",
    "ValueChange",
    "VerifyReport",
    "WriteInfo",
]
