"""Caches by URL, and the URL of a cached saver.

Packages announce caches through the entry-point group `threadmark.caches`, as backends are announced (`urls.py`): an
entry's name is a scheme, and what it points to is called with the URL.
"""

from datetime import timedelta
from importlib.metadata import entry_points
from typing import Any
from urllib.parse import parse_qsl

from threadmark.caching.cache import Cache
from threadmark.errors import ConfigError, MissingDependencyError

GROUP = "threadmark.caches"

_WRITE = "write 'cached:?saver=URL&cache=URL&ttl=3600', both URLs percent-encoded (urllib.parse.quote(url, safe=''))"
_NEEDED, _KNOWN, _SECONDS = {"saver", "cache"}, {"saver", "cache", "ttl", "wait", "name"}, {"ttl", "wait"}


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
    given = parse_qsl(url.removeprefix("cached:").removeprefix("//").removeprefix("?"), keep_blank_values=True)
    arguments: dict[str, Any] = dict(given)
    if len(arguments) < len(given) or not _NEEDED <= arguments.keys() <= _KNOWN:
        raise ConfigError(
            f"this URL of a cached saver needs saver and cache, and may have ttl, wait and name: {_WRITE}"
        )
    for name in _SECONDS & arguments.keys():
        try:
            arguments[name] = float(arguments[name])
        except ValueError:
            raise ConfigError(f"the {name} in this URL of a cached saver is no number of seconds: {_WRITE}") from None
    if "ttl" in arguments:
        try:
            arguments["ttl"] = timedelta(seconds=arguments["ttl"])
        except (OverflowError, ValueError):
            raise ConfigError(f"the ttl in this URL of a cached saver is too long: {_WRITE}") from None
    return arguments


def _listed(names: list[str]) -> str:
    return ", ".join(sorted(names)) or "none"
