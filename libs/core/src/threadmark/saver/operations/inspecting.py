"""Inspecting: is everything stored readable, and how much is it."""

from collections.abc import Iterable, Iterator, Sequence
from operator import add
from typing import NamedTuple

from threadmark.config import as_thread_id
from threadmark.errors import CorruptDataError, LocatedError, TransientStoreError
from threadmark.model import ChannelStats, Problem, Stats, Verified
from threadmark.program import Operation, Program, read
from threadmark.saver.caches.encoding_cache import EncodingCache
from threadmark.saver.caches.segment_cache import fill
from threadmark.saver.context import SaverContext
from threadmark.saver.loading.decoding import decode_write, decoded
from threadmark.saver.loading.loader import CheckpointLoader, missing_headers, opened_write, proven_writes
from threadmark.saver.operations.listing import good, load_many, loaders, open_headers, thread_ids, whole
from threadmark.saver.paging import Pages
from threadmark.saver.proving.batches import is_record, without_records
from threadmark.saver.proving.checks import prove_write, task_location
from threadmark.saver.proving.completeness import missing
from threadmark.store import CheckpointRow, Key, Outline, Scope, WriteRow
from threadmark.stored import Allowance, Stored

_PAGE = 4096
_BATCH = 16
_ATTEMPTS = 8


class _Contents(NamedTuple):
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


def verify(context: SaverContext, thread_id: str | None) -> Operation[Verified]:
    """Read every row, value by value, past the memory of recent encodings."""
    context = context._replace(encoding_cache=EncodingCache(0))
    total = Verified(0, 0, 0, [])
    after: str | None = ""
    while after is not None:
        names, after = yield from some_threads(context, thread_id, after)
        for name in names:
            one = yield from _verify_thread(context, name)
            total = Verified(*(mine + theirs for mine, theirs in zip(total, one, strict=True)))  # type: ignore[operator]  # numbers and lists both add up
    if thread_id is None:
        damage = yield from read(context.store.damage)
        total.problems.extend(Problem("damaged", *one) for one in damage)
    return total


def stats(context: SaverContext, thread_id: str | None) -> Operation[Stats]:
    """Count rows and bytes, thread by thread."""
    context = context._replace(encoding_cache=EncodingCache(0))
    total = _Total()
    after: str | None = ""
    while after is not None:
        names, after = yield from some_threads(context, thread_id, after)
        for name in names:
            total.add((yield from read(_count, context, name)))
    return total.stats()


def some_threads(context: SaverContext, thread_id: str | None, after: str) -> Operation[tuple[list[str], str | None]]:
    """A page of thread ids, and where the next one starts."""
    if thread_id is not None:
        return [as_thread_id(thread_id)], None
    names = yield from read(thread_ids, context, after, _PAGE)
    return names, names[-1] if len(names) == _PAGE else None


def _verify_thread(context: SaverContext, thread_id: str) -> Operation[Verified]:
    """Verify one thread, a few checkpoints in each transaction. Starts again if rows were deleted meanwhile."""
    for _ in range(_ATTEMPTS):
        contents = yield from read(_contents, context, thread_id)
        problems = [Problem("damaged", *one) for one in contents.missing]
        needed: set[bytes] = set()
        for batch in _batches(contents.outlines):
            found = yield from read(load_many, context, batch, {})
            for item in found:
                problems += _problems_of(context, item, needed)
        orphan = yield from read(_orphan_writes, context, thread_id, contents)
        problems += _problems_of_writes(context, thread_id, orphan, needed)
        epoch = yield from read(context.store.epoch, thread_id)
        if epoch == contents.epoch:
            problems += _orphans(thread_id, contents, needed, whole=not problems)
            writes = without_records(contents.writes)
            return Verified(int(epoch is not None), len(contents.outlines), len(writes), problems)
    raise TransientStoreError(f"thread {thread_id!r}: rows were deleted {_ATTEMPTS} times during the check; try again")


def _contents(context: SaverContext, thread_id: str) -> Program[_Contents]:
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
    return _Contents(epoch, list(outlines.values()), writes, sizes, lacking)


def _problems_of(
    context: SaverContext, item: CheckpointLoader | CorruptDataError, needed: set[bytes]
) -> Iterator[Problem]:
    try:
        loaded = whole(item)
        needed.update(loaded.stored.segment_keys())
        for value in (*loaded.header.values.values(), *(write.value for write in loaded.writes)):
            needed.update(value.segment_keys())
        decoded(context, loaded)
    except CorruptDataError as error:
        yield _damage(error)
    except LocatedError as error:
        yield Problem("unreadable", error.location, error.problem)


def _orphan_writes(context: SaverContext, thread_id: str, contents: _Contents) -> Program[list[_OrphanWrites]]:
    """The rows of writes whose checkpoint is not there (they may come first), by checkpoint, and their segments."""
    there = {outline.key for outline in contents.outlines}
    groups: dict[Key, list[WriteRow]] = {}
    for row in contents.writes:
        if row[:2] not in there:
            groups.setdefault(row[:2], []).append(row)
    found = []
    for rows in groups.values():
        keys = sorted({key for row in rows for key in _keys_of(row)})
        segments = (yield from context.store.segments(thread_id, keys)) if keys else {}
        found.append(_OrphanWrites(rows, segments))
    return found


