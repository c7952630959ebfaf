"""Other tables in the databases of a pair, such as a store's items: how their changes are recorded and copied.

A package registers an `OtherTables` for its tables. Their changes stand in the same outbox as those of threads, under
ids that no thread of a pair may have (`is_other`), one for each *shard* of the tables: they have the same terms and
positions, they count as waiting, and a promotion copies them. The package decides what an entry means.
"""

from importlib.metadata import entry_points
from typing import Final, NamedTuple, Protocol

from threadmark.errors import MissingDependencyError
from threadmark.program import Program
from threadmark.replication.steps import PairFlow, Side
from threadmark.store.contract import TOMBSTONE_MICROSECONDS
from threadmark.store.replica import ReplicaStore
from threadmark.store.threads import LeaseRow

GROUP = "threadmark.replication"
"""The group of entry points under which a package announces its tables, by their name."""

_PREFIX: Final = "\0threadmark."


class OtherRoute(NamedTuple):
    """A shard that is copied."""

    source: Side
    target: Side
    shard_id: str
    term: int


class CopiedOthers(NamedTuple):
    """The position up to which a shard is copied now, and the number of rows that were written for that."""

    position: int
    rows: int = 0


class ReconciledOthers(NamedTuple):
    """The result of a comparison."""

    rows: int = 0
    """Rows that were copied, or would be."""
    only_there: int = 0
    """Rows that only the target has, and that were left alone."""


class OtherTables(Protocol):
    """The tables of a package."""

    def is_empty(self, store: ReplicaStore) -> Program[bool]:
        """Return whether a database has no row of these tables."""

    def copy(self, route: OtherRoute, goal: int) -> PairFlow[CopiedOthers]:
        """Copy a shard's changes up to a position, 0 for all, and settle them.

        Raises StaleTermError if the target's term is greater.
        """

    def reconcile(
        self, source: Side, target: Side, term: int, *, both_ways: bool, dry_run: bool
    ) -> PairFlow[ReconciledOthers]:
        """Compare all rows, and copy the differences, with `both_ways` also rows that only the target has."""


_registered: dict[str, OtherTables] = {}


def register(name: str, tables: OtherTables) -> None:
    """Have tables copied. A package does so when they are used, and announces the same object as an entry point."""
    _registered[name] = tables


def all_tables() -> list[OtherTables]:
    """Return the tables of all installed packages."""
    for entry in entry_points(group=GROUP):
        if entry.name not in _registered:
            _registered[entry.name] = entry.load()
    return list(_registered.values())


def tables_of(shard_id: str) -> OtherTables:
    """Return the tables of a shard. Raises MissingDependencyError if their package is not installed."""
    name = shard_id.removeprefix(_PREFIX).partition("/")[0]
    if name not in _registered:
        all_tables()
    if name not in _registered:
        raise MissingDependencyError(
            f"changes of the tables {name!r} wait to be copied to the other database, and no installed package copies "
            "them: install the package that made them, such as threadmark-store, wherever the pair is used"
        )
    return _registered[name]


def shard_id_of(name: str, shard: int) -> str:
    """Return the id of a shard."""
    return f"{_PREFIX}{name}/{shard}"


def is_other(thread_id: str) -> bool:
    """Whether an id is that of a shard of other tables."""
    return thread_id.startswith(_PREFIX)


def shown(thread_id: str) -> str:
    """Return an id as messages have it: the name of the tables instead of a shard's id."""
    return thread_id.removeprefix(_PREFIX).partition("/")[0] if is_other(thread_id) else repr(thread_id)


def clock_of(store: ReplicaStore, shard_id: str) -> Program[int]:
    """Lock a shard, and return its clock: the greatest time that `keep` was called with."""
    lease = yield from store.lock_lease(shard_id)
    return int(lease.holder or 0)


def keep(store: ReplicaStore, shard_id: str, time: int = 0) -> Program[None]:
    """Lock a shard, set its clock to a time unless that is earlier, and keep it and the positions for another day.

    A database forgets those of ids without a live thread; a lease keeps them. No thread has the id, so nothing else
    looks at the lease.
    """
    clock = yield from clock_of(store, shard_id)
    yield from store.set_lease(shard_id, LeaseRow(0, TOMBSTONE_MICROSECONDS, str(max(clock, time))))


def settle(store: ReplicaStore, shard_id: str, position: int) -> Program[None]:
    """Remove the entries of a shard up to this position."""
    yield from keep(store, shard_id)
    yield from store.settle(shard_id, position)
