"""Caches under LangGraph's names, each of which opens its saver: in memory, in a SQLite file, on Redis or Postgres."""

import os
from typing import TYPE_CHECKING, Any, Unpack

from threadmark import MemorySaver
from threadmark.saver import SaverOptions
from threadmark.serde import Serializer
from threadmark_store.cache import CACHE_BYTES, Cache

if TYPE_CHECKING:
    from threadmark_postgres.options import PostgresOptions
    from threadmark_redis.options import RedisOptions
    from threadmark_sqlite.options import SqliteOptions

_PREFIX = "langgraph:cache:"


class InMemoryCache(Cache):
    """Keeps results in this process."""

    def __init__(
        self, *, serde: Serializer | None = None, max_bytes: int = CACHE_BYTES, **options: Unpack[SaverOptions]
    ) -> None:
        super().__init__(MemorySaver(**options), max_bytes=max_bytes, serde=serde)
        self._closes_saver = True


class SqliteCache(Cache):
    """Keeps results in a SQLite file, for any number of processes.

    The file may be that of a Threadmark saver. Of LangGraph's cache nothing is read, and its file is refused. `options`
    are those of `threadmark_sqlite.SqliteSaver`.
    """

    def __init__(
        self,
        *,
        path: str | os.PathLike[str],
        serde: Serializer | None = None,
        max_bytes: int = CACHE_BYTES,
        **options: "Unpack[SqliteOptions]",
    ) -> None:
        from threadmark_sqlite import SqliteSaver

        super().__init__(SqliteSaver(path, **options), max_bytes=max_bytes, serde=serde)
        self._closes_saver = True


class RedisCache(Cache):
    """Keeps results on Redis or Valkey: a single server, a cluster, or the master behind Sentinels.

    `redis` is a client or a pool of redis-py, of which the cache takes the arguments of its connections, or a URL. A
    server that fails is a miss, after `timeout` seconds; a warning is logged. What LangGraph's cache has stored is not
    found. `options` are those of `threadmark_redis.RedisSaver`; the default durability is "memory".
    """

    _misses_outages = True

    def __init__(
        self,
        redis: Any,
        *,
        serde: Serializer | None = None,
        prefix: str = _PREFIX,
        max_bytes: int = CACHE_BYTES,
        **options: "Unpack[RedisOptions]",
    ) -> None:
        from threadmark_redis import RedisSaver

        chosen: RedisOptions = {"durability": "memory", "timeout": 1.0, **options, "prefix": prefix}
        super().__init__(RedisSaver(redis, **chosen), max_bytes=max_bytes, serde=serde)
        self._closes_saver = True


class PostgresCache(Cache):
    """Keeps results in Postgres.

    `database` is a URL or another libpq connection string, a psycopg connection or a psycopg_pool pool. `options` are
    those of `threadmark_postgres.PostgresSaver`.
    """

    def __init__(
        self,
        database: Any,
        *,
        serde: Serializer | None = None,
        max_bytes: int = CACHE_BYTES,
        **options: "Unpack[PostgresOptions]",
    ) -> None:
        from threadmark_postgres import PostgresSaver

        super().__init__(PostgresSaver(database, **options), max_bytes=max_bytes, serde=serde)
        self._closes_saver = True
