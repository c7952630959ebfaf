"""Checkpoints and a shared cache on Redis or Valkey: `RedisSaver` and `RedisCache`."""

from threadmark_redis.cache import RedisCache
from threadmark_redis.options import RedisOptions
from threadmark_redis.report import RedisReport, ServerReport
from threadmark_redis.saver import RedisSaver

__all__ = ["RedisCache", "RedisOptions", "RedisReport", "RedisSaver", "ServerReport"]
