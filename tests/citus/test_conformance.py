"""The suite on a cluster of Citus: every case with both APIs, deaths and meetings divided between the two."""

import atexit
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from citus.nodes import shared_nodes, skip_without_citus
from suites import CITUS, checks, random_use
from threadmark import Saver
from threadmark_conformance import Opener
from threadmark_postgres import PostgresSaver

skip_without_citus()

_SCHEMA = "suite"
_TABLES = ("thread", "segment", "checkpoint", "head", "write", "outbox", "position", "copied", "replica")


@functools.cache
def _connection() -> psycopg.Connection[Any]:
    """The connection that empties the tables before each case."""
    url = shared_nodes().url
    with PostgresSaver(url, schema=_SCHEMA) as saver:
        saver.setup(distribute="citus")
    connection = psycopg.connect(url, autocommit=True)
    atexit.register(connection.close)
    return connection


@contextmanager
def citus(_: Path) -> Iterator[Opener]:
    """A saver that connects to the coordinator."""
    for table in _TABLES:
        _connection().execute(f"DELETE FROM {_SCHEMA}.threadmark_{table}".encode())

    def open_saver(**options: Any) -> Saver:
        return PostgresSaver(shared_nodes().url, schema=_SCHEMA, pool_size=4, **options)

    yield open_saver


BACKENDS = {"citus": citus}
test_behaviour, test_death_at_any_step, test_meeting_in_any_order = checks(CITUS, BACKENDS)
test_random_use = random_use(CITUS, BACKENDS)
