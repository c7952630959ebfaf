"""The constructor of `RedisSaver`: it turns a URL, a client or a pool into a driver and a store."""

from typing import TYPE_CHECKING, Unpack

from threadmark.backends import (
    ConfigError,
    Format,
    Operation,
    Saver,
    SaverOptions,
    StoreError,
    arun,
    check_seconds,
    options_in,
    read,
    run,
    slow_after,
)
from threadmark_redis.driver import RedisDriver, Settings, durability_of, servers_of_client, servers_of_url
from threadmark_redis.driver.facts import Facts
from threadmark_redis.formats import stored_format
from threadmark_redis.keys import PREFIX, checked_prefix
from threadmark_redis.options import RedisOptions
from threadmark_redis.report import RedisReport, full_report
from threadmark_redis.store import RedisStore

if TYPE_CHECKING:
    import redis
    from redis import asyncio as aioredis

    Database = (
        str
        | redis.Redis
        | redis.RedisCluster
        | redis.ConnectionPool
        | aioredis.Redis
        | aioredis.RedisCluster
        | aioredis.ConnectionPool
    )


class RedisSaver(Saver):
    """Saves to Redis (6 or newer) or Valkey without modules, for any number of threads, event loops and processes.

    `database` is a client or a pool of redis-py, or a URL: `redis://user:password@host:6379/0`, `rediss://` with TLS,
    `redis+cluster://host:6379,host:6379`, `redis+sentinel://host:26379,host:26379/service/0` or `redis+unix:///path`.
    If you pass a client or a pool, the saver only takes the arguments of its connections, and both APIs work in any
    case. The saver opens connections when it needs them, up to `pool_size` to each server for each event loop and as
    many for blocking callers; the main thread has one more. It replaces connections that break, and closes all of them
    when you close the saver.

    `prefix` begins every key. `durability` says what a change must have reached when it is acknowledged: the server's
    disk ("full"; a server that does not wait for its disk is refused), as many replicas ("replicas:1"), or only the
    server's memory ("memory"), from where the server's own settings take it to the disk. docs/how-to/redis.md lists
    which changes each of them can lose.

    If a server that was reached before cannot be reached, or refuses for now (it starts, fails over, moves slots), an
    operation is tried again for `timeout` seconds and then raises TransientStoreError. A saver that never had a
    connection raises its error at once, because a wrong address looks like a server that is away. The saver waits for a
    reply no longer than the URL's `socket_timeout` (10 s by default), and for a connection no longer than
    `socket_connect_timeout` (5 s).

    A transaction that takes `slow` seconds or more is logged as a warning; with None none is.
    """

    _no_transactions = (
        "Redis cannot undo a command, and runs nothing between the commands of one client but whole scripts: each call "
        "is one script, and stored at once. Use a saver on SQLite or Postgres, or in memory"
    )

    def __init__(
        self,
        database: "Database",
        *,
        prefix: str = PREFIX,
        durability: str = "full",
        pool_size: int = 16,
        timeout: float = 30.0,
        slow: float | None = 1.0,
        **options: Unpack[SaverOptions],
    ) -> None:
        if type(pool_size) is not int or pool_size < 1:
            raise ConfigError(f"pool_size must be a number from 1 on, not {pool_size!r}")
        check_seconds(timeout, "timeout")
        servers = servers_of_url(database) if isinstance(database, str) else servers_of_client(database)
        store = RedisStore(checked_prefix(prefix), clustered=servers.layout == "cluster")
        settings = Settings(
            servers,
            durability_of(durability),
            pool_size,
            timeout,
            prefix=prefix,
            grace=store.settings.grace,
            expires=options.get("ttl") is not None,
            slow=slow_after(slow),
        )
        self._redis = RedisDriver(settings)
        self._prefix = store.settings.prefix
        super().__init__(store, self._redis, **options)

    def setup(self) -> None:
        """Connect to every server, and check its durability and whether this release may write to it.

        The first call of any method does this automatically; call it to choose the time. There are no tables or indexes
        to create.
        """
        self._redis.start()

    async def asetup(self) -> None:
        """Like `setup`, for asyncio."""
        await self._redis.astart()

    def report(self) -> RedisReport:
        """Return a report on the server, or on every master of a cluster, with warnings.

        A field is None if the provider forbids the command that would tell. The warnings are also logged when a server
        is first reached.
        """
        return self._reported(self._redis.survey(), run(self._driver, self._format()))

    async def areport(self) -> RedisReport:
        """Like `report`, for asyncio."""
        return self._reported(await self._redis.asurvey(), await arun(self._driver, self._format()))

    def _format(self) -> Operation[Format | None]:
        try:
            return (yield from read(stored_format, self._prefix))
        except (ConfigError, StoreError):  # the rest of the report says why nothing can be read
            return None

    def _reported(self, found: list[tuple[Facts, bool]], stored: Format | None) -> RedisReport:
        return full_report(found, [warning for facts, _ in found for warning in self._redis.warnings(facts)], stored)


def open_url(url: str, **options: Unpack[RedisOptions]) -> RedisSaver:
    """Return a saver for `redis://user:password@host:6379/0` or another URL that `RedisSaver` describes."""
    rest, written = options_in(url, RedisOptions)
    return RedisSaver(rest, **{**written, **options})
