"""What every test module needs before it is imported."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from length import AGAIN, NOT_AGAIN, ONCE_EACH

FOLDER = Path(__file__).parent

# No package index has Citus, so its tests have a command of their own, `make test-citus`.
collect_ignore = [] if os.environ.get("THREADMARK_CITUS") else ["citus"]

# The suite is a package, so that pytest would not explain its asserts by itself.
pytest.register_assert_rewrite("threadmark_conformance")

# A busy machine is no failure, and a failure is one on every machine.
settings.register_profile("threadmark", deadline=None, derandomize=True)
settings.load_profile("threadmark")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, when the suite runs a second time in Python only, what has nothing to do with values."""
    if not ONCE_EACH:
        return
    left_out = {
        item for item in items if _name(item).startswith(tuple(NOT_AGAIN)) and not _name(item).startswith(AGAIN)
    }
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _name(item: pytest.Item) -> str:
    return f"{item.path.relative_to(FOLDER).as_posix()}::{item.name}"
