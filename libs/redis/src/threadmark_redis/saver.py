"""`RedisSaver`: from a URL or a client to the driver that serves it."""

from typing import Any, Self

import redis

from threadmark import Saver
from threadmark_redis.driver import PlainDriver
from threadmark_redis.keys import PREFIX
from threadmark_redis.store import GRACE, RedisStore


class RedisSaver(Saver):
    """Saves to a Redis server."""

    def __init__(self, url: str, *, prefix: str = PREFIX, **options: Any) -> None:
        driver = PlainDriver(redis.Redis.from_url(url, protocol=2), grace=GRACE)
        super().__init__(RedisStore(prefix), driver, **options)

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Self:
        """Return the saver for a URL."""
        return cls(url, **options)
