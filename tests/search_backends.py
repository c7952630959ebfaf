"""The backends that searches are tested on: each opens savers on one empty database."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from postgres.cluster import PostgresServer, shared, with_pgvector
from redis_backend import processes
from redis_backend.backends import OPTIONS
from threadmark import Saver
from threadmark.memory.saver import MemorySaver
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisSaver
from threadmark_sqlite import SqliteSaver

BACKENDS = ("memory", "sqlite", "postgres", "pgvector", "redis")
_SERVERS: dict[str, Callable[[], PostgresServer]] = {"postgres": shared, "pgvector": with_pgvector}

_numbers = count()


@contextmanager
def opening(backend: str, folder: Path) -> Iterator[Callable[..., Saver]]:
    """Opens savers, and closes them in the end."""
    name = f"search_{next(_numbers)}"
    savers: list[Saver] = []

    def opened(**options: Any) -> Saver:
        saver: Saver
        if backend == "memory":
            saver = MemorySaver(**options)
        elif backend == "sqlite":
            saver = SqliteSaver(folder / "items.db", durability="normal", **options)
        elif backend in _SERVERS:
            saver = PostgresSaver(_SERVERS[backend]().url, schema=name, pool_size=4, **options)
        else:
            saver = RedisSaver(processes.shared().url, prefix=f"{name}:", **OPTIONS, **options)
        savers.append(saver)
        return saver

    yield opened
    for saver in savers:
        saver.close()
    if backend in _SERVERS:
        with psycopg.connect(_SERVERS[backend]().url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())
