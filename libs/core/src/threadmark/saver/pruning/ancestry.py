"""Going from checkpoints to their ancestors: the order to do it in, and their headers, read many at a time."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from threadmark.header import Header
from threadmark.program import Program
from threadmark.saver.caches.segment_cache import fill
from threadmark.saver.context import SaverContext
from threadmark.saver.loading.loader import CheckpointLoader, missing_headers
from threadmark.store import Key, Outline

_FIRST_REACH, _FURTHEST_REACH = 4, 256


class Held(NamedTuple):
    """What a checkpoint's row holds."""

    header: Header
    segments: frozenset[bytes]
    """Those of the header and of all values."""


def children_first(outlines: Sequence[Outline]) -> dict[Key, Key | None]:
    """Each checkpoint with its parent, None where that is not among them; every child stands before its parent.

    Ranks mostly say so, but not where a parent came after its child. Of a circle, one link is left out.
    """
    parents = {outline.key: (outline.ns, outline.parent or "") for outline in outlines}
    order: dict[Key, Key | None] = {}
    for key in parents:
        way: dict[Key, None] = {}
        ancestor = key
        while ancestor in parents and ancestor not in order and ancestor not in way:
            way[ancestor] = None
            ancestor = parents[ancestor]
        for each in reversed(way):
            order[each] = parents[each] if parents[each] in order else None
    return dict(reversed(order.items()))


class Headers:
    """The headers of one thread's checkpoints, each read once and given away."""

    def __init__(self, context: SaverContext, thread_id: str, parents: Mapping[Key, Key | None]) -> None:
        self._context = context
        self._thread_id = thread_id
        self._parents = parents
        self._read: dict[Key, Held] = {}
        self._reach: dict[Key, int] = {}

    def take(self, key: Key) -> Held | None:
        """What was read of a checkpoint."""
        return self._read.pop(key, None)

    def read(self, keys: Iterable[Key]) -> Program[None]:
        """Read these, as far as they are there."""
        lacking = [key for key in keys if key not in self._read]
        if not lacking:
            return
        rows = yield from self._context.store.rows(self._thread_id, lacking)
        loaders = [CheckpointLoader(row, (), self._context.encoding_cache) for row in rows]
        segment_cache = self._context.segment_cache()
        yield from fill(segment_cache, self._context.store, self._thread_id, missing_headers(loaders))
        for loader in loaders:
            loader.open_header(segment_cache)
            segments = {key for value in loader.header.values.values() for key in value.segment_keys()}
            self._read[loader.outline.key] = Held(loader.header, frozenset(segments.union(loader.header_keys())))

    def read_on(self, key: Key) -> Program[Held | None]:
        """Read a checkpoint and its next ancestors, more of them each time. Returns what the checkpoint holds."""
        reach = self._reach.pop(key, _FIRST_REACH)
        way: list[Key] = []
        ancestor: Key | None = key
        while ancestor is not None and len(way) < reach:
            way.append(ancestor)
            ancestor = self._parents[ancestor]
        if ancestor is not None:
            self._reach[ancestor] = min(4 * reach, _FURTHEST_REACH)
        yield from self.read(way)
        return self.take(key)
