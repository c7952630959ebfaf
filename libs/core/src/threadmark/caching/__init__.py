"""A saver that looks for segments in a cache before it reads them from the database."""

from threadmark.caching.cache import Cache, CacheRequest, Filling, Got
from threadmark.caching.memory import MemoryCache
from threadmark.caching.saver import CachedSaver, cached

__all__ = ["Cache", "CacheRequest", "CachedSaver", "Filling", "Got", "MemoryCache", "cached"]
