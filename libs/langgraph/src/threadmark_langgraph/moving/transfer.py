"""`migrate` and `export`: copy every checkpoint of one saver to another, read each back and compare it.

You may stop either and start it again: checkpoints that are in the target already are compared and left alone. A thread
may have gone on since, on either side; only if it did on both, its last checkpoint has a difference to report.
"""

import copy
import functools
import logging
import sys
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, ChannelVersions, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener

from threadmark import ConfigError, ForbiddenTypeError, Saver, SaverProtocol, ThreadDeletedError
from threadmark.errors import short_repr
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark.serde.exact import exactly_equal
from threadmark.types import CheckpointRef
from threadmark_langgraph.checkpointer import Checkpointer, wrap
from threadmark_langgraph.log import log
from threadmark_langgraph.moving.comparing import (
    Content,
    added,
    alike,
    content_of,
    difference,
    joined,
    kept_by,
    lacking,
)
from threadmark_langgraph.moving.conflicts import Ranks, conflicts, parents_first
from threadmark_langgraph.moving.databases import Database, opened_for_export, opened_source, opened_target
from threadmark_langgraph.moving.describing import create, describe, threads_except
from threadmark_langgraph.moving.differences import Difference
from threadmark_langgraph.moving.messages import NO_PLACE, last_of_each, message_refs, move_messages
from threadmark_langgraph.moving.report import Changed, Moved, NotMoved, Progress
from threadmark_langgraph.moving.sources import Orders, Source, TaskOrder, config_of, read, source_of
from threadmark_langgraph.moving.versions import Renaming


