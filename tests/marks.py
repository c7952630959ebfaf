"""Which marker each test has: the servers that it needs, and whether it is slow. conftest.py applies them.

No test is marked by hand. A test has a marker by its path (`PATHS`), by a fixture that it uses (`FIXTURES`), or by the
name of a backend among its parameters (`WORDS`); `SLOW` lists the slow ones. A test that starts a server without the
marker for it fails (`require`), so that `make test-fast` never starts one.
"""

import re
from collections.abc import Iterable
from itertools import combinations

from _pytest.mark.expression import Expression

MARKERS = {
    "postgres": "needs a Postgres server",
    "redis": "needs a Redis server",
    "browser": "needs Chromium and chromedriver",
    "slow": "is left out of `make test-fast`",
}

SERVERS = frozenset(MARKERS) - {"slow"}

PATHS = {
    "citus/": {"postgres"},
    "page/test_browser_": {"browser"},
    "postgres/": {"postgres"},
    "redis_backend/": {"redis"},
}
"""The markers of every test whose name begins so: its path below this folder, perhaps `::` and its own name."""

FIXTURES = {
    "window": {"browser"},
}
"""The markers of every test that uses the fixture."""

WORDS = {
    "postgres": {"postgres"},
    "redis": {"redis"},
}
"""The markers of every test that has the word in the brackets behind its name."""

SLOW: tuple[str, ...] = ()
"""Tests that are slow, named as in `PATHS`."""

_running: set[str] | None = None
"""The markers of the test that runs, if one does."""


def markers(name: str, fixtures: Iterable[str]) -> set[str]:
    """Return the markers of a test. `name` is its path below this folder, `::`, and its own name."""
    _, _, parameters = name.partition("[")
    words = re.findall(r"[a-z]+", parameters.lower())
    found = of_path(name)
    for table, keys in ((FIXTURES, fixtures), (WORDS, words)):
        for key in keys:
            found |= table.get(key, set())
    return found


def of_path(name: str) -> set[str]:
    """Return the markers of everything whose name begins so."""
    found = {marker for path, each in PATHS.items() if name.startswith(path) for marker in each}
    return found | ({"slow"} if name.startswith(SLOW) else set())


def is_left_out(path: str, expression: str) -> bool:
    """Return whether `-m expression` selects none of the tests of a file or folder, whatever else they are marked."""
    certain, select = of_path(path), Expression.compile(expression)
    others = sorted(MARKERS.keys() - certain)
    subsets = (certain.union(more) for size in range(len(others) + 1) for more in combinations(others, size))
    return not any(select.evaluate(lambda marker, found=found, **_: marker in found) for found in subsets)


def running(found: set[str] | None) -> None:
    """Note the markers of the test that runs now, None after it."""
    global _running  # noqa: PLW0603 - a process runs one test at a time
    _running = found


def require(marker: str) -> None:
    """Fail if a test runs that starts this server and does not have the marker."""
    assert _running is None or marker in _running, f"a test that needs {marker} is not marked so: see tests/marks.py"
