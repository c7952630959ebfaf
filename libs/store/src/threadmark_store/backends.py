"""The saver that a store or a cache works on, and the module for its backend."""

from importlib import import_module
from types import TracebackType
from typing import Any, Self

from threadmark.backends import ConfigError
from threadmark.replication import ReplicatedSaver
from threadmark.saver import Saver

_MODULES = {
    "threadmark.memory.store": "memory",
    "threadmark_sqlite.store": "sqlite",
    "threadmark_postgres.store": "postgres",
    "threadmark_redis.store": "redis",
}
"""By the module of the saver's own store."""

ITEMS = "store of items"
PAIR = "pairs"
"""The backend of a pair: it asks those of the two sides."""


def checked_saver(candidate: Any) -> Saver:
    """Return the saver, also of an object under LangGraph's name. Raises ConfigError if it is none."""
    saver = getattr(candidate, "saver", candidate)
    if isinstance(saver, Saver):
        return saver
    raise ConfigError(f"expected a Threadmark saver, got {type(candidate).__name__}: threadmark.open(url) returns one")


def backend_of(saver: Saver, what: str = ITEMS) -> str:
    """Return the name of a saver's backend. Raises ConfigError if it is none of ours."""
    rows = saver._store  # noqa: SLF001 - the backend's rows, below the wrappers of the saver
    name = _MODULES.get(type(rows).__module__)
    if isinstance(saver, ReplicatedSaver) and what == ITEMS:
        return _backend_of_pair(saver)
    if name is None:
        raise ConfigError(f"{saver!r} has no {what}: give a saver on memory, SQLite, Postgres or Redis")
    return name


def module_of(saver: Saver, folder: str, what: str = ITEMS) -> tuple[Any, Any]:
    """Return the module of a saver's backend in a folder of this package, and the saver's own rows.

    Raises ConfigError if there is none for this backend.
    """
    backend = backend_of(saver, what)
    module = import_module(
        f"threadmark_store.{PAIR}.{folder}" if backend == PAIR else f"threadmark_store.{folder}.{backend}"
    )
    return module, saver._store  # noqa: SLF001 - see above


def over(rows: Any, folder: str) -> Any:
    """Return the items, vectors or words next to a backend's own rows."""
    module = import_module(f"threadmark_store.{folder}.{_MODULES[type(rows).__module__]}")
    return getattr(module, f"{folder}_over")(rows)


def _backend_of_pair(saver: ReplicatedSaver) -> str:
    """Return `PAIR`. Raises ConfigError if a side cannot store an item and its entry in the outbox together."""
    for side in saver._pair.pair.sides:  # noqa: SLF001 - see above
        if _MODULES.get(type(side.store).__module__) in (None, "redis"):
            raise ConfigError(
                f"{saver!r} has no store of items: {side} cannot store an item and the note that it is to be copied in "
                "one transaction. Give a pair on memory, SQLite or Postgres, or a store of its own for the items"
            )
    return PAIR


class OverSaver:
    """A store or a cache, which closes the saver that it opened, at the end of a block or by `close`."""

    saver: Saver
    _closes_saver = False

    def close(self) -> None:
        """Close the saver if it was opened for this."""
        if self._closes_saver:
            self.saver.close()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        if self._closes_saver:
            await self.saver.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
