"""Types for the options of the stores under LangGraph's names.

Only type checkers import this module: at run time a backend is imported when you make a store on it. The options about
threads are left out, since a store has none.
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
