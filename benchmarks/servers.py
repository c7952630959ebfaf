"""A server for a benchmark: that of a URL, or one that is started here."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def postgres(url: str | None, *, pgvector: bool = False) -> Iterator[str]:
    """The URL of an empty database. Without a URL it is on a server that is started here, with fsync.

    With `pgvector` that is the newest one, and the database has the extension.
    """
    if url:
        yield url
        return
    _find_tests()
    from postgres.cluster import Cluster, newest_programs

    settings = {"shared_buffers": "512MB", "maintenance_work_mem": "256MB"} if pgvector else {}
    with Cluster(durable=True, settings=settings, programs=newest_programs() if pgvector else None) as cluster:
        if pgvector:
            cluster.execute("CREATE EXTENSION vector")
        yield cluster.url


@contextmanager
def redis(url: str | None) -> Iterator[str]:
    """The URL of an empty Redis database. Without a URL it is on a new server that waits for the disk."""
    if url:
        yield url
        return
    _find_tests()
    from redis_backend.processes import DURABLE, RedisProcess

    with RedisProcess(DURABLE).start() as server:
        yield server.url


def _find_tests() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
