"""The rows of a store and the questions about them, as a backend sees them. Times are microseconds since 1970."""

from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple

from threadmark.backends import CorruptDataError
from threadmark.model import Problem

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE: Final = 60_000_000

Labels = tuple[str, ...]
"""A namespace as its labels, outermost first."""


def time_of(microseconds: int) -> datetime:
    """Return a time. Raises CorruptDataError for a number that is none."""
    try:
        return EPOCH + timedelta(0, 0, microseconds)
    except OverflowError as error:
        raise CorruptDataError("one of its times is no time") from error


class ItemKey(NamedTuple):
    """The key of an item."""

    namespace: str
    """The labels, joined by dots."""
    key: str


class ItemRow(NamedTuple):
    """An item as it is stored."""

    key: ItemKey
    value: str | bytes
    """JSON as text; bytes that start with a mark of their form for everything else (`values`)."""
    check: int
    """64 bits of a digest over the key and the value."""
    created_at: int
    updated_at: int
    owner: str | None = None
    expires_at: int | None = None
    ttl: int | None = None
    """The microseconds for which it lives on after a put or a refreshing read."""
    score: float | None = None
    """How near it is to the query of a search. Not stored."""

    @property
    def size(self) -> int:
        """The bytes of its key and value."""
        parts = (*self.key, self.value)
        return sum(len(part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")) for part in parts)


class Place(NamedTuple):
    """Where in the order of a search a row stands: the most recently updated first, then by key."""

    updated_at: int
    key: ItemKey


class Condition(NamedTuple):
    """A comparison that a database may use to leave rows out. Rows that meet a filter meet all its conditions."""

    path: Labels
    """The keys that lead to the value."""
    operator: Literal["=", ">", ">=", "<", "<="]
    value: str | bool | int | float


class Scope(NamedTuple):
    """Which items a question is about."""

    prefix: str = ""
    """Their namespace is this one, or below it; all namespaces if it is empty."""
    owner: str | None = None
    """Only those of this owner, if there is one."""
    alive_at: int | None = None
    """Only those that have not expired at this time, if there is one."""
    conditions: tuple[Condition, ...] = ()
    """Rows of JSON that meet one of them not may be left out. Other rows always come along."""

    def has(self, row: ItemRow) -> bool:
        """Return whether a row of its namespaces belongs to it, whatever the conditions."""
        if self.owner is not None and row.owner != self.owner:
            return False
        return self.alive_at is None or row.expires_at is None or row.expires_at > self.alive_at


Cursor = tuple[str | int | bytes, ...]
"""How far the pages of a scope have been read, in the backend's own terms."""


class Ranked(NamedTuple):
    """An item, and how near it is to a query."""

    key: ItemKey
    score: float
    check: int
    """The check of the value that was compared."""


class Match(NamedTuple):
    """A condition on a namespace."""

    kind: Literal["prefix", "suffix"]
    path: Labels
    """Labels; `*` stands for any one."""


class StoreReport(NamedTuple):
    """The way in which a store searches. `stats` has its size."""

    backend: str
    vectors: str | None
    """What compares vectors: `numpy`, or `pgvector` in the database. None without an `index`."""
    vectors_of_model: int
    """How many vectors a search compares."""
    stale_vectors: int
    """How many belong to another model: `reindex()` computes them again."""
    text: str | None
    """The table that is searched for a text: `words`, or None without `text_search`."""


class StoreVerifyReport(NamedTuple):
    """The rows that `verify` read, and the problems that it found."""

    items: int
    vectors: int
    texts: int
    """How many items have words to be found by."""
    problems: list[Problem]
    """Damaged items, vectors, words and cached values, and orphans: those of an item, or of a value, that is gone."""
    unreadable: list[Problem]
    """Items and cached values that this program cannot decode. Empty unless you passed `decode=True`."""
    cached: int = 0
    """The values of the cache of nodes."""


class StoreStats(NamedTuple):
    """The size of a store."""

    items: int
    expired: int
    """The items that a sweep would remove."""
    namespaces: int
    bytes: int
    """Those of keys and values."""
    vectors: int
    texts: int
    """How many items have words to be found by."""
    words: int


class StoreMoved(NamedTuple):
    """The result of `export` and `migrate`."""

    items: int
    """How many were stored, or would be stored in a dry run."""
    already_there: int
    newer: int
    """How many were left alone because the target has a later version of them."""
    problems: list[Problem]
    """The items that were not stored, and the parts of others that were not, each with the reason."""
