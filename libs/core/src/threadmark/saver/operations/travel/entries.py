"""What a history says of a checkpoint: told from rows and headers, without a value and without the serializer."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from threadmark.errors import CorruptDataError, located
from threadmark.header import Header, plain_fields
from threadmark.model import Metadata, Problem
from threadmark.program import Program
from threadmark.saver.caches.segment_cache import fill
from threadmark.saver.context import SaverContext
from threadmark.saver.loading.decoding import decode_metadata
from threadmark.saver.loading.loader import CheckpointLoader, missing_headers
from threadmark.saver.operations.listing import good, loaders, open_headers
from threadmark.saver.paging import Pages
from threadmark.saver.proving.batches import proven_batches
from threadmark.saver.proving.checks import checkpoint_location, header_location
from threadmark.saver.thread_arguments import time_of
from threadmark.store import Key, Outline, Scope, WriteRow
from threadmark.travel import HistoryEntry, WriteInfo

_PULLED = re.compile("^~?__pregel_pull, (.+)$", re.DOTALL)
"""The path of a task that LangGraph began because channels had changed. It ends with the node's name; the path of one
that was sent names none."""

_PAGE = 512

_RESERVED = "__"
"""What names of LangGraph's own begin with, such as `__input__`, which no user's node has."""

_Item = CheckpointLoader | CorruptDataError
_NO_NODES: Mapping[str, Any] = {}


class Steps(NamedTuple):
    """What the metadata of LangGraph's checkpoints says of the step that made them."""

    step: int | None
    source: str | None


def entries_of(context: SaverContext, thread_id: str, outlines: Sequence[Outline]) -> Program[list[HistoryEntry]]:
    """Return the entries of some checkpoints of a thread, in their order. What is damaged says so.

    However many there are, that takes three questions: for the rows, for the segments of headers, and for the writes.
    Those that were removed since they were listed are left out.
    """
    keys = list(dict.fromkeys(key for outline in outlines for key in (outline.key, outline.parent_key) if key))
    if not keys:
        return []
    rows = yield from context.store.rows(thread_id, keys)
    writes = yield from context.store.writes(thread_id, keys)
    found = loaders(context, rows, {})
    segment_cache = context.segment_cache()
    yield from fill(segment_cache, context.store, thread_id, missing_headers(good(found)))
    open_headers(found, segment_cache)
    teller = _Teller(thread_id, found, writes)
    removed = yield from _removed(context, [outline for outline in outlines if outline.key not in found])
    return [teller.entry(outline) for outline in outlines if outline.key not in removed]


def _removed(context: SaverContext, outlines: Sequence[Outline]) -> Program[set[Key]]:
    """Which of these, whose rows are not found, are not listed any more either. Of the others the key is damaged."""
    listed: set[Outline] = set()
    for ns in {outline.ns for outline in outlines}:
        pages = Pages(Scope(outlines[0].thread_id, ns), _PAGE)
        while pages.more:
            listed.update(pages.read((yield from context.store.page(*pages.request))))
    return {outline.key for outline in outlines if outline not in listed}


def steps_of(metadata: Metadata) -> Steps:
    """Return what metadata says of the step."""
    step, source = metadata.get("step"), metadata.get("source")
    return Steps(step if type(step) is int else None, source if isinstance(source, str) else None)


def created(outline: Outline) -> datetime:
    """Return when a checkpoint was stored, the beginning of 1970 where that is damaged."""
    try:
        return time_of(outline.created_at)
    except CorruptDataError:
        return time_of(0)


