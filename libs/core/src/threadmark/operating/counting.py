"""Counting: how much is stored, and how much it would be if every value were stored whole."""

from collections.abc import Iterable
from operator import add

from threadmark.errors import CorruptDataError
from threadmark.model import OnProgress, Problem
from threadmark.operating.inspecting import Contents, batches, contents_of
from threadmark.operating.model import ChannelStats, Stats
from threadmark.program import Operation, Program, read_itself
from threadmark.saver.kit import (
    CheckpointLoader,
    EncodingCache,
    SaverContext,
    Stored,
    count_writes,
    damaged,
    fill,
    good,
    is_pack,
    is_record,
    layout,
    loaders,
    members,
    missing_headers,
    open_headers,
    opened_write,
    prove_write,
    reporter_of_threads,
    some_threads,
    without_records,
)
from threadmark.store.contract import CheckpointRow, WriteRow


def stats(context: SaverContext, thread_id: object | None, progress: OnProgress | None) -> Operation[Stats]:
    """Count rows and bytes, thread by thread."""
    context = context._replace(encoding_cache=EncodingCache(0))
    total = _Total()
    reporter = yield from reporter_of_threads(context, thread_id, progress)
    after: str | None = ""
    while after is not None:
        names, after = yield from some_threads(context, thread_id, after)
        for name in names:
            try:
                one = yield from read_itself(_count, context, name)
            except CorruptDataError as error:  # of which nothing can be counted
                one = Stats(1, 0, 0, 0, 0, 0, 0, {}, [damaged(error)])
            total.add(one)
            reporter.done([name])
    return total.stats()


def _count(context: SaverContext, thread_id: str) -> Program[Stats]:
    contents = yield from contents_of(context, thread_id)
    tally = _Tally(thread_id, contents)
    for batch in batches(contents.outlines):
        rows = yield from context.store.rows(thread_id, [outline.key for outline in batch])
        found = loaders(context, rows, {})
        segment_cache = context.segment_cache()
        yield from fill(segment_cache, context.store, thread_id, missing_headers(good(found)))
        open_headers(found, segment_cache)
        tally.checkpoints(rows, found.values())
    return tally.stats()


class _Tally:
    """The sums of one thread. A channel's segments are counted once, however many values name them."""

    def __init__(self, thread_id: str, contents: Contents) -> None:
        self._contents = contents
        self._problems: list[Problem] = []
        self._channels: dict[str, ChannelStats] = {}
        self._of_channel: dict[str, set[bytes]] = {}
        self._segment_sizes: dict[bytes, int] = {}
        """How long the segments are that values name: before they were compressed or sealed."""
        metadata = sum(len(outline.metadata.encode("utf-8", "surrogatepass")) for outline in contents.outlines)
        records = sum(len(row.value) for row in contents.writes if is_record(row))
        self._stored = sum(contents.sizes.values()) + metadata + records
        self._whole = metadata
        self._overhead = records
        self._writes = count_writes(thread_id, contents.writes)
        for row in without_records(contents.writes):
            self._write(thread_id, row)

    def checkpoints(self, rows: Iterable[CheckpointRow], found: Iterable[CheckpointLoader | CorruptDataError]) -> None:
        """Count some checkpoints' rows, and their contents as far as they can be read."""
        self._stored += sum(len(row.header) for row in rows)
        for item in found:
            if isinstance(item, CorruptDataError):
                self._problems.append(damaged(item))
            else:
                self._checkpoint(item)

    def stats(self) -> Stats:
        """The sums, when all checkpoints are counted."""
        contents = self._contents
        for channel, keys in self._of_channel.items():
            size = sum(contents.sizes.get(key, 0) for key in keys)
            self._channels[channel] = self._channels[channel]._replace(bytes_stored=size)
        framed = (contents.sizes.get(key, 0) - size for key, size in self._segment_sizes.items())
        return Stats(
            int(contents.epoch is not None),
            len(contents.outlines),
            self._writes,
            len(contents.sizes),
            self._stored,
            self._whole,
            self._overhead + sum(excess for excess in framed if excess > 0),
            self._channels,
            self._problems,
        )

    def _write(self, thread_id: str, row: WriteRow) -> None:
        self._stored += len(row.value)
        try:
            prove_write(thread_id, row)
            rows = members(thread_id, row) if is_pack(row) else [row]
            values = [opened_write(thread_id, each).value for each in rows]
        except CorruptDataError as error:
            self._problems.append(damaged(error))
            return
        self._whole += sum(map(self._size, values))
        self._overhead += len(row.value) - sum(len(value.body) - value.overhead() for value in values)

    def _checkpoint(self, loader: CheckpointLoader) -> None:
        self._whole += self._size(loader.header_stored)
        self._overhead += loader.header_stored.overhead()
        for channel, value in loader.header.values.items():
            size = self._size(value)
            self._channels[channel] = self._channels.get(channel, _NOTHING).plus(ChannelStats(1, 0, size))
            self._of_channel.setdefault(channel, set()).update(value.segment_keys())
            self._whole += size if value.digest else 0  # a literal stands in the header, which is counted

    def _size(self, value: Stored) -> int:
        """The length of a value, whose segments are noted."""
        if not value.digest:
            return len(value.packed)
        manifest = layout(value.packed)
        self._segment_sizes.update(zip(manifest.keys, manifest.sizes, strict=True))
        return manifest.length


class _Total:
    """Sums over threads, each added when its transaction is over, which may have been run twice."""

    def __init__(self) -> None:
        self._counts = (0, 0, 0, 0, 0, 0, 0)
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
