"""Items and cached results in the database of a Threadmark saver: LangGraph's stores and caches, under its names."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadmark_store.cache import Cache
    from threadmark_store.caches import InMemoryCache, PostgresCache, RedisCache, SqliteCache
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
    "Cache",
    "InMemoryCache",
    "InMemoryStore",
    "PoolConfig",
    "PostgresCache",
    "PostgresStore",
    "RedisCache",
    "RedisStore",
    "SqliteCache",
    "SqliteStore",
    "Store",
]

_MODULES = {
    "Store": "store",
    "Cache": "cache",
    **dict.fromkeys(("InMemoryCache", "PostgresCache", "RedisCache", "SqliteCache"), "caches"),
}
"""The modules of names that are not in `drop_ins`."""


def __dir__() -> list[str]:
    """Return the public names, which are imported when you use them."""
    return __all__


def __getattr__(name: str) -> Any:
    """Import a name when you use it: tools that read items need neither LangGraph nor its half second of imports."""
    if name in __all__:
        return getattr(import_module(f"threadmark_store.{_MODULES.get(name, 'drop_ins')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
