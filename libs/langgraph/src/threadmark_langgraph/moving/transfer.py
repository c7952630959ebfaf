"""`migrate` and `export`: every checkpoint of one saver into another, each read back and compared.

Both may be stopped and started again: what is there already is compared and left alone.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener

from threadmark import Saver, Serde, ThreadmarkError
from threadmark_langgraph.checkpointer import Checkpointer, wrap
from threadmark_langgraph.moving.report import Moved, Problem, Progress
from threadmark_langgraph.moving.sources import Outline, Source, source_of
from threadmark_langgraph.moving.versions import Renaming


def migrate(
    source: BaseCheckpointSaver[Any],
    target: Checkpointer | Saver,
    *,
    allow: Iterable[type] = (),
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Moved:
    """Copy every thread of a LangGraph saver; ids, parents, order and values stay, and a thread may simply go on.

    Args:
        source: LangGraph's SqliteSaver or PostgresSaver, or another saver that can list all its checkpoints.
        target: Where to. What it holds already is compared and left alone, so a stopped move can be repeated.
        allow: Classes that the source's serializer may load besides those it allows by itself.
        dry_run: Read everything, store nothing.
        progress: Called after each checkpoint with the number done and the number of all.
    """
    allowed = source.with_allowlist({(each.__module__, each.__qualname__) for each in allow}) if allow else source
    checkpointer = wrap(target) if isinstance(target, Saver) else target
    return _Move(allowed, checkpointer, rename=False, dry_run=dry_run).run(progress)


def export(
    source: Checkpointer | Saver,
    target: BaseCheckpointSaver[Any],
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Moved:
    """Copy every thread into one of LangGraph's savers, through its own methods.

    Channel versions are made anew, because LangGraph's savers need different ones in every fork. What their
    serializer does not give back as it was is reported.
    """
    checkpointer = wrap(source) if isinstance(source, Saver) else source
    return _Move(checkpointer, target, rename=True, dry_run=dry_run).run(progress)


class _NotMoved(Exception):  # noqa: N818 - it never leaves this module
    """Why a checkpoint cannot be moved."""


class _Content(NamedTuple):
    """What has to be equal on both sides."""

    parent: str | None
    checkpoint: Checkpoint
    metadata: Any
    writes: Sequence[tuple[str, str, Any]]


class _Move:
    def __init__(
        self,
        source: BaseCheckpointSaver[Any],
        target: BaseCheckpointSaver[Any],
        *,
        rename: bool,
        dry_run: bool,
    ) -> None:
        self._from = source
        self._to = target
        # The way back goes through a serializer that is not exact: there, equal is good enough.
        self._same = _equal if rename else _exactly_equal
        self._rename = rename
        self._dry_run = dry_run
        self._names = Renaming()
        self._moved = Moved()

    def run(self, progress: Progress | None) -> Moved:
        source = source_of(self._from)
        outlines = source.outlines()
        self._moved.threads = len({outline.thread_id for outline in outlines})
        thread_id = None
        for done, outline in enumerate(_parents_first(outlines), 1):
            if outline.thread_id != thread_id:
                thread_id, self._names = outline.thread_id, Renaming()
            try:
                self._move(source, outline)
            except _NotMoved as problem:
                self._moved.problems.append(Problem(outline, str(problem)))
            if progress:
                progress(done, len(outlines))
        return self._moved

    def _move(self, source: Source, outline: Outline) -> None:
        found = self._read(outline)
        content, new = self._content(outline, found)
        there = self._to.get_tuple(outline.config(outline.id))
        if there and self._differing(content, there) is None:
            self._moved.already_there += 1
            return
        if not self._dry_run:
            with _refused("it cannot be stored"):
                # The checkpoint comes last: where it is, everything is.
                self._put_writes(outline, found, source.paths(outline, found))
                config = outline.config(outline.parent)
                self._to.put(config, content.checkpoint, found.metadata, new)
                there = self._to.get_tuple(outline.config(outline.id))
            if problem := self._differing(content, there):
                raise _NotMoved(f"it was stored, but {problem} came back changed")
        self._moved.checkpoints += 1
        self._moved.writes += len(content.writes)

    def _read(self, outline: Outline) -> CheckpointTuple:
        blocked: list[SerdeEvent] = []
        stop = register_serde_event_listener(blocked.append)
        try:
            with _refused("it cannot be read"):
                found = self._from.get_tuple(outline.config(outline.id))
        finally:
            stop()
        names = sorted({f"{each['module']}.{each['name']}" for each in blocked if "blocked" in each["kind"]})
        if names:
            raise _NotMoved(f"its serializer was not allowed to load {', '.join(names)}: add to `allow`")
        if found is None:
            raise _NotMoved("it was deleted meanwhile")
        return found

    def _content(self, outline: Outline, found: CheckpointTuple) -> tuple[_Content, ChannelVersions]:
        checkpoint, new = found.checkpoint, found.checkpoint["channel_versions"]
        if self._rename:
            checkpoint, new = self._names.renamed(outline, checkpoint)
        return _Content(outline.parent, checkpoint, found.metadata, found.pending_writes or []), new

    def _put_writes(self, outline: Outline, found: CheckpointTuple, paths: dict[str, str]) -> None:
        by_task: dict[str, list[tuple[str, Any]]] = {}
        for task_id, channel, value in found.pending_writes or ():
            by_task.setdefault(task_id, []).append((channel, value))
        for task_id, writes in by_task.items():
            # A write's place in its batch is its place in the task, except in the special channels.
            writes.sort(key=lambda write: write[0] in WRITES_IDX_MAP)
            self._to.put_writes(outline.config(outline.id), writes, task_id, paths.get(task_id, ""))

    def _differing(self, content: _Content, there: CheckpointTuple | None) -> str | None:
        """What is not the same on the other side; None if all is."""
        if there is None:
            return "the checkpoint"
        parent = there.parent_config["configurable"]["checkpoint_id"] if there.parent_config else None
        if parent != content.parent:
            return "the parent"
        pairs = {
            "the metadata": (_sorted(content.metadata), _sorted(there.metadata)),
            "the order of pending writes": (
                [write[:2] for write in content.writes],
                [write[:2] for write in there.pending_writes or ()],
            ),
            "the pending writes": (list(content.writes), list(there.pending_writes or ())),
        }
        ours: Any = dict(content.checkpoint)
        theirs: Any = dict(there.checkpoint)
        values, values_there = ours.pop("channel_values"), theirs.pop("channel_values")
        for channel in values.keys() | values_there.keys():
            pairs[f"channel {channel!r}"] = (values.get(channel), values_there.get(channel))
        for key in ours.keys() | theirs.keys():
            pairs[f"the checkpoint's {key}"] = (ours.get(key), theirs.get(key))
        return next((what for what, (one, other) in pairs.items() if not self._same(one, other)), None)


def _parents_first(outlines: Iterable[Outline]) -> Iterator[Outline]:
    """Thread by thread, by ascending id, but never a checkpoint before its parent, whatever the clocks said."""
    waiting = {outline[:3]: outline for outline in sorted(outlines, key=lambda outline: outline[:3])}
    for outline in list(waiting.values()):
        line: list[Outline] = []
        ancestor: Outline | None = outline
        while ancestor is not None and ancestor[:3] in waiting:
            line.append(waiting.pop(ancestor[:3]))
            ancestor = waiting.get((ancestor.thread_id, ancestor.ns, ancestor.parent or ""))
        yield from reversed(line)


def _sorted(metadata: Any) -> str:
    """Metadata as text; the order of its keys is not kept by databases that understand JSON."""
    return json.dumps(metadata, sort_keys=True)


_EXACT = Serde()


def _exactly_equal(one: Any, other: Any) -> bool:
    """Whether two values are of the same types throughout, and equal; also of classes that cannot say so."""
    try:
        return _EXACT.dumps_typed(one) == _EXACT.dumps_typed(other)
    except ThreadmarkError:
        return bool(one == other)


def _equal(one: Any, other: Any) -> bool:
    return _exactly_equal(one, other) or bool(one == other)


@contextmanager
def _refused(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise _NotMoved(f"{what}: {error}") from error
