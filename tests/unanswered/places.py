"""Servers behind a proxy that loses answers: Postgres, Postgres behind PgBouncer, and Redis."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from postgres import cluster
from postgres.bouncer import bouncer_before, shared_bouncer
from postgres.cluster import PostgresServer
from redis_backend import processes
from threadmark import Saver
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisSaver
from threadmark_store import Store
from unanswered.cutter import Cutter
from unanswered.losing import World
from unanswered.operations import OPERATIONS

_numbers = itertools.count()

PLACES = ("postgres", "postgres, pgbouncer", "postgres, behind pgbouncer", "redis")
"""In the third one the connections of PgBouncer to its server end, in all others those of the saver."""


def operations(place: str) -> list[str]:
    """The operations that this backend has."""
    backend = place.split(",", maxsplit=1)[0]
    return [name for name, operation in OPERATIONS.items() if backend in operation.backends]


@contextmanager
def world_at(place: str, api: Callable[[Any], Any]) -> Iterator[World]:
    """A server with its tables, and a proxy."""
    with ExitStack() as closing:
        if place == "redis":
            port = processes.shared().port
            closing.callback(processes.shared().command, "FLUSHALL")
            cutter = closing.enter_context(Cutter(port))
            saver, observer = (closing.enter_context(_redis(each)) for each in (cutter.port, port))
        else:
            server, name = cluster.shared(), f"lost_{next(_numbers)}"
            server.database(name)
            closing.callback(server.execute, f"DROP DATABASE {name} WITH (FORCE)")
            inner = closing.enter_context(Cutter(server.port))
            outer = server.port if place == "postgres" else shared_bouncer().port
            if place == "postgres, behind pgbouncer":
                cutter, client = inner, closing.enter_context(bouncer_before(PostgresServer(inner.port))).port
            else:
                cutter = closing.enter_context(Cutter(outer))
                client = cutter.port
            saver, observer = (closing.enter_context(_postgres(each, name)) for each in (client, server.port))
        saver.setup()
        Store(saver).setup()
        yield World(cutter, saver, observer, api)


def _postgres(port: int, name: str) -> Saver:
    return PostgresSaver(f"postgresql://postgres@127.0.0.1:{port}/{name}?sslmode=disable")


def _redis(port: int) -> Saver:
    return RedisSaver(f"redis://127.0.0.1:{port}", prefix="lost:", durability="memory")
