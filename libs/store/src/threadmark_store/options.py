"""Types for the options of the stores and caches under LangGraph's names.

Only type checkers import this module: at run time a backend is imported when you make a store on it. The options about
threads are left out, since neither has any.
"""

from threadmark.saver import StorageOptions
from threadmark.serde import Serializer
from threadmark_postgres.options import ConnectionOptions
from threadmark_redis.options import ServerOptions
from threadmark_sqlite.options import FileOptions


class ItemOptions(StorageOptions, total=False):
    """The options on every database."""

    serde: Serializer | None
    """The serializer of values that JSON would not give back exactly. The default is `threadmark.Serde()`."""
    text_search: bool | list[str]
    """Whether a query finds words, or the fields in which it does. The store's own option, also over your saver."""


class SqliteOptions(FileOptions, ItemOptions, total=False):
    """The options of `SqliteStore` and `AsyncSqliteStore`."""


class PostgresOptions(ConnectionOptions, ItemOptions, total=False):
    """The options of `PostgresStore` and `AsyncPostgresStore`."""


class RedisOptions(ServerOptions, ItemOptions, total=False):
    """The options of `RedisStore` and `AsyncRedisStore`."""


class CacheOptions(StorageOptions, total=False):
    """The options of every cache that opens its saver."""

    serde: Serializer | None
    """The serializer of results. The default is `threadmark.Serde()`."""
    max_bytes: int
    """How many bytes the entries may count (default: 64 MiB)."""


class SqliteCacheOptions(FileOptions, CacheOptions, total=False):
    """The options of `SqliteCache`."""


class PostgresCacheOptions(ConnectionOptions, CacheOptions, total=False):
    """The options of `PostgresCache`."""


class RedisCacheOptions(ServerOptions, CacheOptions, total=False):
    """The options of `RedisCache`."""
