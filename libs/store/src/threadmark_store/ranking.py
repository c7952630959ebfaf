"""The order of items by their scores: the best first, and then by key."""

import heapq
from collections.abc import Callable, Mapping
from typing import NamedTuple

from threadmark_store.shapes import ItemKey, Ranked

Columns = tuple[str, str, int]
"""An item's namespace and key, as texts or as in their columns, and the check of the value that was compared."""


def same(text: str) -> str:
    """Return a text itself, which is no column."""
    return text


class Ranking(NamedTuple):
    """The items that a query may find. There may be many, so few of them get a shape."""

    scores: Mapping[Columns, float]
    text: Callable[[str], str] = same
    """Returns the text of a column."""
    is_whole: bool = True
    """Whether there are no others, which would come behind these."""

    def first(self, count: int) -> list[Ranked]:
        """Return the best items."""
        try:
            found = heapq.nsmallest(count, ((-score, *item) for item, score in self.scores.items()))
        except TypeError:  # a damaged file has other types in columns: a key of one is refused, a check compared
            ranked = (Ranked(key, score, check) for (key, check), score in self.by_key().items())
            return heapq.nsmallest(count, ranked, key=lambda each: (-each.score, each.key))
        return [Ranked(self._key(namespace, key), -score, check) for score, namespace, key, check in found]

    def by_key(self) -> dict[tuple[ItemKey, int], float]:
        """Return all scores by the item's key and check."""
        return {(self._key(namespace, key), check): score for (namespace, key, check), score in self.scores.items()}

    def _key(self, namespace: str, key: str) -> ItemKey:
        return ItemKey(self.text(namespace), self.text(key))
