"""The items of each backend: the contract of `contract.ItemStore`, on the saver's own driver."""

from threadmark.saver import Saver
from threadmark_store.backends import rows_over
from threadmark_store.contract import ItemStore


def items_of(saver: Saver) -> ItemStore:
    """Return the items of a saver's database. Raises ConfigError if this backend has none."""
    items: ItemStore = rows_over(saver, "items")
    return items
