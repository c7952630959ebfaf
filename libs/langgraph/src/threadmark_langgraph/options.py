"""The options of the savers under LangGraph's names, and of their `prune`, as types.

Only type checkers import this: at run time a backend is imported when a saver on it is made. The serializer is no
option here, because LangGraph's constructors have an argument for it. `RedisArguments` has those arguments as well.
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
"""When threads of a `RedisSaver` expire: a time, or what the saver of langgraph-checkpoint-redis takes."""


class MovingOptions(TypedDict, total=False):
    """What a saver does in a database where LangGraph's own saver has kept threads."""

    on_unmoved: OnUnmoved
    """What it does about those that were not moved: "warn" once, or "raise" an `UnmovedThreadsError`."""


class SqliteOptions(FileOptions, StorageOptions, ThreadOptions, MovingOptions, total=False):
    """The options of `SqliteSaver` and `AsyncSqliteSaver`."""


class PostgresOptions(ConnectionOptions, StorageOptions, ThreadOptions, MovingOptions, total=False):
    """The options of `PostgresSaver` and `AsyncPostgresSaver`."""


class RedisOptions(ServerOptions, StorageOptions, total=False):
    """The options of `RedisSaver` and `AsyncRedisSaver`, all but `ttl`: their argument for it also takes minutes."""

    owner_key: str | None
    refresh_on_read: bool
    keep_last: int | None
    expect_newest: bool


class RedisArguments(RedisOptions, total=False):
    """The arguments of `RedisSaver` and `AsyncRedisSaver` behind the URL."""

    redis_client: Any
    connection_args: Mapping[str, Any] | None
    ttl: Ttl
    checkpoint_prefix: str | None
    checkpoint_write_prefix: str | None
    serde: "SerializerProtocol | None"


class PruneRule(TypedDict, total=False):
    """The arguments of `threadmark.Saver.prune` that LangGraph's `prune` does not have."""

    keep_last: int | None
    older_than: timedelta | None
    dry_run: bool
    missing_ok: bool
    progress: OnProgress | None
