"""The questions that a backend answers about the words of items, as programs of the saver's own driver."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from threadmark.backends import Program
from threadmark_store.contract import RowsOfItems
from threadmark_store.shapes import ItemKey, ItemRow, Scope

HEAD = "$"
"""The first character of the word of an item's head, which each item with words has. No word begins with it."""
BEHIND_HEADS = "%"
"""The character after it."""


class Words(NamedTuple):
    """The words of a value."""

    head: str
    """`HEAD`, and which fields they are from."""
    counts: Mapping[str, int]


class WordRow(NamedTuple):
    """A word of an item, or its head."""

    key: ItemKey
    word: str
    times: int
    """How often it is there, 0 in a head."""
    length: int
    """How many words there are together."""
    check: int
    owner: str | None = None


class WordTotals(NamedTuple):
    """How many items of a scope have words, and how many words they have."""

    items: int
    words: int


class WordStore(RowsOfItems[WordRow], Protocol):
    """The words of one database."""

    def find(self, scope: Scope, words: Sequence[str]) -> Program[list[WordRow]]:
        """Return the rows of words in a namespace, those below it and of an owner, in any order."""

    def totals(self, scope: Scope) -> Program[WordTotals]:
        """Return the totals of a namespace, those below it and of an owner."""


def rows_of(item: ItemRow, words: Words) -> Iterable[WordRow]:
    """Yield the rows of an item's words."""
    length = sum(words.counts.values())
    yield WordRow(item.key, words.head, 0, length, item.check, item.owner)
    for word, count in words.counts.items():
        yield WordRow(item.key, word, count, length, item.check, item.owner)
