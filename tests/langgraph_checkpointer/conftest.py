"""The Postgres server of these tests is the one of the peer tests."""

from collections.abc import Iterator

import pytest

from langgraph_parity.backends import stop_cluster


@pytest.fixture(scope="session", autouse=True)
def _server() -> Iterator[None]:
    yield
    stop_cluster()
