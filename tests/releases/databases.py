"""Databases that two releases use, and processes of the next release."""

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from length import times
from postgres.cluster import shared
from redis_backend.places import PLACES
from redis_backend.processes import FORGETFUL, RedisProcess
from releases.worker import at, opened
from threadmark import Saver

READ_AGAIN = times(1, at_length=10)
"""Seconds after which a process on Redis looks at the format."""

ON_ITS_OWN = """
import sys
from releases import next_release
from releases.worker import opened

backend, url, read_again, action, least_reader = sys.argv[1:]
next_release.install(backend, least_reader=int(least_reader))
if backend == "redis":
    from threadmark_redis import formats

    formats.READ_AGAIN, formats._MARGIN = float(read_again), 2.0
with opened(backend, url) as saver:
    if action == "upgrade":
        print(*saver.upgrade())
    else:
        saver.setup()
"""


class Database:
    """A database of one backend, and the additions of format 2."""

    def __init__(self, backend: str, url: str, server: Any = None) -> None:
        self.backend, self.url, self._server = backend, url, server

    def opened(self) -> Saver:
        """A saver of this release."""
        return opened(self.backend, self.url)

    def for_reading(self) -> Saver:
        """One that stores nothing, which every saver on Redis may be."""
        if self.backend == "sqlite":
            return opened("sqlite", f"sqlite:///{self.url}?mode=ro")
        return opened(self.backend, self.url, **({"read_only": True} if self.backend == "postgres" else {}))

    def written_by(self, release: str) -> set[str]:
        """The ids of all checkpoints that processes of a release have put, as far as they are there."""
        with self.for_reading() as saver:
            every = [found for thread in saver.list_threads(limit=100).threads for found in saver.list(at(thread.id))]
            return {found.checkpoint["id"] for found in every if found.metadata["by"].startswith(release)}

    def added(self) -> tuple[int, int]:
        """How many checkpoints have the new column, and how many notes there are."""
        if self.backend == "sqlite":
            with closing(sqlite3.connect(self.url)) as connection:
                (found,) = connection.execute(
                    "SELECT (SELECT count(made_up) FROM threadmark_checkpoint), (SELECT count(*) FROM threadmark_note)"
                )
        elif self.backend == "postgres":
            with psycopg.connect(self.url) as reader:
                (found,) = reader.execute(
                    "SELECT (SELECT count(made_up) FROM threadmark_checkpoint), (SELECT count(*) FROM threadmark_note)"
                )
        else:
            fields = [
                pair
                for key in self._server.client.scan_iter("threadmark:{*}c", _type="hash")
                for pair in self._server.client.hgetall(key).items()
            ]
            columns = [field for field, value in fields if field[:1] != b"\xff" and value[:1] == b"\x97"]
            found = len(columns), len([field for field, _ in fields if field.startswith(b"\xff\x01note")])
        return found[0], found[1]


BACKENDS = ("sqlite", "postgres", "redis")

SEVERAL_SERVERS = ("redis cluster", "redis sentinel")
"""Those of Redis that other tests use, too, under a prefix of their own."""


@contextmanager
def made(backend: str, folder: Path) -> Iterator[Database]:
    """An empty database of format 1."""
    if backend == "sqlite":
        found = Database("sqlite", str(folder / "agents.db"))
        with found.opened() as saver:
            saver.setup()
        yield found
    elif backend == "postgres":
        name = f"releases_{os.getpid()}_{time.monotonic_ns()}"
        found = Database("postgres", shared().database(name))
        with found.opened() as saver:
            saver.setup()
        yield found
        shared().execute(f"DROP DATABASE {name} WITH (FORCE)")
    elif backend == "redis":
        with RedisProcess(FORGETFUL).start() as server:
            yield Database("redis", server.url, server)
    else:
        url = PLACES[backend.removeprefix("redis ")]()
        yield Database("redis", f"{url}?prefix=releases_{time.monotonic_ns()}")


def python(*arguments: object) -> subprocess.Popen[str]:
    """A process of Python with these arguments, which finds the same modules as this one."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def on_its_own(database: Database, action: str, least_reader: int = 1) -> str:
    """The output of a process of the next release."""
    process = python("-c", ON_ITS_OWN, database.backend, database.url, READ_AGAIN, action, least_reader)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip()
