"""The backend of a saver, and the module of this package that has its rows there."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from threadmark import MemorySaver
from threadmark.backends import ConfigError
from threadmark.errors import importing
from threadmark.replication import ReplicatedSaver
from threadmark.saver import Saver

_MODULES = {
    "threadmark.memory.store": "memory",
    "threadmark_sqlite.store": "sqlite",
    "threadmark_postgres.store": "postgres",
    "threadmark_redis.store": "redis",
}
"""By the module of the saver's own store."""
_IN_COMMON = {"sqlite": ("vectors", "words", "cached"), "postgres": ("words", "cached")}
"""The folders of which both have the rows in one way."""

ITEMS = "store of items"
PAIR = "pairs"
"""The backend of a pair: it asks those of the two sides."""


def checked_saver(candidate: Any) -> Saver:
    """Return the saver, also of an object under LangGraph's name. Raises ConfigError if it is none."""
    saver = getattr(candidate, "saver", candidate)
    if isinstance(saver, Saver):
        return saver
    raise ConfigError(f"expected a Threadmark saver, got {type(candidate).__name__}: threadmark.open(url) returns one")


def saver_class(backend: str) -> Callable[..., Saver]:
    """Return the saver class of a backend. Raises MissingDependencyError if its package is missing."""
    if backend == "memory":
        return MemorySaver
    with importing(f"{{missing}}: pip install 'threadmark-store[{backend}]'"):
        saver: Callable[..., Saver] = getattr(import_module(f"threadmark_{backend}"), f"{backend.title()}Saver")
    return saver


def backend_of(saver: Saver, what: str = ITEMS) -> str:
    """Return the name of a saver's backend. Raises ConfigError if it is none of ours."""
    rows = saver._store  # noqa: SLF001 - the backend's rows, below the wrappers of the saver
    name = _MODULES.get(type(rows).__module__)
    if isinstance(saver, ReplicatedSaver) and what == ITEMS:
        return _backend_of_pair(saver)
    if name is None:
        instead = (
            "its `uncached` saver" if hasattr(saver, "uncached") else "a saver on memory, SQLite, Postgres or Redis"
        )
        raise ConfigError(f"{saver!r} has no {what}: give {instead}")
    return name


def rows_over(saver: Saver, folder: str, what: str = ITEMS) -> Any:
    """Return the rows of which a folder of this package says how a saver's database has them.

    Raises ConfigError if there are none for this backend.
    """
    place: Any = saver._store  # noqa: SLF001 - see above
    if backend_of(saver, what) == PAIR:
        return import_module(f"threadmark_store.{PAIR}.{folder}").rows_over(place)
    return over(place, folder)


def may_have_items(place: object) -> bool:
    """Return whether a backend's own rows are of a database in which this package has tables."""
    return type(place).__module__ in _MODULES


def may_be_paired(place: object) -> bool:
    """Return whether a database can store an item and its entry in the outbox of a pair in one transaction."""
    return _MODULES.get(type(place).__module__, "redis") != "redis"


def over(place: Any, folder: str) -> Any:
    """Return the items, vectors or words in the database of a backend's own rows."""
    backend = _MODULES[type(place).__module__]
    if backend in _IN_COMMON:
        place = import_module(f"threadmark_store.tables.{backend}").database_over(place)
    module = "sql" if folder in _IN_COMMON.get(backend, ()) else backend
    return import_module(f"threadmark_store.{folder}.{module}").rows_over(place)


def _backend_of_pair(saver: ReplicatedSaver) -> str:
    """Return `PAIR`. Raises ConfigError if a side cannot store an item and its entry in the outbox together."""
    for side in saver._pair.pair.sides:  # noqa: SLF001 - see above
        if not may_be_paired(side.store):
            raise ConfigError(
                f"{saver!r} has no store of items: {side} cannot store an item and the note that it is to be copied in "
                "one transaction. Give a pair on memory, SQLite or Postgres, or open another saver for the items"
            )
    return PAIR
