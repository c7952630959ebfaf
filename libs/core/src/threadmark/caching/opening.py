"""Caches by URL, and the URL of a cached saver.

Packages announce caches through the entry-point group `threadmark.caches`, as backends are announced (`urls.py`): an
entry's name is a scheme, and what it points to is called with the URL.
"""

from datetime import timedelta
from importlib.metadata import entry_points
from typing import Any

from threadmark.caching.cache import Cache
from threadmark.errors import ConfigError, MissingDependencyError
from threadmark.urls import parameters_in

GROUP = "threadmark.caches"

_URL = "cached:?saver=URL&cache=URL&ttl=3600"


def open_cache(url: str) -> Cache:
    """Return the cache that a URL names. No error shows the URL, which may have a password."""
    scheme, colon, _ = url.partition(":")
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if not colon or scheme not in found:
        if scheme.startswith("redis"):
            raise MissingDependencyError("the cache for Redis is not installed: pip install 'threadmark[redis]'")
        raise ConfigError(
            f"this URL names no cache: write 'redis://host:6379/1' or 'memory:' (installed are {_listed(list(found))})"
        )
    try:
        made = found[scheme].load()
    except ImportError as missing:
        raise MissingDependencyError(
            f"the cache for {scheme!r} URLs cannot be imported ({missing})", name=missing.name
        ) from missing
    cache = made(url)
    if not isinstance(cache, Cache):
        raise ConfigError(f"what serves {scheme!r} URLs of caches is no threadmark.Cache")
    return cache


def arguments_in(url: str) -> dict[str, Any]:
    """Return the arguments of `cached` that the URL of a cached saver has. No error shows a value of it."""
    arguments: dict[str, Any] = {
        **parameters_in(url, _URL, needed=("saver", "cache"), optional=("ttl", "wait", "name"))
    }
    try:
        if "wait" in arguments:
            arguments["wait"] = float(arguments["wait"])
        if "ttl" in arguments:
            arguments["ttl"] = timedelta(seconds=float(arguments["ttl"]))
    except (OverflowError, ValueError):
        raise ConfigError(f"ttl and wait in a URL must be numbers of seconds: write {_URL!r}") from None
    return arguments


def _listed(names: list[str]) -> str:
    return ", ".join(sorted(names)) or "none"
