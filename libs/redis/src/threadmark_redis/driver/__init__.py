"""The driver, which runs programs on Redis for blocking callers and for asyncio. All I/O is in this package."""

from threadmark_redis.driver.clients import servers_of_client
from threadmark_redis.driver.connecting import Servers
from threadmark_redis.driver.driver import RedisDriver
from threadmark_redis.driver.settings import Settings, durability_of
from threadmark_redis.driver.urls import servers_of_url

__all__ = ["RedisDriver", "Servers", "Settings", "durability_of", "servers_of_client", "servers_of_url"]