def _problems_of_writes(
    context: SaverContext, thread_id: str, orphan: Sequence[_OrphanWrites], needed: set[bytes]
) -> Iterator[Problem]:
    for rows, segments in orphan:
        try:
            for write in proven_writes(thread_id, rows):
                needed.update(write.value.segment_keys())
                data = write.value.data(segments, Allowance(context.expansion))
                decode_write(context, thread_id, write, {write.value.digest: data})
        except CorruptDataError as error:
            yield Problem("damaged", error.location or task_location(thread_id, rows[0]), error.problem)
        except LocatedError as error:
            yield Problem("unreadable", error.location, error.problem)


def _orphans(thread_id: str, contents: _Contents, needed: set[bytes], *, whole: bool) -> Iterator[Problem]:
    """Report segments that nothing refers to, unless damaged rows might refer to them."""
    orphans = contents.sizes.keys() - needed
    if orphans and whole:
        size = sum(contents.sizes[key] for key in orphans)
        yield Problem("orphan", f"thread {thread_id!r}", f"{len(orphans)} segments of {size} bytes; prune sweeps them")


def _keys_of(row: WriteRow) -> Sequence[bytes]:
    try:
        return Stored.from_bytes(row.value).segment_keys()
    except CorruptDataError:
        return ()


def _batches(outlines: Sequence[Outline]) -> Iterator[Sequence[Outline]]:
    for start in range(0, len(outlines), _BATCH):
        yield outlines[start : start + _BATCH]


def _count(context: SaverContext, thread_id: str) -> Program[Stats]:
    contents = yield from _contents(context, thread_id)
    tally = _Tally(thread_id, contents)
    for batch in _batches(contents.outlines):
        rows = yield from context.store.rows(thread_id, [outline.key for outline in batch])
        found = loaders(context, rows, {})
        segment_cache = context.segment_cache()
        yield from fill(segment_cache, context.store, thread_id, missing_headers(good(found)))
        open_headers(found, segment_cache)
        tally.checkpoints(rows, found.values())
    return tally.stats()


class _Tally:
    """The sums of one thread. A channel's segments are counted once, however many values name them."""

    def __init__(self, thread_id: str, contents: _Contents) -> None:
        self._contents = contents
        self._problems: list[Problem] = []
        self._channels: dict[str, ChannelStats] = {}
        self._of_channel: dict[str, set[bytes]] = {}
        metadata = sum(len(outline.metadata.encode("utf-8", "surrogatepass")) for outline in contents.outlines)
        records = sum(len(row.value) for row in contents.writes if is_record(row))
        self._stored = sum(contents.sizes.values()) + metadata + records
        self._whole = metadata
        self._writes = without_records(contents.writes)
        for row in self._writes:
            self._write(thread_id, row)

    def checkpoints(self, rows: Iterable[CheckpointRow], found: Iterable[CheckpointLoader | CorruptDataError]) -> None:
        """Some checkpoints' rows, and what they hold as far as it can be read."""
        self._stored += sum(len(row.header) for row in rows)
        for item in found:
            if isinstance(item, CorruptDataError):
                self._problems.append(_damage(item))
            else:
                self._checkpoint(item)

    def stats(self) -> Stats:
        """The sums, when all checkpoints are counted."""
        contents = self._contents
        for channel, keys in self._of_channel.items():
            size = sum(contents.sizes.get(key, 0) for key in keys)
            self._channels[channel] = self._channels[channel]._replace(bytes_stored=size)
        return Stats(
            int(contents.epoch is not None),
            len(contents.outlines),
            len(self._writes),
            len(contents.sizes),
            self._stored,
            self._whole,
            self._channels,
            self._problems,
        )

    def _write(self, thread_id: str, row: WriteRow) -> None:
        self._stored += len(row.value)
        try:
            prove_write(thread_id, row)
            self._whole += opened_write(thread_id, row).value.size()
        except CorruptDataError as error:
            self._problems.append(_damage(error))

    def _checkpoint(self, loader: CheckpointLoader) -> None:
        self._whole += loader.header_size()
        for channel, value in loader.header.values.items():
            size = value.size()
            self._channels[channel] = self._channels.get(channel, _NOTHING).plus(ChannelStats(1, 0, size))
            self._of_channel.setdefault(channel, set()).update(value.segment_keys())
            self._whole += size if value.digest else 0  # a literal stands in the header, which is counted


class _Total:
    """Sums over threads, each added when its transaction is over, which may have been run twice."""

    def __init__(self) -> None:
        self._counts = (0, 0, 0, 0, 0, 0)
        self._channels: dict[str, ChannelStats] = {}
        self._problems: list[Problem] = []

    def add(self, one: Stats) -> None:
        """One more thread."""
        *counts, channels, problems = one
        self._counts = tuple(map(add, self._counts, counts))
        for channel, figures in channels.items():
            self._channels[channel] = self._channels.get(channel, _NOTHING).plus(figures)
        self._problems += problems

    def stats(self) -> Stats:
        """The sums."""
        return Stats(*self._counts, self._channels, self._problems)


_NOTHING = ChannelStats(0, 0, 0)


def _damage(error: CorruptDataError) -> Problem:
    return Problem("damaged", error.location, error.problem)
