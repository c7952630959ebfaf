"""Fixtures of the command's tests: the demo database on each backend, which no test changes."""

import importlib.util
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

import pytest

from citus.nodes import ALSO, shared_nodes
from postgres.cluster import shared
from redis_backend.processes import DURABLE, RedisProcess
from threadmark_langgraph import PostgresSaver, RedisSaver, SqliteSaver

EXAMPLE = Path(__file__).parents[2] / "examples" / "demo_database.py"


@pytest.fixture(autouse=True)
def _settings_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove settings of the person who runs the tests, which the command would read."""
    for name in ("THREADMARK_URL", "THREADMARK_KEYRING", "NO_COLOR", "PAGER", "LESS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def demo() -> ModuleType:
    """The module of the example."""
    specification = importlib.util.spec_from_file_location("demo_database", EXAMPLE)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["demo_database"] = module
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def demo_file(demo: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo database as a file."""
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    with SqliteSaver(path) as saver:
        demo.tell(saver)
    return path


@pytest.fixture(scope="session", params=["sqlite", "postgres", "redis", *ALSO])
def database(request: pytest.FixtureRequest, demo: ModuleType) -> Iterator[str]:
    """The name of the demo database on each backend."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield str(request.getfixturevalue("demo_file"))
        elif request.param == "postgres":
            url = shared().database(f"cli_demo_{uuid.uuid4().hex}")
            with PostgresSaver.from_conn_string(url) as saver:
                saver.setup()
                demo.tell(saver)
            yield url
        elif request.param == "citus":
            url = shared_nodes().database(f"cli_demo_{uuid.uuid4().hex}")
            with PostgresSaver.from_conn_string(url) as saver:
                demo.tell(saver)
            yield url
        else:
            server = stack.enter_context(RedisProcess(DURABLE).start())
            with RedisSaver.from_conn_string(server.url) as redis_saver:
                demo.tell(redis_saver)
            yield server.url
