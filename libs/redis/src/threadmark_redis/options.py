"""Types for the options of a `RedisSaver`."""

from typing import TypedDict

from threadmark.backends import SaverOptions


class ServerOptions(TypedDict, total=False):
    """Options that only a Redis saver has."""

    prefix: str
    durability: str
    pool_size: int
    timeout: float
    slow: float | None


class RedisOptions(ServerOptions, SaverOptions, total=False):
    """All options of a Redis saver."""
