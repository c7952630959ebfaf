"""Types for the options of the savers under LangGraph's names, and of their `prune`.

Only type checkers import this module: at run time a backend is imported when you make a saver on it. The serializer is
not among the options, because LangGraph's constructors have an argument for it; `RedisArguments` includes it.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from threadmark.saver import StorageOptions, ThreadOptions
from threadmark.types import OnProgress
from threadmark_langgraph.unmoved import OnUnmoved
from threadmark_postgres.options import ConnectionOptions
from threadmark_redis.options import ServerOptions
from threadmark_sqlite.options import FileOptions

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol

Ttl = Mapping[str, Any] | timedelta | None
"""When threads of a `RedisSaver` expire: a timedelta, or the mapping that langgraph-checkpoint-redis takes."""


class MovingOptions(TypedDict, total=False):
    """Options for a database in which LangGraph's own saver has kept threads."""

    on_unmoved: OnUnmoved
    """The reaction to threads that were not moved: "warn" once, or "raise" an `UnmovedThreadsError`."""


class SqliteOptions(FileOptions, StorageOptions, ThreadOptions, MovingOptions, total=False):
    """The options of `SqliteSaver` and `AsyncSqliteSaver`."""


class PostgresOptions(ConnectionOptions, StorageOptions, ThreadOptions, MovingOptions, total=False):
    """The options of `PostgresSaver` and `AsyncPostgresSaver`."""


class RedisOptions(ServerOptions, StorageOptions, total=False):
    """The options of `RedisSaver` and `AsyncRedisSaver`, except `ttl`: their argument `ttl` also takes minutes."""

    owner_key: str | None
    refresh_on_read: bool
    keep_last: int | None
    expect_newest: bool


class RedisArguments(RedisOptions, total=False):
    """The arguments of `RedisSaver` and `AsyncRedisSaver` that follow the URL."""

    redis_client: Any
    connection_args: Mapping[str, Any] | None
    ttl: Ttl
    checkpoint_prefix: str | None
    checkpoint_write_prefix: str | None
    serde: "SerializerProtocol | None"


class PruneRule(TypedDict, total=False):
    """Arguments of `threadmark.Saver.prune` that LangGraph's `prune` lacks."""

    keep_last: int | None
    older_than: float | timedelta | None
    dry_run: bool
    missing_ok: bool
    progress: OnProgress | None
