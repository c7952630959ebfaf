"""These tests use the Postgres server of tests/langgraph_parity."""

from collections.abc import Iterator

import pytest

from langgraph_parity.backends import stop_cluster


@pytest.fixture(scope="session", autouse=True)
def _server() -> Iterator[None]:
    yield
    stop_cluster()
