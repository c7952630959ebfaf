"""The backends that the suite for stores runs on. Another one plugs in by its line in `BACKENDS`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from backends import memory, sealed, sqlite_file, sqlite_memory
from length import ALL
from postgres.backends import from_url
from postgres.cluster import shared
from redis_backend.backends import BACKENDS as ON_REDIS
from threadmark import Saver
from threadmark_conformance import APIS, Backend, Opener


@contextmanager
def postgres(folder: Path) -> Iterator[Opener]:
    """Tables of a schema, of which the store's are dropped behind the case."""
    schemas = set[str]()
    with from_url(folder) as open_saver:

        def open_noted(**options: Any) -> Saver:
            saver = open_saver(**options)
            schemas.add(saver._schema)  # type: ignore[attr-defined]  # of a PostgresSaver
            return saver

        yield open_noted
    with psycopg.connect(shared().url, autocommit=True) as connection:
        for schema in schemas:
            for table in ("item", "vector", "word", "cached"):
                connection.execute(f"DROP TABLE IF EXISTS {schema}.threadmark_store_{table}".encode())


BACKENDS: dict[str, Backend] = {
    "memory": memory,
    "memory sealed": sealed,
    "sqlite file": sqlite_file,
    "sqlite memory": sqlite_memory,
    "postgres": postgres,
    "redis": ON_REDIS["single"],
    "redis cluster": ON_REDIS["cluster"],
}

ONE_API = {"memory sealed": "blocking", "sqlite memory": "asyncio", "redis cluster": "asyncio"}
"""The backends that differ from another one in their rows or their driver, but in no API, and the API that they run."""

WAYS = [(backend, api) for backend in BACKENDS for api in APIS if ALL or ONE_API.get(backend, api) == api]
"""Each backend, and the APIs that run on it."""
