"""A thread of LangGraph's tables, copied into a memory saver, from which it is read like any other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from threadmark import Saver, ThreadmarkError
from threadmark.ids import time_of_id
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark.metadata import check_plain
from threadmark.model import SPECIAL_WRITES
from threadmark.program import Program
from threadmark.saver.proving import checkpoint_row
from threadmark.store.contract import Added, Change, CheckpointRow
from threadmark.types import ObjectView
from threadmark_cli.foreign.rows import Reader, Ref, Stored, Write, WriteRef
from threadmark_cli.foreign.serializer import ViewSerde

_UNREAD = "(unread)"
"""The channel, or the key in metadata, of a value that could not be taken apart."""


class LoadedThread:
    """The rows read of a thread. `refresh` adds new ones; if rows have gone, a new copy is needed."""

    def __init__(self, thread_id: str) -> None:
        self.saver = Saver(_DatedStore(), MemoryDriver(), serde=ViewSerde())
        self._thread_id = thread_id
        self._refs: set[Ref] = set()
        self._writes: set[WriteRef] = set()

    def refresh(self, reader: Reader) -> bool:
        """Add the new rows. Returns whether that was possible: nothing that was read before has been replaced."""
        refs, writes = set(reader.refs(self._thread_id)), set(reader.write_refs(self._thread_id))
        if not (self._refs <= refs and self._writes <= writes):
            return False
        versions: dict[tuple[str, str], Mapping[str, Any]] = {}
        for ref in _parents_first(refs - self._refs):
            stored = reader.checkpoint(self._thread_id, ref, versions.get((ref.ns, ref.parent or ""), {}))
            if stored is not None:
                versions[ref.ns, ref.id] = self._put(ref, stored)
        for ns, checkpoint_id in sorted({write[:2] for write in writes - self._writes}):
            self._put_writes(ns, checkpoint_id, reader.writes(self._thread_id, ns, checkpoint_id))
        self._refs, self._writes = refs, writes
        return True

    def _put(self, ref: Ref, stored: Stored) -> Mapping[str, Any]:
        """Store a checkpoint. Returns its channels' versions."""
        checkpoint = _checkpoint(ref, stored.checkpoint)
        versions: Mapping[str, Any] = checkpoint["channel_versions"]
        new = versions if stored.new_versions is None else {name: versions[name] for name in stored.new_versions}
        config = self._config(ref.ns, ref.parent)
        metadata = _metadata(stored.metadata)
        try:
            self.saver.put(config, checkpoint, metadata, new, expect_newest=False)
        except ThreadmarkError as error:
            checkpoint |= {"channel_values": {_UNREAD: _unread(error)}, "channel_versions": {_UNREAD: 1}}
            self.saver.put(config, checkpoint, metadata, {_UNREAD: 1}, expect_newest=False)
            return {}
        return versions

    def _put_writes(self, ns: str, checkpoint_id: str, writes: Sequence[Write]) -> None:
        tasks: dict[tuple[str, str], list[tuple[str, Any]]] = {}
        for write in writes:
            tasks.setdefault((write.task_id, write.task_path), []).append((write.channel, write.value))
        for (task_id, task_path), written in tasks.items():
            # A write's place is its place in the batch, except in the special channels.
            written.sort(key=lambda write: write[0] in SPECIAL_WRITES)
            config = self._config(ns, checkpoint_id)
            try:
                self.saver.put_writes(config, written, task_id, task_path)
            except ThreadmarkError as error:
                unread = [(channel, _unread(error)) for channel, _ in written]
                self.saver.put_writes(config, unread, task_id, task_path)

    def _config(self, ns: str, checkpoint_id: str | None) -> dict[str, Any]:
        configurable = {"thread_id": self._thread_id, "checkpoint_ns": ns}
        return {"configurable": configurable | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})}


class _DatedStore(MemoryStore):
    """Checkpoints are as old as their ids say, not as this copy of them."""

    def add(self, change: Change) -> Program[Added]:
        return super().add(change._replace(checkpoints=[*map(_dated, change.checkpoints)]))


def _dated(row: CheckpointRow) -> CheckpointRow:
    created_at = time_of_id(row.outline.id)
    if created_at is None:
        return row
    return checkpoint_row(row.outline._replace(created_at=created_at), row.header, row.run_id)


def _parents_first(refs: Iterable[Ref]) -> Iterator[Ref]:
    """By ascending id, but never a checkpoint before its parent, whatever the clocks said."""
    waiting = {ref[:2]: ref for ref in sorted(refs, key=lambda ref: ref[:2])}
    for ref in list(waiting.values()):
        line: list[Ref] = []
        ancestor: Ref | None = ref
        while ancestor is not None and ancestor[:2] in waiting:
            line.append(waiting.pop(ancestor[:2]))
            ancestor = waiting.get((ancestor.ns, ancestor.parent or ""))
        yield from reversed(line)


def _checkpoint(ref: Ref, found: Any) -> Any:
    """A checkpoint in the form that a saver takes, whatever the row holds. Anything else becomes its only value."""
    if not (isinstance(found, dict) and isinstance(found.get("channel_values"), dict)):
        return {"id": ref.id, "channel_values": {_UNREAD: found}, "channel_versions": {_UNREAD: 1}, "versions_seen": {}}
    seen = found.get("versions_seen")
    values = {str(name): value for name, value in found["channel_values"].items()}
    versions = _versions(found.get("channel_versions"))
    return {
        **{str(key): value for key, value in found.items() if key in {"v", "ts"}},
        "id": ref.id,
        "channel_values": values,
        # A value without a version would not be stored.
        "channel_versions": {**dict.fromkeys(values, 1), **versions},
        "versions_seen": {str(node): _versions(each) for node, each in seen.items()} if isinstance(seen, dict) else {},
        "updated_channels": None,
    }


def _versions(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        return {}
    return {str(name): each if type(each) in (int, float, str) else str(each) for name, each in found.items()}


def _metadata(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        return {_UNREAD: str(found)}
    try:
        check_plain(found, "metadata")
    except ThreadmarkError:
        return {_UNREAD: str(found)}
    return found


def _unread(error: ThreadmarkError) -> ObjectView:
    return ObjectView("unread:value", {"reason": str(error)})
