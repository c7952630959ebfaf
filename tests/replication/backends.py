"""Pairs as the conformance suite opens them."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from postgres import backends as postgres
from redis_backend import backends as redis
from threadmark import Saver, replicated
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark.replication import ReplicationMode
from threadmark_conformance import Backend, Opener
from threadmark_sqlite import SqliteSaver

PATIENCE = 120.0
"""A deadline that a slow machine does not miss."""


@contextmanager
def _memory(mode: ReplicationMode, _: Path) -> Iterator[Opener]:
    drivers = MemoryDriver(), MemoryDriver()

    def open_saver(**options: Any) -> Saver:
        primary, secondary = (Saver(MemoryStore(), driver) for driver in drivers)
        return replicated(primary, secondary, mode=mode, deadline=PATIENCE, **options)

    yield open_saver


@contextmanager
def _sqlite(mode: ReplicationMode, folder: Path) -> Iterator[Opener]:
    def open_saver(**options: Any) -> Saver:
        primary, secondary = (
            SqliteSaver(folder / f"{name}.db", durability="normal") for name in ("primary", "secondary")
        )
        return replicated(primary, secondary, mode=mode, deadline=PATIENCE, **options)

    yield open_saver


@contextmanager
def _postgres_redis(mode: ReplicationMode, folder: Path) -> Iterator[Opener]:
    with postgres.from_url(folder) as open_postgres, redis.BACKENDS["single"](folder) as open_redis:

        def open_saver(**options: Any) -> Saver:
            return replicated(open_postgres(), open_redis(), mode=mode, deadline=PATIENCE, **options)

        yield open_saver


BACKENDS: dict[str, Backend] = {
    "replicated memory": partial(_memory, "sync"),
    "replicated memory async": partial(_memory, "async"),
    "replicated sqlite": partial(_sqlite, "sync"),
    "replicated sqlite async": partial(_sqlite, "async"),
    "replicated postgres redis": partial(_postgres_redis, "sync"),
}
