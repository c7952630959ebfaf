"""The stores under LangGraph's names, with its constructors and context managers, for one changed import.

Each takes the connection, pool or client that LangGraph's store takes, a URL, or a Threadmark saver, whose database it
then shares. It closes the saver that it made, and nothing that you gave it. The options are `text_search` and those of
the backend's saver; with a saver they are the saver's.

Two kinds of LangGraph's arguments have no meaning here. Those that only tune the other store are accepted: `pipe` and
`pipeline`, since a batch is one transaction in any case, `cluster_mode`, which the driver finds out, `vector_prefix`,
since all keys have one prefix, and `min_size` of a pool, whose connections are opened when they are needed. But
`deserializer` is refused: values come back as you put them, and a function that changes them would not be called.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from langgraph.store.base import IndexConfig, TTLConfig

from threadmark import ConfigError, MemorySaver, Saver
from threadmark.errors import short_repr
from threadmark_store.backends import saver_class
from threadmark_store.store import Store

if TYPE_CHECKING:
    import os
    import sqlite3

    import aiosqlite
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from threadmark_store.options import PostgresOptions, RedisOptions, SqliteOptions

    Given = Saver | BaseCheckpointSaver[Any]
    File = Given | sqlite3.Connection | aiosqlite.Connection | str | os.PathLike[str]

_NOT_LIBPQS = ("autocommit", "row_factory", "prepare_threshold")
"""Arguments of psycopg's connections that the driver sets as it needs them."""


class PoolConfig(TypedDict, total=False):
    """LangGraph's settings of a pool for `from_conn_string` of the Postgres stores."""

    min_size: int
    """Accepted without effect: connections are opened when they are needed."""
    max_size: int | None
    """The most connections for each event loop, and as many for blocking callers (default: 16)."""
    kwargs: dict[str, Any]
    """Parameters of the connections, such as `connect_timeout`. `prepare_threshold=None` prepares no statement."""


class InMemoryStore(Store):
    """Keeps items in this process. Values are encoded as in a database, so none that you get is shared."""

    def __init__(self, *, index: IndexConfig | None = None) -> None:
        super().__init__(MemorySaver(), index=index)
        self._closes_saver = True


class _OnDatabase(Store):
    """A store on a database that it opens, or on a saver that has opened it."""

    def __init__(
        self,
        conn: Any,
        backend: str,
        options: Mapping[str, Any],
        *,
        deserializer: object = None,
        index: IndexConfig | None,
        ttl: TTLConfig | None,
    ) -> None:
        if deserializer is not None:
            raise ConfigError(
                "deserializer has no use here: values come back as you put them, with their types; "
                "an option serde=... replaces the serializer"
            )
        of_saver = dict(options)
        text_search = of_saver.pop("text_search", False)
        shared = isinstance(getattr(conn, "saver", conn), Saver)
        if shared and of_saver:
            raise ConfigError(f"{min(of_saver)!r} is an option of the saver: give it to the saver when you make it")
        saver = conn if shared else saver_class(backend)(conn, **of_saver)
        super().__init__(saver, index=index, text_search=text_search, ttl=ttl)
        self._closes_saver = not shared
        self.conn = conn


class _Asyncio(Store):
    """A store whose methods for upkeep are awaited under their plain names, too, as of LangGraph's asyncio stores."""

    setup = Store.asetup  # type: ignore[assignment]  # LangGraph's name for it, which is awaited here
    sweep_ttl = Store.asweep_ttl  # type: ignore[assignment]  # as `setup`
    start_ttl_sweeper = Store.astart_ttl_sweeper  # type: ignore[assignment]  # as `setup`
    stop_ttl_sweeper = Store.astop_ttl_sweeper  # type: ignore[assignment]  # as `setup`


class SqliteStore(_OnDatabase):
    """Keeps items in a SQLite file, for any number of threads, event loops and processes.

    `conn` is a path, a connection (of one to a file only the path is used), or a Threadmark saver, also under
    LangGraph's name: the items then lie in its database. The options are those of `threadmark_sqlite.SqliteSaver`.
    """

    def __init__(
        self,
        conn: "File",
        *,
        deserializer: Callable[..., dict[str, Any]] | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        **options: "Unpack[SqliteOptions]",
    ) -> None:
        super().__init__(conn, "sqlite", options, deserializer=deserializer, index=index, ttl=ttl)

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        **options: "Unpack[SqliteOptions]",
    ) -> Self:
        """Open a store in the file with this path, or `:memory:`: use it in a block, which closes it at its end."""
        return cls(conn_string, index=index, ttl=ttl, **options)


class AsyncSqliteStore(_Asyncio, SqliteStore):
    """`SqliteStore` under LangGraph's asyncio name. `conn` may also be an aiosqlite connection."""


class PostgresStore(_OnDatabase):
    """Keeps items in Postgres, for any number of threads, event loops and processes.

    `conn` is a URL, a psycopg connection or a psycopg_pool pool, or a Threadmark saver, also under LangGraph's name:
    the items then lie in its database. Prefer a URL or a saver: connections that break are then replaced. `pipe` and
    `pipeline` change nothing. The options are those of `threadmark_postgres.PostgresSaver`.
    """

    def __init__(
        self,
        conn: Any,
        *,
        pipe: object = None,  # noqa: ARG002 - LangGraph's argument; a batch is one transaction without it
        deserializer: Callable[..., dict[str, Any]] | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        **options: "Unpack[PostgresOptions]",
    ) -> None:
        super().__init__(conn, "postgres", options, deserializer=deserializer, index=index, ttl=ttl)

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        pipeline: bool = False,  # noqa: ARG003 - LangGraph's switch; a batch is one transaction without it
        pool_config: PoolConfig | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        **options: "Unpack[PostgresOptions]",
    ) -> Self:
        """Open a store in this database: use it in a block, which closes it at its end."""
        place, pooled = _pooled(conn_string, pool_config, options)
        return cls(place, index=index, ttl=ttl, **pooled)


