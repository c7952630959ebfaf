"""The suite on a cluster of Citus: every case with both APIs, deaths and meetings divided between the two."""

import atexit
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from citus.nodes import shared_nodes, skip_without_citus
from length import times
from shares import steps, warm
from threadmark import Saver
from threadmark_conformance import (
    APIS,
    CASES,
    MEETINGS,
    OPERATIONS,
    Case,
    Opener,
    check_crash,
    check_interleavings,
    check_model,
    run_case,
)
from threadmark_conformance.interleaving import Meeting
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


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_behaviour(case: Case, api: str, tmp_path: Path) -> None:
    run_case(case, citus, api, tmp_path)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_death_at_any_step(operation: str, api: str, tmp_path: Path) -> None:
    check_crash(OPERATIONS[operation], citus, api, tmp_path, **steps(api))


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_meeting_in_any_order(meeting: Meeting, api: str, tmp_path: Path) -> None:
    check_interleavings(meeting, citus, api, tmp_path, warm=warm(api))


@pytest.mark.parametrize("api", APIS)
def test_random_use(api: str) -> None:
    check_model(citus, api, examples=times(4, at_length=8))