class _Teller:
    """The rows of a page and of the parents, from which its entries are made."""

    def __init__(self, thread_id: str, found: Mapping[Key, _Item], writes: Iterable[WriteRow]) -> None:
        self._thread_id = thread_id
        self._found = found
        self._writes: dict[Key, list[WriteRow]] = {}
        for row in writes:
            self._writes.setdefault(row[:2], []).append(row)

    def entry(self, outline: Outline) -> HistoryEntry:
        """Return the entry of a checkpoint. Of a damaged one it has what names it, and what is still sound."""
        bare = HistoryEntry(outline.ns, outline.id, None, created(outline), None, None, (), (), (), 0, {})
        item = self._found.get(outline.key)
        if item is None:
            item = CorruptDataError("its row is not found by its key", checkpoint_location(outline))
        if isinstance(item, CorruptDataError):
            return bare._replace(problem=_problem(item, outline))
        try:
            entry = self._of_sound_row(bare, item)
        except CorruptDataError as error:
            return bare._replace(problem=_problem(error, outline))
        try:
            return entry._replace(writes=_infos(self._proven_writes(outline.key)))
        except CorruptDataError as error:
            return entry._replace(problem=_problem(error, outline))

    def _of_sound_row(self, bare: HistoryEntry, loader: CheckpointLoader) -> HistoryEntry:
        outline, header = loader.outline, loader.header
        metadata = decode_metadata(outline)
        with located(header_location(outline)):
            fields = plain_fields(header)
        parent = self._found.get(outline.parent_key) if outline.parent_key else None
        before = parent.header if isinstance(parent, CheckpointLoader) else None
        size = len(loader.header_stored.body) + len(outline.metadata.encode("utf-8", "surrogatepass"))
        return bare._replace(
            parent=outline.parent,
            step=steps_of(metadata).step,
            source=steps_of(metadata).source,
            nodes=self._nodes(outline, fields, before),
            changed=_changed(header, fields, before),
            bytes=size,
            metadata=metadata,
        )

    def _nodes(self, outline: Outline, fields: Mapping[str, Any], before: Header | None) -> Sequence[str]:
        """The nodes that had seen other versions before the step than after it."""
        if before is None or outline.parent_key is None:
            return ()
        seen, seen_before = fields.get("versions_seen"), _seen_in(before)
        if isinstance(seen, Mapping) and seen_before is not None:
            ran = [name for name, versions in seen.items() if seen_before.get(name) != versions]
        else:  # the fields need the serializer
            ran = [_node(row) or _RESERVED for row in self._writes.get(outline.parent_key, ())]
        return [name for name in dict.fromkeys(ran) if isinstance(name, str) and not name.startswith(_RESERVED)]

    def _proven_writes(self, key: Key) -> list[WriteRow]:
        proven = proven_batches(self._thread_id, self._writes.get(key, ()))
        return sorted(proven, key=attrgetter("task_path", "task_id", "idx"))


def _seen_in(header: Header) -> Mapping[str, Any] | None:
    """What the nodes had seen, None where that cannot be told."""
    try:
        seen = plain_fields(header).get("versions_seen")
    except CorruptDataError:  # of another checkpoint, whose own entry says so
        return None
    return seen if isinstance(seen, Mapping) else None


def _changed(header: Header, fields: Mapping[str, Any], before: Header | None) -> Sequence[str]:
    if before is not None:
        return [channel for channel, version in header.versions.items() if before.versions.get(channel) != version]
    # The first one, or its parent was removed: LangGraph says which channels changed, too.
    updated = fields.get("updated_channels")
    return [channel for channel in header.versions if not isinstance(updated, list) or channel in updated]


def _infos(rows: Iterable[WriteRow]) -> list[WriteInfo]:
    return [WriteInfo(row.task_id, _node(row), row.channel, len(row.value)) for row in rows]


def _node(row: WriteRow) -> str | None:
    """The node whose task wrote a row, where its path names it."""
    found = _PULLED.match(row.task_path) if isinstance(row.task_path, str) else None  # a damaged file may hold anything
    return found[1] if found else None


def _problem(error: CorruptDataError, outline: Outline) -> Problem:
    return Problem("damaged", error.location or checkpoint_location(outline), error.problem)
