"""Running programs on Redis."""

from threadmark_redis.driver.plain import PlainDriver

__all__ = ["PlainDriver"]
