"""The backends that the LangGraph adapter is tested on; each opens checkpointers on the data of one test."""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psycopg

from postgres.cluster import Cluster
from threadmark_langgraph import Checkpointer, InMemorySaver, PostgresSaver, SqliteSaver


class Backend(NamedTuple):
    """A name, and a function that opens a checkpointer on the database of one test."""

    name: str
    open: Callable[[Path], Checkpointer]
    lasting: bool = True
    """Whether a second checkpointer opened on the same folder finds the first one's checkpoints."""


def _memory(folder: Path) -> Checkpointer:  # noqa: ARG001 - nothing to keep
    return InMemorySaver()


def _sqlite(folder: Path) -> Checkpointer:
    folder.mkdir(exist_ok=True)
    return SqliteSaver(folder / "checkpoints.db", durability="normal")


@functools.cache
def cluster() -> Cluster:
    """A server for all tests, started by the first that needs it and stopped at the end by `conftest.py`."""
    return Cluster()


def stop_cluster() -> None:
    """Stop the server, if it was started."""
    if cluster.cache_info().currsize:
        with cluster():
            cluster.cache_clear()


def _postgres(folder: Path) -> Checkpointer:
    schema = "s" + hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    with psycopg.connect(cluster().url, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    return PostgresSaver(cluster().url, schema=schema)


BACKENDS = [
    Backend("memory", _memory, lasting=False),
    Backend("sqlite", _sqlite),
    Backend("postgres", _postgres),
]
"""A new backend plugs in here, and every test of this API runs on it."""
