"""The backends that searches are tested on: each opens savers on one empty database."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from postgres.cluster import shared
from redis_backend import processes
from redis_backend.backends import OPTIONS
from threadmark import Saver
from threadmark.memory.saver import MemorySaver
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisSaver
from threadmark_sqlite import SqliteSaver

BACKENDS = ("memory", "sqlite", "postgres", "redis")

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
        elif backend == "postgres":
            saver = PostgresSaver(shared().url, schema=name, pool_size=4, **options)
        else:
            saver = RedisSaver(processes.shared().url, prefix=f"{name}:", **OPTIONS, **options)
        savers.append(saver)
        return saver

    yield opened
    for saver in savers:
        saver.close()
    if backend == "postgres":
        with psycopg.connect(shared().url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())