def migrate(
    source: BaseCheckpointSaver[Any] | SaverProtocol | Database,
    target: Checkpointer | SaverProtocol | Database,
    *,
    allow: Iterable[type] = (),
    partial: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Moved:
    """Copy every thread to a Threadmark saver. Ids, parents, order and values stay, and threads simply go on.

    A thread is copied whole or not at all: all of it is read, and tried in memory, before its first checkpoint is
    stored. The copy of a checkpoint keeps the time at which it was made, from its `ts`.

    Args:
        source: LangGraph's SqliteSaver or PostgresSaver, another saver that can list all its checkpoints, a Threadmark
            saver, or the path or URL of a database of either.
        target: A Threadmark saver, or its path or URL, which may be that of the source. Checkpoints that it already
            has are compared and left alone, so you can repeat a stopped move. If a thread went on in the source, the
            writes that its tasks made since are added.
        allow: Classes that the source's serializer may load, in addition to those that it allows by itself.
        partial: Also copy threads of which a part cannot be copied, without that part. Nothing is tried in memory
            first.
        dry_run: Read everything and try in memory, one by one, whether it can be stored, but store nothing. If the
            target's file or tables do not exist yet, they are not created, and everything counts as new.
        progress: Called after each checkpoint with the number done and the number of all.
    """
    names = {_name(each) for each in allow}
    with opened_target(target) as ours, opened_source(source, target) as origin:
        allowed = origin.with_allowlist(names) if names else origin
        ours.unmoved.expected = True  # its threads are being moved
        target_saver = _ready(ours, dry_run=dry_run)
        ranks = source_of(allowed).ranks()
        move = _Move(allowed, _with_times(target_saver, ranks), rename=False, partial=partial, dry_run=dry_run)
        return move.run(progress, ranks)


def export(
    source: Checkpointer | SaverProtocol | Database,
    target: BaseCheckpointSaver[Any] | Database,
    *,
    partial: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Moved:
    """Copy every thread from a Threadmark saver to one of LangGraph's savers, through that saver's own methods.

    Each thread is copied whole or not at all, unless you pass `partial=True`. Source and target are savers, or the
    paths or URLs of their databases. Channel versions are replaced, because LangGraph's savers need different ones in
    every fork. A value that is read back must equal what LangGraph reads if it stores the value itself. If that differs
    from the value in the source, it is listed in `changed`.
    """
    with opened_for_export(source, target, dry_run=dry_run) as (ours, theirs):
        ready = _ready(theirs, dry_run=dry_run)
        return _Move(ours, ready, rename=True, partial=partial, dry_run=dry_run).run(progress, {})


def _name(allowed: type) -> tuple[str, str]:
    if not isinstance(allowed, type):
        raise ConfigError(
            f"allow must be a list of classes, not of {short_repr(allowed)}: import the class, and give that"
        )
    return allowed.__module__, allowed.__qualname__


_Write = tuple[str, Any]
"""A channel and the value that a task wrote to it."""

_LAST_PLACE = 100_000
"""A write with a higher place is moved to another, since every place before it is filled."""


class _CannotMove(Exception):  # noqa: N818 - it never leaves this module
    """The reason why a checkpoint cannot be moved."""

    def __init__(self, cause: str, detail: str = "") -> None:
        super().__init__(cause, detail)
        self.cause, self.detail = cause, detail


class _Move:
    def __init__(
        self,
        source: BaseCheckpointSaver[Any],
        target: BaseCheckpointSaver[Any],
        *,
        rename: bool,
        partial: bool,
        dry_run: bool,
    ) -> None:
        self._from = source
        self._to = target
        # LangGraph's serializer is not exact. A value that it changes counts as kept: LangGraph would have the same.
        self._same = kept_by(target.serde) if rename else exactly_equal
        self._rename = rename
        self._partial = partial
        self._dry_run = dry_run
        self._names = Renaming()
        self._moved = Moved()
        self._conflicts: Mapping[str, str] = {}
        self._held_back: set[str] = set()

    def run(self, progress: Progress | None, ranks: Ranks) -> Moved:
        begun = time.monotonic()
        source = source_of(self._from)
        refs = source.refs()
        messages = message_refs(self._from)
        known = {ref.thread_id for ref in (*refs, *messages)}
        self._moved.threads = len(known)
        target = source_of(self._to)
        there = target.refs()
        self._conflicts = conflicts(refs, there, ranks, target.ranks())
        stored = {ref[:3] for ref in there}
        done = 0
        for _, group in groupby(parents_first(refs), attrgetter("thread_id")):
            thread = list(group)
            if self._partial or self._can_be_whole(source, thread, stored):
                for number, ref in enumerate(thread, done + 1):
                    self._move_or_note(source, ref, is_first=ref is thread[0])
                    if progress:
                        progress(number, len(refs))
            elif progress:
                progress(done + len(thread), len(refs))
            done += len(thread)
        self._moved.note_incomplete(there, decided=self._conflicts)
        self._move_messages([ref for ref in messages if ref.thread_id not in self._held_back])
        self._create_empty(known)
        for orphan in source.orphan_writes():
            self._moved.problems.append(NotMoved(orphan, "only pending writes of it are there: they were not moved"))
        moved = "would be moved" if self._dry_run else "moved"
        log.write(logging.INFO, "%s: %s, in %.3f s", moved, self._moved.counts, time.monotonic() - begun)
        return self._moved

    def _can_be_whole(self, source: Source, thread: Sequence[CheckpointRef], known: Container[tuple[str, ...]]) -> bool:
        """Try a thread in memory. If a part of it cannot be moved, note that and hold the rest back."""
        trial = _Move(self._from, self._to, rename=self._rename, partial=True, dry_run=True)
        trial._conflicts = self._conflicts
        for ref in thread:
            trial._move_or_note(source, ref, is_first=ref is thread[0])
        found = trial._moved.problems
        if thread[0].thread_id in self._conflicts or all(each.ref[:3] in known for each in found):
            return True
        self._held_back.add(thread[0].thread_id)
        self._moved.problems += found
        self._moved.held_back += len(thread) - len(found)
        return False

    def _move_or_note(self, source: Source, ref: CheckpointRef, *, is_first: bool) -> None:
        """Move a checkpoint, the first of its thread with the thread's description, or note why it cannot be moved."""
        try:
            if is_first:
                self._names = Renaming()
                if not self._dry_run:
                    with _refused("its thread cannot be created"):
                        describe(self._from, self._to, ref.thread_id)
            self._move(source, ref)
        except _CannotMove as problem:
            self._names.forget(ref)
            self._moved.problems.append(NotMoved(ref, problem.cause, problem.detail))

    def _move_messages(self, refs: Sequence[CheckpointRef]) -> None:
        """Move the messages that the target lacks. A message that it has is left alone, even if it differs."""
        source, target = self._from, self._to
        if not refs or not isinstance(source, Checkpointer):
            return
        if not isinstance(target, Checkpointer):
            self._moved.problems += [NotMoved(ref, NO_PLACE) for ref in last_of_each(refs, source)]
            return
        there: dict[str, set[str]] = {}
        for ref in message_refs(target):
            there.setdefault(ref.thread_id, set()).add(ref.id)
        for thread_id in sorted({ref.thread_id for ref in refs}):
            known = there.get(thread_id, set())
            if self._dry_run:
                self._moved.messages += sum(ref.thread_id == thread_id and ref.id not in known for ref in refs)
                continue
            try:
                with _refused("its messages cannot be moved"):
                    describe(source, target, thread_id)
                    self._moved.messages += move_messages(source, target, thread_id, known)
            except _CannotMove as problem:
                ref = next(ref for ref in refs if ref.thread_id == thread_id)
                self._moved.problems.append(NotMoved(ref, problem.cause, problem.detail))

    def _create_empty(self, known: Container[str]) -> None:
        """Create the threads that have no checkpoint yet, with their owners and descriptions."""
        source, target = self._from, self._to
        if not isinstance(source, Checkpointer) or not isinstance(target, Checkpointer):
            return
        for found in threads_except(source, known):
            self._moved.threads += 1
            try:
                with _refused("it has no checkpoint yet, and cannot be created"):
                    if not self._dry_run and target.saver.get_thread(found.id) is None:
                        create(target, found)
            except _CannotMove as problem:
                self._moved.problems.append(
                    NotMoved(CheckpointRef(found.id, "", "", None), problem.cause, problem.detail)
                )

    def _move(self, source: Source, ref: CheckpointRef) -> None:
        found = self._read(ref)
        with _refused("there already, it cannot be read"):
            there = read(self._to, ref)
        content, new = content_of(found), found.checkpoint["channel_versions"]
        problem = self._difference(content, there) if there else None
        # A thread that goes back to its first saver is there with its first versions.
        if self._rename and (problem or not there):
            renamed, new = self._names.renamed(ref, found.checkpoint)
            content = content._replace(checkpoint=renamed)
            problem = self._difference(content, there) if there else None
        elif problem and there and (ours := self._before_export(ref, content, there)):
            content, problem = ours, None
        if problem:
            raise _CannotMove(f"there already, and left alone, it differs in {problem.what}", problem.detail)
        if not there and ref.thread_id in self._conflicts:
            raise _CannotMove(self._conflicts[ref.thread_id])
        writes = lacking(content, content_of(there)) if there else len(content.writes)
        if writes or not there:
            with _refused("it cannot be read"):
                orders = source.orders(ref, found)
            self._store(ref, content, new, orders, there)
        self._moved.already_there += bool(there)
        self._moved.checkpoints += not there
        self._moved.writes += writes

    def _before_export(self, ref: CheckpointRef, content: Content, there: CheckpointTuple) -> Content | None:
        """Return the target's checkpoint with the source's writes, if the source has `export`'s form of it."""
        ours = content_of(there)
        renamed, _ = self._names.renamed(ref, there.checkpoint)
        same = kept_by(self._from.serde)
        if difference(ours._replace(checkpoint=renamed), content, same):
            return None
        return ours._replace(writes=joined(ours, content, same))

    def _store(
        self, ref: CheckpointRef, content: Content, new: ChannelVersions, orders: Orders, there: CheckpointTuple | None
    ) -> None:
        """Store a checkpoint, or the writes that it lacks there, and compare it with its copy when read back."""
        to = self._to
        if self._dry_run:
            # Everything in it is new there.
            to, new, there = _in_memory(to), content.checkpoint["channel_versions"], None
        with _refused("it cannot be stored"):
            if there is None:
                _put_whole(to, ref, content, new, orders)
            else:
                _put_writes(to, ref, added(content, content_of(there)), orders)
            stored = read(to, ref)
        if stored is None:
            raise _CannotMove("stored, it is not there")
        if problem := self._difference(content, stored):
            raise _CannotMove(f"stored and read back, it differs in {problem.what}", problem.detail)
        if lacking(content, content_of(stored)):
            raise _CannotMove("stored and read back, it lacks pending writes")
        if self._rename and (changed := difference(content, content_of(stored), alike)):
            cause = f"LangGraph's serializer does not give {changed.what} back as it was"
            self._moved.changed.append(Changed(ref, cause, changed.detail))

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
        # If LangGraph's serializer does not find the class of an object, it returns the bare fields.
        if lost := next((each for each in events if not _is_found(each)), None):
            raise _CannotMove(_advice(lost["module"], lost["name"]))
        if found is None:
            raise _CannotMove("it was deleted during the move")
        return found

    def _difference(self, content: Content, there: CheckpointTuple) -> Difference | None:
        return difference(content, content_of(there), self._same)


def _ready(target: BaseCheckpointSaver[Any], *, dry_run: bool) -> BaseCheckpointSaver[Any]:
    """Return the target with its tables; in a dry run, a saver in memory for a target without any.

    A look at such a target would create the tables.
    """
    there = source_of(target)
    if not there.has_tables():
        if dry_run:
            return _in_memory(target)
        there.make()
    return target


def _with_times(target: BaseCheckpointSaver[Any], ranks: Ranks) -> BaseCheckpointSaver[Any]:
    """Return the target so that each checkpoint counts as stored when it was made, and has its rank.

    A saver behind a proxy cannot store such times and ranks.
    """
    if not isinstance(target, Checkpointer) or not isinstance(target.saver, Saver):
        return target
    moving = copy.copy(target)
    moving._saver = target.saver._moving(ranks)  # noqa: SLF001 - of our own copy, and core's own method for this
    return moving


def _in_memory(saver: BaseCheckpointSaver[Any]) -> BaseCheckpointSaver[Any]:
    """Return an empty saver of the same side with the same serializer, in which storing can be tried."""
    if isinstance(saver, Checkpointer):
        # No `MemorySaver`, which keeps objects that the target would refuse.
        return _with_times(wrap(Saver(MemoryStore(), MemoryDriver(), serde=saver.saver.serde)), {})
    return InMemorySaver(serde=saver.serde)


def _put_whole(
    saver: BaseCheckpointSaver[Any], ref: CheckpointRef, content: Content, new: ChannelVersions, orders: Orders
) -> None:
    """Store a checkpoint with its writes. The checkpoint comes last, so that a checkpoint is always complete."""
    config = config_of(ref, ref.parent)
    if isinstance(saver, Checkpointer):
        config["configurable"]["expect_newest"] = False  # a branch stays a branch
    put = functools.partial(saver.put, config, content.checkpoint, content.metadata, new)
    try:
        _put_writes(saver, ref, content, orders)
    except ThreadDeletedError:  # only a first checkpoint brings a deleted thread back
        put()
        _put_writes(saver, ref, content, orders)
    else:
        put()


def _put_writes(saver: BaseCheckpointSaver[Any], ref: CheckpointRef, content: Content, orders: Orders) -> None:
    by_task: dict[str, list[_Write]] = {}
    for task_id, channel, value in content.writes:
        by_task.setdefault(task_id, []).append((channel, value))
    for task_id, writes in by_task.items():
        order = orders.get(task_id, TaskOrder(""))
        config = config_of(ref, ref.id)
        config["metadata"] = dict(content.metadata)  # the writes create the thread, so they name its owner
        for batch in _batches(writes, order.places):
            saver.put_writes(config, batch, task_id, order.path)


def _batches(writes: Sequence[_Write], places: Sequence[int]) -> Iterator[list[_Write]]:
    """Yield the batches that store a task's writes.

    Those to special channels are a separate batch, because in any other LangGraph's savers do not replace them. In
    the other batch they take the places that no ordinary write had, since a write's index is its place there.
    """
    special = [write for write in writes if write[0] in WRITES_IDX_MAP]
    ordinary = [write for write in writes if write[0] not in WRITES_IDX_MAP]
    if special:
        yield special
    if ordinary:
        if not special or len(places) != len(ordinary) or places[-1] > _LAST_PLACE:
            places = range(len(ordinary))
        placed = dict(zip(places, ordinary, strict=True))
        yield [placed.get(place) or special[0] for place in range(max(placed) + 1)]


def _names(events: Iterable[SerdeEvent]) -> str:
    return ", ".join(sorted({f"{each['module']}.{each['name']}" for each in events}))


def _is_found(event: SerdeEvent) -> bool:
    """Return whether the class of a loaded object exists: if not, the serializer made a dictionary of the object."""
    module = sys.modules.get(event["module"])
    return module is not None and hasattr(module, event["name"])


def _advice(module: str, name: str) -> str:
    """Return the remedy for a class that is not found."""
    if module == _PROGRAM:
        return f"{name} {_OF_THE_PROGRAM}"
    if module not in sys.modules:
        return f"{module}.{name} cannot be imported here: move where Python finds the application's modules"
    return (
        f"the module {module!r} has no class {name!r}, and LangGraph's serializer gives only the fields of what it "
        "stored: define it there, outside of functions and classes, and move again"
    )


_PROGRAM = "__main__"

_OF_THE_PROGRAM = (
    "is a class of the application's own program (__main__), which no other program finds: call "
    "threadmark_langgraph.migrate() (or export()) from the application"
)

_NOT_IMPORTED = "where its module was not imported, do that first, or on the command line give --allow module:Class"


_PICKLED = (
    "it was stored with pickle_fallback=True, and reading a pickle can run any code: if you trust the database, give a "
    "source saver with serde=JsonPlusSerializer(pickle_fallback=True) instead of a path, in Python"
)


@contextmanager
def _refused(what: str) -> Iterator[None]:
    try:
        yield
    except ForbiddenTypeError as error:  # of a Threadmark source
        of_the_program = f"{_PROGRAM}:" in error.problem
        cause = f"one {_OF_THE_PROGRAM}" if of_the_program else f"{what} ({type(error).__name__}; {_NOT_IMPORTED})"
        raise _CannotMove(cause, str(error)) from error
    except Exception as error:
        if isinstance(error, NotImplementedError) and str(error).endswith(": pickle"):
            raise _CannotMove(_PICKLED) from error
        raise _CannotMove(f"{what} ({type(error).__name__})", str(error)) from error
