"""Caches under LangGraph's names, each of which opens its saver: in memory, in a SQLite file, on Redis or Postgres."""

import os
from typing import TYPE_CHECKING, Any, Unpack

from threadmark import MemorySaver
from threadmark.saver.context import StorageOptions
from threadmark.serde import Serializer
from threadmark_store.cache import CACHE_BYTES, Cache

if TYPE_CHECKING:
    from threadmark_postgres.options import ConnectionOptions
    from threadmark_sqlite.options import FileOptions

    class SqliteCacheOptions(FileOptions, StorageOptions, total=False):
        """Options of the saver that a `SqliteCache` opens."""

    class RedisCacheOptions(StorageOptions, total=False):
        """Options of the saver that a `RedisCache` opens."""

        durability: str
        pool_size: int
        timeout: float
        slow: float | None

    class PostgresCacheOptions(ConnectionOptions, StorageOptions, total=False):
        """Options of the saver that a `PostgresCache` opens."""


class InMemoryCache(Cache):
    """Keeps results in this process."""

    def __init__(
        self, *, serde: Serializer | None = None, max_bytes: int = CACHE_BYTES, **options: Unpack[StorageOptions]
    ) -> None:
        super().__init__(MemorySaver(serde=serde, **options), max_bytes=max_bytes)
        self._closes_saver = True


class SqliteCache(Cache):
    """Keeps results in a SQLite file, for any number of processes. It may be the file of a Threadmark saver.

    `options` are those of `threadmark_sqlite.SqliteSaver` about the file and about storage. The default durability is
    "normal": a power cut may undo the last results, which are then computed again. Results that LangGraph's cache has
    stored in the file are not found.
    """

    def __init__(
        self,
        *,
        path: str | os.PathLike[str],
        serde: Serializer | None = None,
        max_bytes: int = CACHE_BYTES,
        **options: "Unpack[SqliteCacheOptions]",
    ) -> None:
        from threadmark_sqlite import SqliteSaver

        options.setdefault("durability", "normal")
        super().__init__(SqliteSaver(path, serde=serde, **options), max_bytes=max_bytes)
        self._closes_saver = True


class RedisCache(Cache):
    """Keeps results on Redis or Valkey: a single server, a cluster, or the master behind Sentinels.

    `redis` is a client or a pool of redis-py, of which the cache takes the arguments of its connections, or a URL. A
    server that fails is a miss after `timeout` seconds, one by default, and the first time is logged. Results that
    LangGraph's cache has stored under the prefix are not found. `options` are those of `threadmark_redis.RedisSaver`
    about the server and about storage. The default durability is "memory".
    """

    _misses_outages = True

    def __init__(
        self,
        redis: Any,
        *,
        serde: Serializer | None = None,
        prefix: str = "langgraph:cache:",
        max_bytes: int = CACHE_BYTES,
        **options: "Unpack[RedisCacheOptions]",
    ) -> None:
        from threadmark_redis import RedisSaver

        options.setdefault("durability", "memory")
        options.setdefault("timeout", 1.0)
        super().__init__(RedisSaver(redis, prefix=prefix, serde=serde, **options), max_bytes=max_bytes)
        self._closes_saver = True


class PostgresCache(Cache):
    """Keeps results in Postgres.

    `database` is a URL or another libpq connection string, a psycopg connection or a psycopg_pool pool. `options` are
    those of `threadmark_postgres.PostgresSaver` about the database and about storage.
    """

    def __init__(
        self,
        database: Any,
        *,
        serde: Serializer | None = None,
        max_bytes: int = CACHE_BYTES,
        **options: "Unpack[PostgresCacheOptions]",
    ) -> None:
        from threadmark_postgres import PostgresSaver

        super().__init__(PostgresSaver(database, serde=serde, **options), max_bytes=max_bytes)
        self._closes_saver = True
