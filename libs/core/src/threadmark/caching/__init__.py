"""Bytes that never change, kept near: a saver that looks into a cache before it asks its database for segments."""

from threadmark.caching.cache import Cache, Filling, Got, Wanted
from threadmark.caching.memory import MemoryCache
from threadmark.caching.saver import CachedSaver, cached

__all__ = ["Cache", "CachedSaver", "Filling", "Got", "MemoryCache", "Wanted", "cached"]
