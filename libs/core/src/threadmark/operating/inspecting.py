"""Inspection: whether all rows are as they were written, and, if requested, whether they can be decoded here.

This module also lists the contents of a database without the states, for tools that go through everything. Nothing here
creates tables.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from threadmark.errors import CorruptDataError, LocatedError, TransientStoreError
from threadmark.model import CheckpointRef, OnProgress, Problem
from threadmark.operating.model import VerifyReport
from threadmark.program import Operation, Program, read, read_existing, read_itself, write
from threadmark.saver.kit import (
    Allowance,
    EncodingCache,
    Item,
    LoadedCheckpoint,
    Pages,
    SaverContext,
    Stored,
    Write,
    check_flag,
    count_writes,
    damaged,
    decode_metadata,
    decode_write,
    decoded,
    header_location,
    load_many,
    members_or_itself,
    missing,
    plain_fields,
    proven_writes,
    reporter_of_threads,
    some_threads,
    sound_row,
    task_location,
    thread_ids,
    whole,
)
from threadmark.store.contract import Key, Outline, Scope, WriteRow

_PAGE = 4096


def has_tables(context: SaverContext) -> Operation[bool]:
    """Whether the database is there: any answer but None comes from its tables."""
    answer = yield from read_existing(context.store.threads, "", 1)
    return answer is not None


def has_only_langgraph_data(context: SaverContext) -> Operation[bool]:
    """Whether LangGraph's own saver keeps checkpoints in this database, and this one keeps none."""
    return (yield from read(context.store.has_only_langgraph_data))


def list_checkpoint_refs(context: SaverContext) -> Operation[list[CheckpointRef]]:
    """List all checkpoints, without their state."""
    found: list[CheckpointRef] = []
    pages = Pages(Scope(), _PAGE)
    while pages.more:
        page = pages.read((yield from read_existing(context.store.page, *pages.request)))
        found += [CheckpointRef(each.thread_id, each.ns, each.id, each.parent) for each in page]
    return found


def list_orphan_writes(context: SaverContext) -> Operation[list[CheckpointRef]]:
    """List the checkpoints that are missing although pending writes belong to them."""
    written: set[tuple[str, str, str]] = set()
    after = ""
    more = True
    while more:
        threads = (yield from read_existing(thread_ids, context, after, _PAGE)) or []
        more, after = len(threads) == _PAGE, threads[-1] if threads else ""
        for thread_id in threads:
            rows = yield from read(context.store.writes, thread_id, None)
            written.update((thread_id, row.ns, row.checkpoint_id) for row in rows)
    # Looked for last, so that a checkpoint that has just come is none.
    there = {ref[:3] for ref in (yield from list_checkpoint_refs(context))}
    return [CheckpointRef(*ref, None) for ref in sorted(written - there)]


_BATCH = 16
_ATTEMPTS = 8


class Contents(NamedTuple):
    """What one thread holds, without the checkpoints' states."""

    epoch: int | None
    outlines: Sequence[Outline]
    writes: Sequence[WriteRow]
    """Records of batches included."""
    sizes: dict[bytes, int]
    missing: Sequence[tuple[str, str]]
    """What says that checkpoints are missing, as (location, problem)."""


class _OrphanWrites(NamedTuple):
    """The rows of pending writes that belong to one missing checkpoint."""

    rows: Sequence[WriteRow]
    segments: dict[bytes, bytes]


def verify(
    context: SaverContext, thread_id: object | None, *, decode: bool, repair: bool, progress: OnProgress | None
) -> Operation[VerifyReport]:
    """Read every row, value by value, past the memory of recent encodings."""
    check_flag(decode, "decode")
    check_flag(repair, "repair")
    context = context._replace(encoding_cache=EncodingCache(0))
    total = VerifyReport(0, 0, 0, [], [])
    reporter = yield from reporter_of_threads(context, thread_id, progress)
    if repair and thread_id is None:
        yield from write(context.store.mend)
    after: str | None = ""
    while after is not None:
        names, after = yield from some_threads(context, thread_id, after)
        for name in names:
            try:
                one = yield from _verify_thread(context, name, decode=decode)
            except CorruptDataError as error:  # in which nothing can be looked at
                one = VerifyReport(1, 0, 0, [damaged(error)], [])
            total = VerifyReport(*(mine + theirs for mine, theirs in zip(total, one, strict=True)))  # type: ignore[operator]  # numbers and lists both add up
            reporter.done([name])
    if thread_id is None:
        lost = yield from read(context.store.damage)
        total.problems.extend(Problem("damaged", *one) for one in lost)
    return total