class AsyncPostgresStore(_Asyncio, PostgresStore):
    """`PostgresStore` under LangGraph's asyncio name. `conn` may also be an asyncio connection or pool."""


class RedisStore(_OnDatabase):
    """Keeps items in Redis or Valkey, on one server, a cluster or behind Sentinels, without modules.

    `conn` is a URL, a client of redis-py, or a Threadmark saver, also under LangGraph's name: the items then lie in its
    database. `store_prefix` begins every key; leave it out to share the keys of a saver without a prefix of its own.
    `cluster_mode` and `vector_prefix` change nothing. The options are those of `threadmark_redis.RedisSaver`.
    """

    def __init__(
        self,
        conn: Any,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        cluster_mode: bool | None = None,  # noqa: ARG002 - the other store's; the driver finds it out
        store_prefix: str | None = None,
        vector_prefix: str | None = None,  # noqa: ARG002 - the other store's; all keys here have one prefix
        **options: "Unpack[RedisOptions]",
    ) -> None:
        prefixed = options if store_prefix is None else {"prefix": f"{store_prefix}:", **options}
        super().__init__(conn, "redis", prefixed, index=index, ttl=ttl)

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        store_prefix: str | None = None,
        vector_prefix: str | None = None,
        **options: "Unpack[RedisOptions]",
    ) -> Self:
        """Open a store on this server: use it in a block, which closes it at its end."""
        return cls(conn_string, index=index, ttl=ttl, store_prefix=store_prefix, vector_prefix=vector_prefix, **options)


class AsyncRedisStore(_Asyncio, RedisStore):
    """`RedisStore` under its asyncio name, whose constructor has other arguments.

    Pass `redis_url`, which is a URL or a Threadmark saver, or `redis_client`, which is a client of redis-py, blocking
    or for asyncio. With `connection_args`, `redis_url` is opened as `redis.Redis.from_url` does.
    """

    def __init__(
        self,
        redis_url: Any = None,
        *,
        redis_client: Any = None,
        index: IndexConfig | None = None,
        connection_args: Mapping[str, Any] | None = None,
        ttl: TTLConfig | None = None,
        cluster_mode: bool | None = None,  # noqa: ARG002 - the other store's; the driver finds it out
        store_prefix: str | None = None,
        vector_prefix: str | None = None,  # noqa: ARG002 - the other store's; all keys here have one prefix
        **options: "Unpack[RedisOptions]",
    ) -> None:
        server = _server(redis_url, redis_client, connection_args)
        super().__init__(server, index=index, ttl=ttl, store_prefix=store_prefix, **options)


def _pooled(
    conn_string: str, pool_config: PoolConfig | None, options: "PostgresOptions"
) -> "tuple[str, PostgresOptions]":
    """Return the connection string and the options that stand for LangGraph's settings of a pool."""
    if pool_config is None:
        return conn_string, options
    if unknown := sorted(pool_config.keys() - PoolConfig.__annotations__.keys()):
        raise ConfigError(
            f"pool_config has an unknown setting {unknown[0]!r}: use {', '.join(PoolConfig.__annotations__)}, "
            "or give the constructor a pool of your own"
        )
    found = options.copy()
    if pool_config.get("max_size") is not None:
        found["pool_size"] = pool_config["max_size"]  # type: ignore[typeddict-item]  # the saver checks it
    arguments = pool_config.get("kwargs") or {}
    if arguments.get("prepare_threshold", 0) is None:
        found["prepare"] = False
    parameters = {name: each for name, each in arguments.items() if name not in _NOT_LIBPQS}
    return _with_parameters(conn_string, parameters) if parameters else conn_string, found


def _with_parameters(conn_string: str, parameters: Mapping[str, Any]) -> str:
    saver_class("postgres")  # if it is missing, the error names the package to install
    from psycopg import ProgrammingError
    from psycopg.conninfo import make_conninfo

    try:
        return make_conninfo(conn_string, **parameters)
    except ProgrammingError:  # its text may quote the password
        raise ConfigError(
            f"the connection string with {', '.join(sorted(parameters))} of pool_config['kwargs'] is none of libpq: "
            "give the constructor a pool of your own"
        ) from None


def _server(url: Any, client: Any, connection_args: Mapping[str, Any] | None) -> Any:
    """Return the server or saver that the arguments of an `AsyncRedisStore` name."""
    if (url is None) is (client is None):
        raise ConfigError("give either redis_url or redis_client: AsyncRedisStore('redis://host:6379')")
    if not connection_args:
        return client if url is None else url
    if not isinstance(url, str):
        raise ConfigError(f"connection_args are for a URL as redis_url, not for {short_repr(url or client)}")
    saver_class("redis")  # if it is missing, the error names the package to install
    import redis

    return redis.Redis.from_url(url, **connection_args)
