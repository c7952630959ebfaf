"""Every test here runs on every backend, and if it says so on both APIs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from langgraph_parity.apis import APIS, Api
from langgraph_parity.backends import BACKENDS, Backend, stop_cluster
from threadmark_langgraph import Checkpointer


@pytest.fixture(scope="session", autouse=True)
def _server() -> Iterator[None]:
    yield
    stop_cluster()


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each backend in turn."""
    found: Backend = request.param
    return found


@pytest.fixture(params=APIS, ids=lambda api: api.name)
def api(request: pytest.FixtureRequest) -> Api:
    """Each API in turn."""
    found: Api = request.param
    return found


@pytest.fixture
def saver(backend: Backend, tmp_path: Path) -> Iterator[Checkpointer]:
    """A fresh checkpointer, closed in the end."""
    with backend.open(tmp_path) as checkpointer:
        yield checkpointer
