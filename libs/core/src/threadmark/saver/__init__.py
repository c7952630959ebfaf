"""All semantics of a saver, once for every backend; the blocking and the asyncio face."""

from threadmark.saver.face import CACHE_BYTES, Saver

__all__ = ["CACHE_BYTES", "Saver"]
