"""`RedisSaver`: from a URL, a client or a pool to the driver that serves it."""

from typing import TYPE_CHECKING, Self, Unpack

from threadmark import ConfigError, Saver
from threadmark.runtime.logs import slow_after
from threadmark.saver import SaverOptions
from threadmark.saver.arguments import check_seconds
from threadmark_redis.driver import RedisDriver, Settings, durability_of, servers_of_client, servers_of_url
from threadmark_redis.driver.facts import Facts
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

    `database` is a URL, or a client or a pool of redis-py: `redis://user:password@host:6379/0`, `rediss://` with TLS,
    `redis+cluster://host:6379,host:6379`, `redis+sentinel://host:26379,host:26379/service/0` or `redis+unix:///path`.
    Of a client or a pool only the arguments of its connections are used, whatever its API: the saver opens connections
    of its own when it needs them, up to `pool_size` to each server for each event loop and as many for blocking
    callers, replaces those that break, and closes them with itself. The main thread has one more.

    `prefix` begins every key. `durability` says what a change must have reached when it is acknowledged: the server's
    disk ("full"; a server that does not wait for its disk is refused), as many replicas ("replicas:1"), or only the
    server's memory ("memory"), from where its own settings take it to the disk. docs/how-to/redis.md says what
    is lost when.

    While a server that was reached before cannot be reached, or refuses for now (it starts, fails over, moves slots),
    an operation is tried again for `timeout` seconds, then it raises TransientStoreError. A saver that never had a
    connection raises its error at once, because a wrong address looks like a server that is away. No reply is waited
    for longer than the URL's `socket_timeout` (10 s by default), no connection longer than `socket_connect_timeout`
    (5 s).

    A transaction that takes `slow` seconds or more is logged as a warning (None: none is).
    """

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
        super().__init__(store, self._redis, **options)

    @classmethod
    def from_url(cls, url: str, **options: Unpack[RedisOptions]) -> Self:
        """Return the saver for `redis://user:password@host:6379/0` and the other URLs of the class."""
        return cls(url, **options)

    def setup(self) -> None:
        """Reach every server, and see that each is as durable as it should be.

        Whatever is called first does so by itself; call this to have it done at a time of your own choice. There are no
        tables and no indexes to make.
        """
        self._redis.start()

    async def asetup(self) -> None:
        """Like `setup`, for asyncio."""
        await self._redis.astart()

    def report(self) -> RedisReport:
        """Ask the server, or every master of a cluster, what is known of it. Returns that, with what is wrong.

        What a provider forbids to ask is None in it. The warnings are logged, too, when a server is first reached.
        """
        return self._reported(self._redis.survey())

    async def areport(self) -> RedisReport:
        """Like `report`, for asyncio."""
        return self._reported(await self._redis.asurvey())

    def _reported(self, found: list[tuple[Facts, bool]]) -> RedisReport:
        return full_report(found, [warning for facts, _ in found for warning in self._redis.warnings(facts)])
