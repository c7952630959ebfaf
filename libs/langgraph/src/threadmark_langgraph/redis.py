"""The Redis savers under LangGraph's names. They need the package threadmark-redis, and no modules in the server."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, Unpack

from threadmark import ConfigError
from threadmark.errors import importing, short_repr
from threadmark_langgraph.checkpointer import Checkpointer

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from threadmark_langgraph.options import RedisArguments, RedisOptions, Ttl


class _Redis(Checkpointer):
    def __init__(
        self,
        redis_url: str | None = None,
        *,
        redis_client: Any = None,
        connection_args: Mapping[str, Any] | None = None,
        ttl: "Ttl" = None,
        checkpoint_prefix: str | None = None,
        checkpoint_write_prefix: str | None = None,  # noqa: ARG002 - the other saver's; all keys here have one prefix
        serde: "SerializerProtocol | None" = None,
        **options: "Unpack[RedisOptions]",
    ) -> None:
        with importing("{missing}: pip install 'threadmark-langgraph[redis]'"):
            from threadmark_redis import RedisSaver as RedisBackend

        if checkpoint_prefix is not None:
            options.setdefault("prefix", f"{checkpoint_prefix}:")
        database = _database(redis_url, redis_client, connection_args)
        super().__init__(RedisBackend(database, **{**options, **_expiry(ttl)}), serde=serde)


class RedisSaver(_Redis):
    """Keeps everything in Redis or Valkey, on one server, a cluster or behind Sentinels, without modules.

    Pass `redis_url`, which is a URL (`redis://`, `rediss://`, `redis+cluster://`, `redis+sentinel://`), or
    `redis_client`, which is a client of redis-py, blocking or for asyncio. With `connection_args`, `redis_url` is
    opened as `redis.Redis.from_url` does. `ttl` is a `timedelta`, or the mapping that the saver of
    langgraph-checkpoint-redis takes, `{"default_ttl": 60, "refresh_on_read": True}`, in minutes; here whole threads
    expire. `checkpoint_prefix` begins every key, and `checkpoint_write_prefix` changes nothing. The options are those
    of `threadmark_redis.RedisSaver`.
    """

    @classmethod
    @contextmanager
    def from_conn_string(cls, redis_url: str | None = None, **arguments: "Unpack[RedisArguments]") -> Iterator[Self]:
        """Open a saver for this server, and close it at the end of the block."""
        with cls(redis_url, **arguments) as saver:
            yield saver


class AsyncRedisSaver(_Redis):
    """`RedisSaver` under its asyncio name."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls, redis_url: str | None = None, **arguments: "Unpack[RedisArguments]"
    ) -> AsyncIterator[Self]:
        """Open a saver for this server, and close it at the end of the block."""
        async with cls(redis_url, **arguments) as saver:
            yield saver

    async def setup(self) -> None:  # type: ignore[override]  # named as in the other saver, and awaited here
        """Like `asetup`."""
        await self.asetup()


def _database(url: str | None, client: Any, connection_args: Mapping[str, Any] | None) -> Any:
    if (url is None) is (client is None):
        raise ConfigError("give either redis_url or redis_client: RedisSaver('redis://host:6379')")
    if not connection_args:
        return client if url is None else url
    if url is None:
        raise ConfigError("connection_args are for redis_url: give a client the arguments when it is made")
    import redis

    return redis.Redis.from_url(url, **connection_args)


def _expiry(ttl: "Ttl") -> dict[str, Any]:
    """Return the options for a `ttl`. In a mapping, "default_ttl" is a number of minutes, or -1 for no expiry."""
    if ttl is None:
        return {}
    if isinstance(ttl, timedelta):
        return {"ttl": ttl}
    if not isinstance(ttl, Mapping) or not set(ttl) <= {"default_ttl", "refresh_on_read"}:
        raise ConfigError(
            f"ttl must be a timedelta or {{'default_ttl': 60, 'refresh_on_read': True}}, not {short_repr(ttl)}"
        )
    minutes = ttl.get("default_ttl")
    if minutes in (None, -1):
        return {}
    if isinstance(minutes, bool) or not isinstance(minutes, (int, float)) or not minutes > 0:
        raise ConfigError(f"default_ttl must be a number of minutes, or -1 for no expiry, not {short_repr(minutes)}")
    found: dict[str, Any] = {"ttl": timedelta(minutes=minutes)}
    if "refresh_on_read" in ttl:
        found["refresh_on_read"] = ttl["refresh_on_read"]
    return found