class _Findings:
    """What was found in one thread so far."""

    def __init__(self, context: SaverContext, thread_id: str, *, decode: bool) -> None:
        self._context = context
        self._thread_id = thread_id
        self._decode = decode
        self.problems: list[Problem] = []
        self.unreadable: list[Problem] = []
        self._needed: set[bytes] = set()

    def add_checkpoint(self, item: Item) -> None:
        """Prove a checkpoint. Its values are decoded only if that was asked for."""
        try:
            loaded = whole(item)
            self._needed.update(Stored.from_bytes(loaded.body).segment_keys())
            for value in (*loaded.header.values.values(), *(write.value for write in loaded.writes)):
                self._needed.update(value.segment_keys())
            _prove_fields(loaded)
        except CorruptDataError as error:
            self.problems.append(damaged(error))
            return
        if self._decode:
            try:
                decoded(self._context, loaded)
            except LocatedError as error:
                self.unreadable.append(_unreadable(error))

    def add_writes(self, rows: Sequence[WriteRow], segments: Mapping[bytes, bytes]) -> None:
        """Prove the writes of one missing checkpoint, in the same way."""
        proven: list[tuple[Write, bytes]] = []
        try:
            for write in proven_writes(self._thread_id, rows):
                self._needed.update(write.value.segment_keys())
                data = write.value.data(segments, Allowance(self._context.expansion))
                if self._decode:
                    proven.append((write, data))
        except CorruptDataError as error:
            location = error.location or task_location(self._thread_id, rows[0])
            self.problems.append(Problem("damaged", location, error.problem))
        for write, data in proven:
            try:
                decode_write(self._context, self._thread_id, write, {write.value.digest: data})
            except LocatedError as error:
                self.unreadable.append(_unreadable(error))

    def add_orphans(self, sizes: Mapping[bytes, int]) -> None:
        """Report segments that nothing refers to, unless damaged rows might refer to them."""
        orphans = sizes.keys() - self._needed
        if orphans and not self.problems:
            size = sum(sizes[key] for key in orphans)
            found = f"{len(orphans)} segments of {size} bytes; prune sweeps them"
            self.problems.append(Problem("orphan", f"thread {self._thread_id!r}", found))


def _verify_thread(context: SaverContext, thread_id: str, *, decode: bool) -> Operation[VerifyReport]:
    """Verify one thread, a few checkpoints in each transaction. Starts again if rows are deleted."""
    for _ in range(_ATTEMPTS):
        try:
            contents = yield from read(contents_of, context, thread_id)
        except CorruptDataError as error:  # a part of it is gone, so that the rest cannot be told
            return VerifyReport(1, 0, 0, [damaged(error)], [])
        findings = _Findings(context, thread_id, decode=decode)
        findings.problems += [Problem("damaged", *one) for one in contents.missing]
        outline = yield from read(context.store.thread, thread_id)
        try:
            if outline is not None:
                sound_row(outline)
        except CorruptDataError as error:
            findings.problems.append(damaged(error))
        for batch in batches(contents.outlines):
            for item in (yield from read_itself(load_many, context, batch, {})):
                findings.add_checkpoint(item)
        for rows, segments in (yield from read_itself(_orphan_writes, context, thread_id, contents)):
            findings.add_writes(rows, segments)
        epoch = yield from read(context.store.epoch, thread_id)
        if epoch == contents.epoch:
            findings.add_orphans(contents.sizes)
            writes = count_writes(thread_id, contents.writes)
            there = int(epoch is not None)
            return VerifyReport(there, len(contents.outlines), writes, findings.problems, findings.unreadable)
    raise TransientStoreError(f"thread {thread_id!r}: rows were deleted {_ATTEMPTS} times during the check; try again")


def _prove_fields(loaded: LoadedCheckpoint) -> None:
    """Raise CorruptDataError where something that takes no serializer to read cannot be read."""
    decode_metadata(loaded.outline)
    try:
        plain_fields(loaded.header)
    except CorruptDataError as error:
        raise error.at(header_location(loaded.outline)) from error


def contents_of(context: SaverContext, thread_id: str) -> Program[Contents]:
    """Read what one thread holds, without the checkpoints' states."""
    epoch = yield from context.store.epoch(thread_id)
    lacking = yield from missing(context, thread_id, None)
    outlines: dict[Key, Outline] = {}
    pages = Pages(Scope(thread_id), _PAGE)
    while pages.more:
        page = yield from context.store.page(*pages.request)
        outlines.update((outline.key, outline) for outline in page)
        try:
            pages.read(page)
        except CorruptDataError as error:
            lacking.append((error.location, error.problem))
    writes = yield from context.store.writes(thread_id, None)
    sizes = yield from context.store.segment_sizes(thread_id)
    return Contents(epoch, list(outlines.values()), writes, sizes, lacking)


def _orphan_writes(context: SaverContext, thread_id: str, contents: Contents) -> Program[list[_OrphanWrites]]:
    """The rows of writes whose checkpoint is not there (they may come first), by checkpoint, and their segments."""
    there = {outline.key for outline in contents.outlines}
    groups: dict[Key, list[WriteRow]] = {}
    for row in contents.writes:
        if row[:2] not in there:
            groups.setdefault(row[:2], []).append(row)
    found = []
    for rows in groups.values():
        keys = sorted({key for row in rows for each in members_or_itself(thread_id, row) for key in _keys_of(each)})
        segments = (yield from context.store.segments(thread_id, keys)) if keys else {}
        found.append(_OrphanWrites(rows, segments))
    return found


def _keys_of(row: WriteRow) -> Sequence[bytes]:
    try:
        return Stored.from_bytes(row.value).segment_keys()
    except CorruptDataError:
        return ()


def batches(outlines: Sequence[Outline]) -> Iterator[Sequence[Outline]]:
    """The checkpoints in groups of a size to load at once."""
    for start in range(0, len(outlines), _BATCH):
        yield outlines[start : start + _BATCH]


def _unreadable(error: LocatedError) -> Problem:
    return Problem("unreadable", error.location, error.problem)
