"""The backends that the suite for stores runs on. Another one plugs in by its line in `BACKENDS`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backends import memory, sealed, sqlite_file, sqlite_memory
from length import ALL
from postgres.backends import BACKENDS as POSTGRES
from redis_backend.backends import BACKENDS as REDIS
from threadmark.backends import Program
from threadmark.program import Transaction, run
from threadmark_conformance import APIS, Backend, Opener
from threadmark_store.operating import Rows, existing, rows_of
from threadmark_store.shapes import Scope


def emptied(backend: Backend) -> Backend:
    """Return a backend whose cases share a database, and of which each begins without the items of the one before."""

    @contextmanager
    def without_items(folder: Path) -> Iterator[Opener]:
        with backend(folder) as open_saver:
            with open_saver() as saver:
                rows = run(saver._driver, existing(rows_of(saver)))
                if rows is not None:
                    saver._driver.run(Transaction(_remove_all, (rows,), writes=True))
            yield open_saver

    return without_items


def _remove_all(rows: Rows) -> Program[None]:
    while some := (yield from rows.items.in_key_order(Scope(), None, 1000)):
        yield from rows.items.delete([row.key for row in some], None)
    tables: list[Any] = [table for table in (rows.vectors, rows.words) if table is not None]
    for table in tables:
        while (found := (yield from table.keys(None)))[0]:
            yield from table.delete(found[0], None)


BACKENDS: dict[str, Backend] = {
    "memory": memory,
    "memory sealed": sealed,
    "sqlite file": sqlite_file,
    "sqlite memory": sqlite_memory,
    "postgres": emptied(POSTGRES["url"]),
    "redis": REDIS["single"],
    "redis cluster": REDIS["cluster"],
}

ONE_API = {"memory sealed": "blocking", "sqlite memory": "asyncio", "redis cluster": "asyncio"}
"""The backends that differ from another one in their rows or their driver, but in no API, and the API that they run."""

WAYS = [(backend, api) for backend in BACKENDS for api in APIS if ALL or ONE_API.get(backend, api) == api]
"""Each backend, and the APIs that run on it."""
