"""Caches under LangGraph's names, each of which opens its saver: in memory, in a SQLite file, on Redis or Postgres."""

import os
from typing import TYPE_CHECKING, Any, Unpack

from threadmark_store.backends import saver_class
from threadmark_store.cache import CACHE_BYTES, Cache

if TYPE_CHECKING:
    from threadmark_store.options import CacheOptions, PostgresCacheOptions, RedisCacheOptions, SqliteCacheOptions


class _OnDatabase(Cache):
    """A cache on a database that it opens."""

    _closes_saver = True

    def __init__(self, backend: str, *place: Any, **options: Any) -> None:
        bound = options.pop("max_bytes", CACHE_BYTES)
        super().__init__(saver_class(backend)(*place, **options), max_bytes=bound)


class InMemoryCache(_OnDatabase):
    """Keeps results in this process."""

    def __init__(self, **options: "Unpack[CacheOptions]") -> None:
        super().__init__("memory", **options)


class SqliteCache(_OnDatabase):
    """Keeps results in a SQLite file, for any number of processes. It may be the file of a Threadmark saver.

    `options` are those of `threadmark_sqlite.SqliteSaver` about the file and about storage. The default durability is
    "normal": a power cut may undo the last results, which are then computed again. Results that LangGraph's cache has
    stored in the file are not found.
    """

    def __init__(self, *, path: str | os.PathLike[str], **options: "Unpack[SqliteCacheOptions]") -> None:
        super().__init__("sqlite", path, **{"durability": "normal", **options})


class RedisCache(_OnDatabase):
    """Keeps results on Redis or Valkey: a single server, a cluster, or the master behind Sentinels.

    `redis` is a client or a pool of redis-py, of which the cache takes the arguments of its connections, or a URL. A
    server that fails is a miss after `timeout` seconds, one by default, and the first time is logged. Results that
    LangGraph's cache has stored under the prefix are not found. `options` are those of `threadmark_redis.RedisSaver`
    about the server and about storage. The default durability is "memory", the default prefix "langgraph:cache:".
    """

    _misses_outages = True

    def __init__(self, redis: Any, **options: "Unpack[RedisCacheOptions]") -> None:
        usual = {"prefix": "langgraph:cache:", "durability": "memory", "timeout": 1.0}
        super().__init__("redis", redis, **{**usual, **options})


class PostgresCache(_OnDatabase):
    """Keeps results in Postgres.

    `database` is a URL or another libpq connection string, a psycopg connection or a psycopg_pool pool. `options` are
    those of `threadmark_postgres.PostgresSaver` about the database and about storage.
    """

    def __init__(self, database: Any, **options: "Unpack[PostgresCacheOptions]") -> None:
        super().__init__("postgres", database, **options)
