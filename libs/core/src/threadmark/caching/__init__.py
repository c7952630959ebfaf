"""A saver in front of another one, which looks for segments in a cache before it asks its database for them."""

from threadmark.caching.cache import Cache, Filling, Got, Wanted
from threadmark.caching.memory import MemoryCache
from threadmark.caching.saver import CachedSaver, cached

__all__ = ["Cache", "CachedSaver", "Filling", "Got", "MemoryCache", "Wanted", "cached"]
