"""The items of each backend: the contract of `contract.ItemStore`, on the saver's own driver."""

from threadmark.saver import Saver
from threadmark_store.backends import module_of
from threadmark_store.contract import ItemStore


def items_of(saver: Saver) -> ItemStore:
    """Return the items of a saver's database. Raises ConfigError if this backend has none."""
    module, rows = module_of(saver, "items", "store of items")
    made: ItemStore = module.items_over(rows)
    return made
