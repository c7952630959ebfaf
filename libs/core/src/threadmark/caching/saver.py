"""`CachedSaver`: a saver that finds stored bytes in a cache, and `cached`, the function that makes one.

Packages announce caches through the entry-point group `threadmark.caches`, as they announce backends (`urls.py`). The
name of an entry is a scheme, and its object is called with the URL.
"""

from datetime import timedelta
from importlib.metadata import entry_points
from typing import Any

from threadmark.around.deferred import deferred_store
from threadmark.around.read_from import ReadFromSaver
from threadmark.caching.cache import Cache, CacheKeys, segment_proof
from threadmark.caching.flows import Access, CachedDriver, Flows
from threadmark.errors import ConfigError, MissingDependencyError, importing, short_repr
from threadmark.model import Duration, UpgradeReport
from threadmark.saver import Saver, SaverOptions
from threadmark.saver.kit import check_seconds, checked_duration, option_in_url
from threadmark.urls import open as open_saver
from threadmark.urls import parameters_in

GROUP = "threadmark.caches"

_URL = "cached:?saver=URL&cache=URL&ttl=3600"
_KINDS = {"ttl": Duration, "wait": float, "name": str}


def open_cache(url: str) -> Cache:
    """Return the cache that a URL names. No error shows the URL, which may have a password."""
    scheme, colon, _ = url.partition(":")
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if not colon or scheme not in found:
        if colon and scheme.startswith("redis") and "redis" not in found:
            raise MissingDependencyError("the cache for Redis is not installed: pip install 'threadmark[redis]'")
        raise ConfigError(
            f"this URL names no cache: write 'redis://host:6379/1' or 'memory:' (installed are {_listed(list(found))})"
        )
    with importing(f"the cache for {scheme!r} URLs cannot be imported ({{missing}})"):
        made = found[scheme].load()
    cache = made(url)
    if not isinstance(cache, Cache):
        raise ConfigError(
            f"the entry point for {scheme!r} URLs of caches returned no threadmark.types.Cache: update its package"
        )
    return cache


def arguments_in(url: str) -> dict[str, Any]:
    """Return the arguments of `cached` in the URL of a cached saver. No error shows a value of it."""
    written = parameters_in(url, _URL, needed=("saver", "cache"), optional=_KINDS)
    return {name: option_in_url(name, text, _KINDS.get(name, str)) for name, text in written.items()}


def _listed(names: list[str]) -> str:
    return ", ".join(sorted(names)) or "none"


HOUR = timedelta(hours=1)


class CachedSaver(ReadFromSaver):
    """A saver in front of another one. It finds bytes that never change in a cache.

    `threadmark.cached` makes it. It has every method of a saver.
    """

    _no_transactions = "a cache must not see what is not committed: take one of its `uncached` saver"

    def __init__(self, saver: Saver, cache: Cache, *, ttl: timedelta, wait: float, name: str, owns_cache: bool) -> None:
        options: SaverOptions = {**saver._options, "serde": saver.serde}  # noqa: SLF001 - as in `CachedDriver`
        keyring = options.get("keyring")
        access = Access(cache, ttl.total_seconds(), wait)
        store = saver._store  # noqa: SLF001 - as above
        flows = Flows(store, access, CacheKeys(name, keyring), segment_proof(keyring))
        super().__init__(deferred_store(store), CachedDriver(saver, cache, flows, owns_cache=owns_cache), **options)
        self._uncached = saver

    @property
    def uncached(self) -> Saver:
        """The saver behind this one, with the same threads. It reads nothing from the cache."""
        owner = self._context.threads.owner
        return self._uncached if owner is None else self._uncached.for_owner(owner)

    def setup(self) -> None:
        """Call `setup` of the saver behind this one."""
        self._uncached.setup()

    def upgrade(self, *, dry_run: bool = False) -> UpgradeReport:
        """Do what `upgrade` of the saver behind this one does."""
        return self.uncached.upgrade(dry_run=dry_run)

    async def asetup(self) -> None:
        """Like `setup`, for asyncio."""
        await self._uncached.asetup()

    async def aupgrade(self, *, dry_run: bool = False) -> UpgradeReport:
        """Like `upgrade`, for asyncio."""
        return await self.uncached.aupgrade(dry_run=dry_run)


def cached(
    saver: Saver | str,
    cache: Cache | str,
    *,
    ttl: Duration = HOUR,
    wait: float = 0.05,
    name: str | None = None,
    **options: Any,
) -> CachedSaver:
    """Return a saver that reads stored bytes from a cache if they are there, and everything else from a database.

    `with threadmark.cached("postgresql://db/agents", "redis://cache:6379/0") as saver: ...`

    The database always decides which checkpoint is the newest, and no byte of the cache is used without proof. While
    the cache is away, everything works without it (docs/how-to/caching.md).

    Args:
        saver: The database: a URL, or a saver, which is closed together with this one.
        cache: The cache: a URL (`redis://...`, or `memory:` for this process), or a `threadmark.MemoryCache` or
            `threadmark_redis.RedisCache`, which stays open for others.
        ttl: The longest time for which bytes stay in the cache.
        wait: The seconds that a call of the cache may take.
        name: The name of the database in the cache (default: its address in `repr(saver)`). Savers that reach one
            database by different addresses need the same name to share the cache.
        **options: The options of the saver, if you give it as a URL.
    """
    lifetime = checked_duration(ttl, "ttl")
    check_seconds(wait, "wait")
    if name is not None and not isinstance(name, str):
        raise ConfigError(f"name must be text, not {short_repr(name)}")
    if not isinstance(cache, (str, Cache)):
        raise ConfigError(f"expected the URL of a cache, or a threadmark.MemoryCache, got {type(cache).__name__}")
    opened = _opened(saver, options)
    try:
        used = open_cache(cache) if isinstance(cache, str) else cache
    except BaseException:
        if opened is not saver:
            opened.close()
        raise
    name = str(opened._driver) if name is None else name  # noqa: SLF001 - the text that `repr` shows
    return CachedSaver(opened, used, ttl=lifetime, wait=wait, name=name, owns_cache=used is not cache)


def open_url(url: str, **options: Any) -> CachedSaver:
    """Return the saver for `cached:?saver=URL&cache=URL&ttl=3600`. The two URLs are percent-encoded."""
    return cached(**{**arguments_in(url), **options})


def _opened(saver: Saver | str, options: dict[str, Any]) -> Saver:
    if isinstance(saver, str):
        found = open_saver(saver, **options)
        if not isinstance(found, Saver):
            raise ConfigError(f"only a threadmark.Saver can be cached, not a {type(found).__name__}")
        return found
    if not isinstance(saver, Saver):
        raise ConfigError(f"expected a URL or a threadmark.Saver, got {type(saver).__name__}")
    if options:
        raise ConfigError(f"give {', '.join(sorted(options))} to the saver itself: this one has the same options")
    saver._context.expect_no_view()  # noqa: SLF001 - the store knows nothing of an owner's view
    return saver
