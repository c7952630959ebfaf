"""The cached entries of each backend: the contract of `contract.CachedStore`, on the saver's own driver."""

from threadmark.saver import Saver
from threadmark_store.backends import module_of
from threadmark_store.cached.contract import CachedStore


def entries_of(saver: Saver) -> CachedStore:
    """Return the cached entries of a saver's database. Raises ConfigError if this backend has none."""
    module, rows = module_of(saver, "cached", "cache of nodes")
    made: CachedStore = module.entries_over(rows)
    return made
