"""The items of each backend: the contract of `contract.ItemStore`, on the saver's own driver."""

from importlib import import_module

from threadmark.backends import ConfigError
from threadmark.saver import Saver
from threadmark_store.contract import ItemStore

_MODULES = {
    "threadmark.memory.store": "memory",
    "threadmark_sqlite.store": "sqlite",
    "threadmark_postgres.store": "postgres",
    "threadmark_redis.store": "redis",
}
"""By the module of the saver's own store."""


def backend_of(saver: Saver) -> str:
    """Return the name of a saver's backend. Raises ConfigError if it has no store of items."""
    rows = saver._store  # noqa: SLF001 - the backend's rows, below the wrappers of the saver
    name = _MODULES.get(type(rows).__module__)
    if name is None:
        raise ConfigError(f"{saver!r} has no store of items: give a saver on memory, SQLite, Postgres or Redis")
    return name


def items_of(saver: Saver) -> ItemStore:
    """Return the items of a saver's database. Raises ConfigError if this backend has none."""
    module = import_module(f"threadmark_store.items.{backend_of(saver)}")
    made: ItemStore = module.items_over(saver._store)  # noqa: SLF001 - see above
    return made
