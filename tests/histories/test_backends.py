"""On every backend, the calls of threads and of tasks of another process have an order that explains each answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from histories.checker import IN_STEPS, Verdict, by_thread, verdict
from histories.parties import Round, play_round
from histories.savers import OURS, Place
from postgres.cluster import shared as postgres_server
from redis_backend.processes import FORGETFUL, RedisProcess

SECONDS = 0.8


@contextmanager
def _memory(_: Path) -> Iterator[str]:
    yield "memory:"


@contextmanager
def _sqlite(folder: Path) -> Iterator[str]:
    yield f"sqlite:///{folder / 'threads.db'}"


@contextmanager
def _postgres(_: Path) -> Iterator[str]:
    yield postgres_server().database(f"histories_{uuid4().hex}")


@contextmanager
def _redis(_: Path) -> Iterator[str]:
    with RedisProcess(FORGETFUL).start() as server:
        yield f"{server.url}?durability=memory"


BACKENDS = {"memory": _memory, "sqlite": _sqlite, "postgres": _postgres, "redis": _redis}


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_thread_has_an_order(backend: str, tmp_path: Path) -> None:
    """The journals of all clients are searched for an order in which every call gets its answer."""
    with BACKENDS[backend](tmp_path) as url:
        calls = play_round(Place(OURS, backend, url), Round(SECONDS, "suite"))
    for thread, each in by_thread(calls).items():
        of_one_moment = [call for call in each if call.did not in IN_STEPS.get(backend, ())]
        assert verdict(of_one_moment, refuses=True) == Verdict(), thread
    assert {each.did for each in calls if not each.error} > {"put", "writes", "newest", "get", "list"}
    assert not [each for each in calls if each.error and not each.refused]
