"""`migrate` and `export`: every checkpoint of one saver into another, each read back and compared.

Both may be stopped and started again: what is there already is compared and left alone. A thread may have gone on
meanwhile, on either side; only where it did on both, its last checkpoint has a difference to report.
"""

import logging
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, ChannelVersions, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener

from threadmark import CheckpointRef, MemorySaver, SaverProtocol, ThreadDeletedError
from threadmark_langgraph.checkpointer import Checkpointer, wrap
from threadmark_langgraph.log import log
from threadmark_langgraph.moving.comparing import Content, content_of, difference, equal, exactly_equal, lacking
from threadmark_langgraph.moving.conflicts import conflicts, parents_first
from threadmark_langgraph.moving.report import Moved, NotMoved, Progress
from threadmark_langgraph.moving.sources import Source, config_of, read, source_of
from threadmark_langgraph.moving.versions import Renaming


def migrate(
    source: BaseCheckpointSaver[Any],
    target: Checkpointer | SaverProtocol,
    *,
    allow: Iterable[type] = (),
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Moved:
    """Copy every thread of a LangGraph saver; ids, parents, order and values stay, and a thread may simply go on.

    Args:
        source: LangGraph's SqliteSaver or PostgresSaver, or another saver that can list all its checkpoints.
        target: Where to. What it holds already is compared and left alone, so a stopped move can be repeated. Where
            the thread went on in the source, what its tasks wrote since is added.
        allow: Classes that the source's serializer may load besides those it allows by itself.
        dry_run: Read everything and try in memory, one by one, whether it can be stored; store nothing. In a target
            that is not there yet, its file or its tables, everything would be new, and it is not made.
        progress: Called after each checkpoint with the number done and the number of all.
    """
    allowed = source.with_allowlist({(each.__module__, each.__qualname__) for each in allow}) if allow else source
    checkpointer = target if isinstance(target, Checkpointer) else wrap(target)
    checkpointer.unmoved.expected = True  # they are being moved
    return _Move(allowed, _ready(checkpointer, dry_run=dry_run), rename=False, dry_run=dry_run).run(progress)


def export(
    source: Checkpointer | SaverProtocol,
    target: BaseCheckpointSaver[Any],
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Moved:
    """Copy every thread into one of LangGraph's savers, through its own methods.

    Channel versions are made anew, because LangGraph's savers need different ones in every fork. What their
    serializer does not give back as it was is reported.
    """
    checkpointer = source if isinstance(source, Checkpointer) else wrap(source)
    return _Move(checkpointer, _ready(target, dry_run=dry_run), rename=True, dry_run=dry_run).run(progress)


class _CannotMove(Exception):  # noqa: N818 - it never leaves this module
    """Why a checkpoint cannot be moved."""


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
        self._same = equal if rename else exactly_equal
        self._rename = rename
        self._dry_run = dry_run
        self._names = Renaming()
        self._moved = Moved()
        self._conflicts: Mapping[str, str] = {}

    def run(self, progress: Progress | None) -> Moved:
        begun = time.monotonic()
        source = source_of(self._from)
        refs = source.refs()
        self._moved.threads = len({ref.thread_id for ref in refs})
        self._conflicts = conflicts(refs, source_of(self._to).refs())
        thread_id = None
        for done, ref in enumerate(parents_first(refs), 1):
            if ref.thread_id != thread_id:
                thread_id, self._names = ref.thread_id, Renaming()
            try:
                self._move(source, ref)
            except _CannotMove as problem:
                self._names.forget(ref)
                self._moved.problems.append(NotMoved(ref, str(problem)))
            if progress:
                progress(done, len(refs))
        for orphan in source.orphan_writes():
            self._moved.problems.append(NotMoved(orphan, "only pending writes of it are there: they were not moved"))
        moved = "would be moved" if self._dry_run else "moved"
        log.write(logging.INFO, "%s: %s, in %.3f s", moved, self._moved.counts, time.monotonic() - begun)
        return self._moved

    def _move(self, source: Source, ref: CheckpointRef) -> None:
        found = self._read(ref)
        with _refused("there already, it cannot be read"):
            there = read(self._to, ref)
        content, new = content_of(found), found.checkpoint["channel_versions"]
        # What goes back to where it came from is there with its first versions.
        if self._rename and not (there and self._difference(content, there) is None):
            renamed, new = self._names.renamed(ref, found.checkpoint)
            content = content._replace(checkpoint=renamed)
        if there and (problem := self._difference(content, there)):
            raise _CannotMove(f"there already, and left alone, it differs in {problem}")
        if not there and ref.thread_id in self._conflicts:
            raise _CannotMove(self._conflicts[ref.thread_id])
        writes = lacking(content, content_of(there)) if there else len(content.writes)
        if writes or not there:
            self._store(ref, content, new, source.paths(ref, found), whole=not there)
        self._moved.already_there += bool(there)
        self._moved.checkpoints += not there
        self._moved.writes += writes

    def _store(
        self, ref: CheckpointRef, content: Content, new: ChannelVersions, paths: dict[str, str], *, whole: bool
    ) -> None:
        """Store a checkpoint, or only its writes, and compare what is read back."""
        to = self._to
        if self._dry_run:
            # All of it is new there.
            to, new, whole = _in_memory(to), content.checkpoint["channel_versions"], True
        with _refused("it cannot be stored"):
            if whole:
                _put_whole(to, ref, content, new, paths)
            else:
                _put_writes(to, ref, content, paths)
            stored = read(to, ref)
        problem = self._difference(content, stored) if stored else "everything: it is not there"
        if stored and not problem and lacking(content, content_of(stored)):
            problem = "the pending writes"
        if problem:
            raise _CannotMove(f"stored and read back, it differs in {problem}")

    def _read(self, ref: CheckpointRef) -> CheckpointTuple:
        events: list[SerdeEvent] = []
        stop = register_serde_event_listener(events.append)
        try:
            with _refused("it cannot be read"):
                found = read(self._from, ref)
        finally:
            stop()
        if blocked := _names(each for each in events if "blocked" in each["kind"]):
            raise _CannotMove(
                f"its serializer was not allowed to load {blocked}: add to `allow` (--allow module:Class)"
            )
        # LangGraph's serializer gives the bare fields of an object whose class it does not find.
        if missing := _names(each for each in events if not _is_found(each)):
            raise _CannotMove(f"{missing} cannot be imported here: move where Python finds the application's modules")
        if found is None:
            raise _CannotMove("it was deleted meanwhile")
        return found

    def _difference(self, content: Content, there: CheckpointTuple) -> str | None:
        return difference(content, content_of(there), self._same)


def _ready(target: BaseCheckpointSaver[Any], *, dry_run: bool) -> BaseCheckpointSaver[Any]:
    """The target with its tables; in a dry run, one in memory for a target without any: a look would make them."""
    there = source_of(target)
    if not there.has_tables():
        if dry_run:
            return _in_memory(target)
        there.make()
    return target


def _in_memory(saver: BaseCheckpointSaver[Any]) -> BaseCheckpointSaver[Any]:
    """An empty saver of the same side and with the same serializer, where storing can be tried."""
    if isinstance(saver, Checkpointer):
        return wrap(MemorySaver(serde=saver.saver.serde))
    return InMemorySaver(serde=saver.serde)


def _put_whole(
    saver: BaseCheckpointSaver[Any], ref: CheckpointRef, content: Content, new: ChannelVersions, paths: dict[str, str]
) -> None:
    """Store a checkpoint with its writes. It comes last: where it is, everything is."""
    put = partial(saver.put, config_of(ref, ref.parent), content.checkpoint, content.metadata, new)
    try:
        _put_writes(saver, ref, content, paths)
    except ThreadDeletedError:  # only a first checkpoint brings a deleted thread back
        put()
        _put_writes(saver, ref, content, paths)
    else:
        put()


def _put_writes(saver: BaseCheckpointSaver[Any], ref: CheckpointRef, content: Content, paths: dict[str, str]) -> None:
    by_task: dict[str, list[tuple[str, Any]]] = {}
    for task_id, channel, value in content.writes:
        by_task.setdefault(task_id, []).append((channel, value))
    for task_id, writes in by_task.items():
        # A write's place in its batch is its place in the task, except in the special channels.
        writes.sort(key=lambda write: write[0] in WRITES_IDX_MAP)
        saver.put_writes(config_of(ref, ref.id), writes, task_id, paths.get(task_id, ""))


def _names(events: Iterable[SerdeEvent]) -> str:
    return ", ".join(sorted({f"{each['module']}.{each['name']}" for each in events}))


def _is_found(event: SerdeEvent) -> bool:
    """Whether the module of a class that was just loaded is there.

    A class that another module lacks is one that LangGraph's serializer never finds, such as one inside a function. Of
    the program itself it is more likely that the class is another program's.
    """
    module = sys.modules.get(event["module"])
    return module is not None and (event["module"] != "__main__" or hasattr(module, event["name"]))


@contextmanager
def _refused(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise _CannotMove(f"{what}: {error}") from error
