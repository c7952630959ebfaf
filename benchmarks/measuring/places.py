"""The place in which a side stores: none, a new file, a new database in Postgres, or keys in Redis; gone at the end."""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg
import redis

from measuring.jobs import POSTGRES, REDIS, SQLITE

_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)
FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname NOT LIKE '%migration%'
"""


class Place(NamedTuple):
    """An empty database."""

    backend: str
    at: str
    """The path of the file, or the URL of the database or the server; empty in memory."""
    connections: int = 0
    """The connections of a saver to a server; 0 leaves the number to the saver."""
    has_tables: bool = False
    """Whether a saver was there before."""
    prefix: str = ""
    """The beginning of the keys, in Redis."""

    def size(self) -> int:
        """Bytes of the file and its log, of all tables and indexes after VACUUM, or of all keys."""
        if self.backend == SQLITE:
            path = Path(self.at)
            return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
        if self.backend == POSTGRES:
            with psycopg.connect(self.at, autocommit=True) as connection:
                connection.execute("VACUUM")
                ((size,),) = connection.execute(_SIZE.encode()).fetchall()
                return int(size)
        if self.backend == REDIS:
            with redis.Redis.from_url(self.at) as client:
                return sum(client.memory_usage(key, samples=0) or 0 for key in self.keys(client))
        return 0

    def keys(self, client: redis.Redis) -> list[bytes]:
        """All keys in Redis."""
        return list(client.scan_iter(match=f"{self.prefix}*", count=1000))


@contextmanager
def new_place(backend: str, server: str, connections: int = 0) -> Iterator[Place]:
    """A place that is removed when the block ends."""
    if backend == SQLITE:
        with tempfile.TemporaryDirectory() as folder:
            yield Place(backend, str(Path(folder) / "benchmark.db"))
    elif backend == POSTGRES:
        name = f"benchmark_{secrets.token_hex(6)}"
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name}".encode())
            try:
                yield Place(backend, psycopg.conninfo.make_conninfo(server, dbname=name), connections)
            finally:
                admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
    elif backend == REDIS:
        place = Place(backend, server, prefix=f"benchmark_{secrets.token_hex(6)}")
        try:
            yield place
        finally:
            with redis.Redis.from_url(server) as client:
                for key in place.keys(client):
                    client.unlink(key)
    else:
        yield Place(backend, "")
