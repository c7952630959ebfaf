"""Items in the database of a Threadmark saver: LangGraph's stores, under its names or over your saver."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadmark_store.drop_ins import (
        AsyncPostgresStore,
        AsyncRedisStore,
        AsyncSqliteStore,
        InMemoryStore,
        PoolConfig,
        PostgresStore,
        RedisStore,
        SqliteStore,
    )
    from threadmark_store.store import Store

__all__ = [
    "AsyncPostgresStore",
    "AsyncRedisStore",
    "AsyncSqliteStore",
    "InMemoryStore",
    "PoolConfig",
    "PostgresStore",
    "RedisStore",
    "SqliteStore",
    "Store",
]

_MODULES = {"Store": "store"}
"""The modules of names that are not in `drop_ins`."""


def __dir__() -> list[str]:
    """Return the public names, which are imported when you use them."""
    return __all__


def __getattr__(name: str) -> Any:
    """Import a name when you use it: tools that read items need neither LangGraph nor its half second of imports."""
    if name in __all__:
        return getattr(import_module(f"threadmark_store.{_MODULES.get(name, 'drop_ins')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
