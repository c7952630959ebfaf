"""A saver that looks for segments in a cache before it reads them from the database."""

from threadmark.caching.cache import Cache, Filling, Got, Wanted
from threadmark.caching.memory import MemoryCache
from threadmark.caching.saver import CachedSaver, cached

__all__ = ["Cache", "CachedSaver", "Filling", "Got", "MemoryCache", "Wanted", "cached"]
