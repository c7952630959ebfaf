"""The questions that a backend answers about entries of the cache. Each method is a program of the saver's own driver.

An owner that is None stands for the entries without one, and in `clear`, `sweep` and `size` for all entries.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol

from threadmark.backends import Program
from threadmark_store.contract import Table
from threadmark_store.entries import Bound, Entry, EntryKey
from threadmark_store.shapes import Cursor


class Placed(NamedTuple):
    """An entry, and its place in the backend's own terms."""

    place: Any
    entry: Entry


class CachedStore(Table, Protocol):
    """The entries of one database."""

    knows_size: bool
    """Whether it knows the bytes of an owner's entries without counting them, so that each `add` may be bounded."""

    parts: int
    """Into how many parts the entries of an owner are divided, of which each has its share of the bound."""

    def find(self, keys: Sequence[EntryKey], owner: str | None) -> Program[list[Entry]]:
        """Return those of the entries that exist, expired or not."""

    def add(self, entries: Sequence[Entry], owner: str | None, bound: Bound | None, now: int) -> Program[int | None]:
        """Add or replace entries of an owner. Keys are distinct, and the bound leaves room for all of them.

        With a bound, first remove entries of this owner: those that have expired, and then those that were not used for
        longest, until all of them count no more bytes than the bound. Returns how many more bytes it leaves.
        """

    def note(self, used: Sequence[EntryKey], expired: Sequence[EntryKey], owner: str | None, now: int) -> Program[None]:
        """Note that entries were used, and remove others if they had expired at this time."""

    def clear(self, namespaces: Collection[bytes] | None, owner: str | None) -> Program[None]:
        """Remove the entries of these namespaces, or of all."""

    def sweep(self, owner: str | None, now: int, limit: int) -> Program[int]:
        """Remove entries that had expired at this time, at most `limit`. Returns how many."""

    def page(self, owner: str | None, cursor: Cursor | None) -> Program[tuple[list[Placed], Cursor | None]]:
        """Return the next entries in any order, of all owners without one. The cursor is None at both ends."""

    def replace(self, old: Placed, new: Entry | None) -> Program[bool]:
        """Replace an entry by another one of its key and expiry, or remove it. Returns whether it was still the same.

        It counts as used when it was before.
        """

    def size(self, owner: str | None) -> Program[tuple[int, int]]:
        """Return how many entries there are, and the bytes that they count."""
