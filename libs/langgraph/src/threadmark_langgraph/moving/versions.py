"""Channel versions for savers that store a value once for each version of its channel.

A Threadmark checkpoint names its values itself, so two forks may use the same version for different values. LangGraph's
savers would take one value for the other. So an export adds to every version the checkpoint that made it.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from langgraph.checkpoint.base import ChannelVersions, Checkpoint

from threadmark.types import CheckpointRef

_FRACTION_LIMIT = 10**16
_MILLION = 1_000_000

Names = Mapping[tuple[str, Any], str]


class Renaming:
    """The new versions of a thread's checkpoints, parents first."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], Names] = {}

    def renamed(self, ref: CheckpointRef, checkpoint: Checkpoint) -> tuple[Checkpoint, ChannelVersions]:
        """Return the checkpoint with its new versions, and those that its parent does not have."""
        inherited = self._names.get((ref.ns, ref.parent or ""), {})
        names: dict[tuple[str, Any], str] = {}

        def name(channel: str, version: Any) -> str:
            key = (channel, version)
            if key not in names:
                names[key] = inherited.get(key) or _unique(ref, version)
            return names[key]

        versions: ChannelVersions = {
            channel: name(channel, version) for channel, version in checkpoint["channel_versions"].items()
        }
        seen: dict[str, ChannelVersions] = {
            node: {channel: name(channel, version) for channel, version in by_channel.items()}
            for node, by_channel in checkpoint["versions_seen"].items()
        }
        self._names[ref.ns, ref.id] = names
        before = set(inherited.values())
        new: ChannelVersions = {channel: each for channel, each in versions.items() if each not in before}
        renamed: Checkpoint = {**checkpoint, "channel_versions": versions, "versions_seen": seen}
        return renamed, new

    def forget(self, ref: CheckpointRef) -> None:
        """Forget a checkpoint that is not in the target with its new versions: its children share none with it."""
        self._names.pop((ref.ns, ref.id), None)


def _unique(ref: CheckpointRef, version: Any) -> str:
    """Return the new version, which is the same for all channels: LangGraph knows by it that one step wrote them."""
    made_by = sha256(f"{ref.id} {version}".encode("utf-8", "surrogatepass")).digest()
    return f"{_count(version):032d}.{int.from_bytes(made_by[:8]) % _FRACTION_LIMIT:016d}"


def _count(version: Any) -> int:
    """Return the part of a version that orders it; all versions of a thread are of one kind."""
    if isinstance(version, str):
        return int(version.partition(".")[0])
    return round(version * _MILLION) if isinstance(version, float) else int(version)
