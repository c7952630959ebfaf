"""Threadmark's Redis backend."""

from threadmark_redis.saver import RedisSaver

__all__ = ["RedisSaver"]
