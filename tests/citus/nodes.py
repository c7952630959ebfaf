"""A cluster of Citus: a coordinator and two workers, each a server with its files."""

import atexit
import functools
import os
import subprocess
from pathlib import Path
from typing import Self

import psycopg
import pytest

from postgres.cluster import server_binaries
from replication.servers import PostgresPlace
from threadmark_postgres import PostgresSaver

HOST = "127.0.0.1"
ALSO = ["citus"] if os.environ.get("THREADMARK_CITUS") else []
"""The objects that other modules have next to their databases under `make test-citus`."""

SETTINGS = {
    "shared_preload_libraries": "citus",
    "wal_level": "logical",
    "citus.node_conninfo": "sslmode=disable",
    "default_transaction_isolation": "read committed",
}


class Nodes:
    """The servers of a cluster, two workers unless there are to be others; `durable` leaves fsync on."""

    def __init__(self, *, durable: bool = False, workers: int = 2, shards: int = 4) -> None:
        self._durable = durable
        self._shards = shards
        self.coordinator = self._new()
        self.workers: list[PostgresPlace] = []
        self.url = self.coordinator.url
        self._coordinate(self.url)
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> PostgresPlace:
        """Start another worker."""
        worker = self._new()
        self.workers.append(worker)
        self.execute(f"SELECT citus_add_node('{HOST}', {worker.port})")
        return worker

    def database(self, name: str) -> str:
        """Make another database on all nodes, with distributed tables, and return its URL."""
        url = self.coordinator.database(name)
        for node in (self.coordinator, *self.workers):
            made = url if node is self.coordinator else node.database(name)
            with psycopg.connect(made, autocommit=True) as connection:
                connection.execute("CREATE EXTENSION citus")
        self._coordinate(url)
        with psycopg.connect(url, autocommit=True) as connection:
            for worker in self.workers:
                connection.execute(f"SELECT citus_add_node('{HOST}', {worker.port})".encode())
        with PostgresSaver(url) as saver:
            saver.setup(distribute="citus")
        return url

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Execute a statement on the coordinator."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for node in (self.coordinator, *self.workers):
            node.__exit__()

    def _coordinate(self, url: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"SELECT citus_set_coordinator_host('{HOST}', {self.coordinator.port})".encode())

    def _new(self) -> PostgresPlace:
        node = PostgresPlace(durable=self._durable, settings={**SETTINGS, "citus.shard_count": str(self._shards)})
        node.execute("CREATE EXTENSION citus")
        return node


@functools.cache
def shared_nodes() -> Nodes:
    """The one cluster of a run of tests that need no separate one; it ends with the process."""
    nodes = Nodes()
    atexit.register(nodes.__exit__)
    return nodes


def skip_without_citus() -> None:
    """Skip the module if Citus is not installed with the server."""
    found = subprocess.run([server_binaries() / "pg_config", "--sharedir"], capture_output=True, text=True, check=True)
    control = Path(found.stdout.strip()) / "extension" / "citus.control"
    if not control.exists():
        pytest.skip(f"Citus is not installed: there is no {control}. See docs/how-to/citus.md", allow_module_level=True)
