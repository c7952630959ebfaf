"""One Chromium for the tests of a process, and the databases that they look at."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from uuid import uuid4

import pytest

import threadmark
from citus.nodes import ALSO, shared_nodes
from page.browser import Browser, browser, served
from page.large import large_saver
from threadmark_langgraph import PostgresSaver

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def window() -> Iterator[Browser]:
    """Return the window of a Chromium."""
    with browser() as found:
        yield found


@pytest.fixture
def page(window: Browser) -> Iterator[Browser]:
    """Return the window as each test expects it, and check afterwards that nothing in it went wrong unseen."""
    window.resize(1440, 900)
    window.prefer("light")
    window.reset()
    yield window
    assert window.complaints() == []


@pytest.fixture(scope="module", params=["sqlite", *ALSO])
def demo(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[threadmark.SaverProtocol]:
    """Return a saver of the demo database."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        example = import_module("demo_database")
        if request.param == "citus":
            url = shared_nodes().database(f"page_{uuid4().hex}")
            with PostgresSaver.from_conn_string(url) as saver:
                example.tell(saver)
        else:
            path = tmp_path_factory.mktemp("demo") / "demo.db"
            example.make(path)
            url = f"sqlite:///{path}"
    finally:
        sys.path.remove(str(EXAMPLES))
    with threadmark.open(url) as opened:
        yield opened


@pytest.fixture(scope="module")
def reading(demo: threadmark.SaverProtocol) -> Iterator[str]:
    """Return the address of a page that only reads."""
    with served(demo) as address:
        yield address


@pytest.fixture(scope="module")
def writing(demo: threadmark.SaverProtocol) -> Iterator[str]:
    """Return the address of a page that may write."""
    with served(demo, write=True) as address:
        yield address


@pytest.fixture(scope="module")
def large() -> Iterator[threadmark.SaverProtocol]:
    """Return a saver of a thread that is longer and larger than anybody reads."""
    with large_saver() as saver:
        yield saver
