"""Two databases as one: every put goes to both, and either can take over from the other."""

from threadmark.replication.making import replicated
from threadmark.replication.model import (
    OnSecondaryFailure,
    ReconcileReport,
    ReplicationMode,
    ReplicationStatus,
    SideName,
    SideStatus,
)
from threadmark.replication.saver import ReplicatedSaver

__all__ = [
    "OnSecondaryFailure",
    "ReconcileReport",
    "ReplicatedSaver",
    "ReplicationMode",
    "ReplicationStatus",
    "SideName",
    "SideStatus",
    "replicated",
]
