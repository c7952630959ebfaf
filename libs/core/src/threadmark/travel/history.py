"""A thread's checkpoints without their values: a page of its history, and their branches.

All of it comes from rows and headers, without the serializer.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from threadmark.config import ParsedConfig
from threadmark.errors import CorruptDataError, located
from threadmark.metadata import from_json
from threadmark.model import Config, Metadata, Problem
from threadmark.names import MESSAGES_NS, as_text
from threadmark.program import Operation, Program, read
from threadmark.saver.kit import (
    CheckpointLoader,
    Header,
    Pages,
    SaverContext,
    checkpoint_location,
    decode_metadata,
    fill,
    good,
    header_location,
    lacking,
    loaders,
    missing_headers,
    new_cursor,
    open_headers,
    parse_place,
    parts_of_cursor,
    plain_fields,
    proven_batches,
    time_of,
)
from threadmark.store.contract import Key, Outline, Scope, WriteRow
from threadmark.travel.model import Branch, HistoryEntry, HistoryPage, Tree, TreeNode, WriteInfo

_PULLED = re.compile("^~?__pregel_pull, (.+)$", re.DOTALL)
"""The path of a task that LangGraph began because channels had changed. It ends with the node's name; the path of one
that was sent names none."""

_PUSHED = re.compile("^~?__pregel_push\\b")
"""The path of a task that LangGraph began because of a packet."""

_PAGE = 512

_RESERVED = "__"
"""The beginning of LangGraph's own names, such as `__input__`, which no user's node has."""

_Item = CheckpointLoader | CorruptDataError
_NO_NODES: Mapping[str, Any] = {}


class Steps(NamedTuple):
    """The metadata of LangGraph's checkpoints about the step that made them."""

    step: int | None
    source: str | None


def entries_of(context: SaverContext, thread_id: str, outlines: Sequence[Outline]) -> Program[list[HistoryEntry]]:
    """Return the entries of some checkpoints of a thread, in their order. A damaged one says so.

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
    """Which of these, whose rows are not found, are not listed any more either. The keys of the others are damaged."""
    listed: set[Outline] = set()
    for ns in {outline.ns for outline in outlines}:
        pages = Pages(Scope(outlines[0].thread_id, ns), _PAGE)
        while pages.more:
            listed.update(pages.read((yield from context.store.page(*pages.request))))
    return {outline.key for outline in outlines if outline not in listed}


def steps_of(metadata: Metadata) -> Steps:
    """Return the statements of metadata about the step."""
    step, source = metadata.get("step"), metadata.get("source")
    return Steps(step if type(step) is int else None, source if isinstance(source, str) else None)


def created(outline: Outline) -> datetime:
    """Return when a checkpoint was stored, the beginning of 1970 if that is damaged."""
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
        """Return the entry of a checkpoint. For a damaged one it has the keys, and the fields that are still sound."""
        bare = HistoryEntry(outline.ns, outline.id, None, created(outline), None, None, [], [], [], 0, {})
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
            size_bytes=size,
            metadata=metadata,
        )

    def _nodes(self, outline: Outline, fields: Mapping[str, Any], before: Header | None) -> list[str]:
        """The nodes that had seen other versions before the step than after it."""
        if before is None or outline.parent_key is None:
            return []
        seen, seen_before = fields.get("versions_seen"), _seen_in(before)
        if isinstance(seen, Mapping) and seen_before is not None:
            ran = [name for name, versions in seen.items() if seen_before.get(name) != versions]
            ran += self._sent_to(outline.parent_key, seen)
        else:  # the fields need the serializer
            ran = [_node(row) or _RESERVED for row in self._writes.get(outline.parent_key, ())]
        return [name for name in dict.fromkeys(ran) if isinstance(name, str) and not name.startswith(_RESERVED)]

    def _sent_to(self, key: Key, seen: Mapping[str, Any]) -> Sequence[str]:
        """The node that packets went to, if tasks of a checkpoint were made by packets and there is only one such node.

        A node that only packets lead to sees no versions: after its first step it looks as if it had not run again.
        """
        if not any(
            isinstance(row.task_path, str) and _PUSHED.match(row.task_path) for row in self._writes.get(key, ())
        ):
            return ()
        found = [name for name, versions in seen.items() if versions == {} and not str(name).startswith(_RESERVED)]
        return found if len(found) == 1 else ()

    def _proven_writes(self, key: Key) -> list[WriteRow]:
        proven = proven_batches(self._thread_id, self._writes.get(key, ()))
        return sorted(proven, key=attrgetter("task_path", "task_id", "idx"))


def _seen_in(header: Header) -> Mapping[str, Any] | None:
    """The versions that the nodes had seen, None if unknown."""
    try:
        seen = plain_fields(header).get("versions_seen")
    except CorruptDataError:  # of another checkpoint, whose own entry says so
        return None
    return seen if isinstance(seen, Mapping) else None


def _changed(header: Header, fields: Mapping[str, Any], before: Header | None) -> list[str]:
    if before is not None:
        return [channel for channel, version in header.versions.items() if before.versions.get(channel) != version]
    # The first one, or its parent was removed: LangGraph says which channels changed, too.
    updated = fields.get("updated_channels")
    return [channel for channel in header.versions if not isinstance(updated, list) or channel in updated]


def _infos(rows: Iterable[WriteRow]) -> list[WriteInfo]:
    return [WriteInfo(row.task_id, _node(row), row.channel, len(row.value)) for row in rows]


def _node(row: WriteRow) -> str | None:
    """The node whose task wrote a row, if its path names it."""
    found = _PULLED.match(row.task_path) if isinstance(row.task_path, str) else None  # a damaged file may hold anything
    return found[1] if found else None


def _problem(error: CorruptDataError, outline: Outline) -> Problem:
    return Problem("damaged", error.location or checkpoint_location(outline), error.problem)


_AT_ONCE = 512
"""How many checkpoints are read in one transaction."""


def history(
    context: SaverContext, thread: Config | str, ns: str | None, limit: int, cursor: str | None
) -> Operation[HistoryPage]:
    """Return a page of a thread's checkpoints, newest first. A conversation's messages are none."""
    where = parse_place(thread)
    thread_id = where.thread_id
    scope = Scope(thread_id, None if ns is None else as_text(ns, "ns"))
    after = None if cursor is None else _place(thread_id, cursor)
    page = HistoryPage([], None)
    more = limit > 0
    while more:
        count = min(limit - len(page.entries), _AT_ONCE)
        begin = where if after is None and where.checkpoint_id is not None else None
        outlines, more = yield from read(_outlines, context, scope, begin, after, count)
        page.entries.extend((yield from read(entries_of, context, thread_id, outlines)))
        after = outlines[-1] if outlines else None
        if more and after is not None and len(page.entries) >= limit:
            return page._replace(cursor=new_cursor(after.rank, after.ns))
    if limit > 0:
        page = page._replace(problems=(yield from read(lacking, context, thread_id, scope.ns)))
    return page


def _outlines(
    context: SaverContext, scope: Scope, begin: ParsedConfig | None, after: Outline | None, limit: int
) -> Program[tuple[list[Outline], bool]]:
    """Return the next checkpoints, and whether there are more: from one that is named on, itself included.

    Messages among them are passed over.
    """
    found: list[Outline] = []
    if begin is not None:
        named = yield from context.store.page(Scope(*begin[:3]), None, 1)
        if not named:
            return [], False
        after = named[0]
        found += [outline for outline in named if scope.ns in (None, outline.ns) and outline.ns != MESSAGES_NS]
    asked = limit + 1 - len(found)
    while True:
        page = yield from context.store.page(scope, after, asked)
        found += [outline for outline in page if outline.ns != MESSAGES_NS]
        if len(page) < asked or len(found) > limit or not _goes_on(after, page[-1]):
            return found[:limit], len(found) > limit
        after, asked = page[-1], _AT_ONCE  # a conversation may have many messages


def _goes_on(after: Outline | None, last: Outline) -> bool:
    """Whether a page leads on. In a damaged index it may lead back."""
    return after is None or last.order < after.order


def _place(thread_id: str, cursor: str) -> Outline:
    """The place that a cursor names, as a checkpoint that stands there."""
    rank, ns = parts_of_cursor(cursor, (str, str))
    return Outline(thread_id, ns, "", rank, None, 0, "")


_OUTLINES_READ = 4096


def tree(context: SaverContext, thread: Config | str) -> Operation[Tree]:
    """Return all checkpoints of a thread, and the branches that they form. A conversation's messages are none."""
    thread_id = parse_place(thread).thread_id
    found: dict[Key, Outline] = {}
    after: Outline | None = None
    more = True
    while more:
        page = yield from read(context.store.page, Scope(thread_id), after, _OUTLINES_READ)
        before = len(found)
        for outline in page:
            if outline.ns != MESSAGES_NS:
                found.setdefault(outline.key, outline)  # the same under a smaller rank is a remainder
        more = len(page) == _OUTLINES_READ and (len(found) > before or page[-1].ns == MESSAGES_NS)
        after = page[-1] if page else None
    lines = _lines(found)
    branch_of = {key: number for number, line in enumerate(lines) for key in line}
    nodes = [_tree_node(outline, branch_of[key]) for key, outline in found.items()]
    problems = yield from read(lacking, context, thread_id, None)
    return Tree(thread_id, nodes, _branches(found, lines, branch_of), problems)


