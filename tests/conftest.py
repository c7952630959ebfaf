"""What every test module needs before it is imported."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import length
import marks
import scratch

FOLDER = Path(__file__).parent

scratch.use_memory()

# No package index has Citus, so its tests have a command of their own, `make test-citus`.
collect_ignore = [] if os.environ.get("THREADMARK_CITUS") else ["citus"]

# The suite is a package, so that pytest would not explain its asserts by itself.
pytest.register_assert_rewrite("threadmark_conformance")

# A busy machine is no failure, and a failure is one on every machine.
settings.register_profile("threadmark", deadline=None, derandomize=True)
settings.load_profile("threadmark")


_MARKERS = pytest.StashKey[set[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers, and have Ctrl-C work in tests whose processes were started in the background.

    A shell without job control starts what ends with `&` with SIGINT ignored, and a child process inherits that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, meaning in marks.MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file of which nothing is to run: half the time of a quick run would be imports."""
    if not collection_path.is_relative_to(FOLDER):
        return None
    name = collection_path.relative_to(FOLDER).as_posix() + ("/" if collection_path.is_dir() else "")
    if length.is_left_out(name):
        return True
    expression = config.option.markexpr
    return (marks.is_left_out(name, expression) or None) if expression else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Keep the garbage collector off the modules and tests: looking at a million objects takes it a second each time.

    They stay to the end anyway. The collector is at work again before the first test, and looks at what tests make.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest selects by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that this length of the suite does without (length.py), and mark the others."""
    named = [(item, _name(item)) for item in items]
    left_out = length.left_out(name for _, name in named)
    config.hook.pytest_deselected(items=[item for item, name in named if name in left_out])
    items.clear()
    for item, name in named:
        if name in left_out:
            continue
        found = marks.markers(name, getattr(item, "fixturenames", ()))
        item.stash[_MARKERS] = found
        for marker in found:
            item.add_marker(marker)
        if (why := marks.unsuited(name, sys.platform)) is not None:
            item.add_marker(pytest.mark.skip(reason=f"{sys.platform}: {why}"))
        items.append(item)
    if "PYTEST_XDIST_WORKER" in os.environ:  # a slow test at the end would keep one process at work alone
        items.sort(key=lambda item: "slow" not in item.stash[_MARKERS])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """If tests were chosen by markers, note which servers this one may start (marks.py)."""
    marks.running(item.stash[_MARKERS] if item.config.option.markexpr else None)
    try:
        return (yield)
    finally:
        marks.running(None)


def _name(item: pytest.Item) -> str:
    return f"{item.path.relative_to(FOLDER).as_posix()}::{item.name}"
