"""A walk along the orders of some buckets, side by side: the most recently updated items first, and then by key."""

import heapq
from collections import deque
from collections.abc import Sequence
from typing import Any

from threadmark.backends import Program
from threadmark_redis.steps import Command, commands
from threadmark_store.items.redis_layout import Bucket, behind, place_in
from threadmark_store.shapes import Place

CHUNK = 1000
"""Commands in one pipeline, and places read at once."""

_LEAST = 16

_AHEAD = 100
"""Orders that are read together with one that is used up."""

Entry = tuple[int, Place]
"""The number of a bucket, and a place in it."""


class Walk:
    """Reads the orders a few places at a time, and merges them."""

    def __init__(self, buckets: Sequence[Bucket], after: Place | None = None, first: Sequence[Command] = ()) -> None:
        self.buckets = buckets
        self.proofs: dict[Command, Any] = dict.fromkeys(first)
        """Commands that come before all others, and their replies."""
        self.last = after
        """The last place that it has returned."""
        self._least = [behind(bucket.namespace, after) for bucket in buckets]
        self._found: list[deque[bytes]] = [deque() for _ in buckets]
        self._is_over = [False] * len(buckets)
        self._sizes = [_LEAST // max(len(buckets), 1) + 1] * len(buckets)
        """How many places to read of each order: more every time, as some may have most of the first ones."""
        self._to_fill = list(range(len(buckets)))
        self._is_begun = False
        self._fronts: list[tuple[bytes, str, bytes, int]] = []

    def next(self, number: int) -> Program[list[Entry]]:
        """Return the next places: as many, or all that are left."""
        entries: list[Entry] = []
        while len(entries) < number:
            if self._to_fill:
                self._look_ahead()
                yield from self._fill(min(number // max(len(self.buckets), 1), CHUNK))
            if not self._fronts:
                break
            *_, bucket = heapq.heappop(self._fronts)
            entries.append((bucket, place_in(self.buckets[bucket].namespace, self._found[bucket].popleft())))
            self._bring_forward(bucket)
        if entries:
            self.last = entries[-1][1]
        return entries

    def _fill(self, share: int) -> Program[None]:
        """Read more of the orders whose places are used up."""
        while self._to_fill:
            some, self._to_fill = self._to_fill[:CHUNK], self._to_fill[CHUNK:]
            sizes = [share + self._sizes[bucket] for bucket in some]
            asked: list[Command] = [
                (b"ZRANGEBYLEX", self.buckets[bucket].order, self._least[bucket], b"+", b"LIMIT", 0, size)
                for bucket, size in zip(some, sizes, strict=True)
            ]
            first = () if self._is_begun else tuple(self.proofs)
            replies = yield from commands([*first, *asked])
            self._is_begun = True
            self.proofs.update(zip(first, replies, strict=False))
            for bucket, size, members in zip(some, sizes, replies[len(first) :], strict=True):
                self._is_over[bucket] = len(members) < size
                self._sizes[bucket] = min(2 * self._sizes[bucket], CHUNK)
                has_front = bool(self._found[bucket])
                self._found[bucket].extend(members)
                if members:
                    self._least[bucket] = b"(" + members[-1]
                if not has_front:
                    self._bring_forward(bucket)

    def _look_ahead(self) -> None:
        """Read those orders as well that will be used up next, so that many short ones do not take a step each."""
        for *_, bucket in heapq.nsmallest(_AHEAD, self._fronts):
            if len(self._found[bucket]) == 1 and not self._is_over[bucket]:
                self._to_fill.append(bucket)

    def _bring_forward(self, bucket: int) -> None:
        if self._found[bucket]:
            member = self._found[bucket][0]
            heapq.heappush(self._fronts, (member[:8], self.buckets[bucket].namespace, member[8:], bucket))
        elif not self._is_over[bucket]:
            self._to_fill.append(bucket)