def _lines(found: Mapping[Key, Outline]) -> list[list[Key]]:
    """The checkpoints of each branch, from its head on; those with the newest heads first.

    From the newest head every ancestor is on its line, from the next one those that are on none yet. The rest
    then leads back to itself, which only damage can do.
    """
    parents = {outline.parent_key for outline in found.values()}
    heads = [key for key in found if key not in parents]
    taken: set[Key] = set()
    lines = []
    for head in [*heads, *found]:
        line: list[Key] = []
        key: Key | None = head
        while key is not None and key in found and key not in taken:
            taken.add(key)
            line.append(key)
            key = found[key].parent_key
        if line:
            lines.append(line)
    return lines


def _branches(
    found: Mapping[Key, Outline], lines: Sequence[Sequence[Key]], branch_of: Mapping[Key, int]
) -> list[Branch]:
    newest = _newest(found.values())
    branches = []
    for number, line in enumerate(lines):
        ns, head = line[0]
        parent = found[line[-1]].parent_key
        forked_from = parent[1] if parent and branch_of.get(parent, number) != number else None
        branches.append(Branch(ns, head, line[-1][1], forked_from, len(line), newest[ns] == head))
    return branches


def _newest(outlines: Iterable[Outline]) -> dict[str, str]:
    """The newest checkpoint of each namespace, of checkpoints that come newest first."""
    newest: dict[str, str] = {}
    for outline in outlines:
        newest.setdefault(outline.ns, outline.id)
    return newest


def _tree_node(outline: Outline, branch: int) -> TreeNode:
    step, source = _steps(outline)
    return TreeNode(outline.ns, outline.id, outline.parent, created(outline), step, source, branch)


def _steps(outline: Outline) -> Steps:
    try:
        return steps_of(from_json(outline.metadata))
    except CorruptDataError:  # `history` reports the damage
        return Steps(None, None)
