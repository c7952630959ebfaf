"""How long the suite is: use `THREADMARK_TESTS=all` before a release and after a change to many parts.

`make test` runs each test function, and of the cases of those in `SAMPLED` a share, the same one each time. How it
divides the conformance suite is in suites.py. Then it runs a few tests again in Python only, without the compiled part,
and on the newest Postgres instead of the machine's own (`AGAIN`). The long form leaves out nothing either time.
"""

import os
from collections import defaultdict
from collections.abc import Iterable
from zlib import crc32

from threadmark.runtime import compiled

ALL = os.environ.get("THREADMARK_TESTS") == "all"

ONCE_EACH = not compiled.IN_USE and not ALL
"""Whether this is the second, short run, which checks a behaviour with one API only."""

AGAIN = (
    # The packages as a whole. That each compiled function does what its reference does is shown by speed/, and the
    # serializer's tests try both, in the first run.
    "serde/test_exact.py",
    "speed/test_in_use.py",
    "stored/",
    "test_conformance.py::test_behaviour",
    "test_model.py",
    "test_path_of_a_put.py",
    # The release of the server.
    "postgres/test_functions.py",
    "postgres/test_plans.py",
    "postgres/test_setup.py",
    "postgres/test_thread_plans.py",
    "postgres/test_versions.py",
)
"""The tests of the second run, by the beginnings of their paths below this folder and perhaps `::` with their names."""

SAMPLED = {
    "caching/test_conformance.py::test_behaviour": 2,
    "cli/test_moving_classes.py": 4,
    "core/test_memory_file.py": 3,
    "langgraph_checkpointer/test_imports.py": 3,
    "langgraph_checkpointer/test_moving.py": 2,
    "langgraph_parity/": 3,
    "postgres/test_cancelling.py": 3,
    "postgres/test_conformance.py::test_death": 2,
    "postgres/test_conformance.py::test_meeting": 3,
    "postgres/test_thread_stores.py": 2,
    "races/test_leases.py": 2,
    "redis_backend/test_conformance.py::test_death": 4,
    "redis_backend/test_conformance.py::test_meeting": 3,
    "redis_backend/test_wrong_fields.py": 3,
    "replication/test_beside_puts.py": 2,
    "replication/test_chaos.py": 2,
    "replication/test_conformance.py::test_behaviour": 2,
    "replication/test_conformance.py::test_death": 2,
    "replication/test_conformance.py::test_meeting": 2,
    "replication/test_meetings.py": 6,
    "replication/test_orders.py": 2,
    "replication/test_removed_apart.py": 4,
    "serde/test_bombs.py": 2,
    "signals/": 3,
    "sqlite/test_crafted.py": 2,
    "sqlite/test_damaged_keys.py": 2,
    "sqlite/test_processes.py": 3,
    "sqlite/test_replaced_files.py": 2,
    "sqlite/test_wrong_kinds.py": 3,
    "test_conformance.py::test_death": 2,
    "test_conformance.py::test_meeting": 2,
    "test_incarnations.py": 3,
    "test_resealing.py": 2,
    "test_thread_stores.py": 2,
    "test_views.py": 3,
}
"""Of how many cases of each function one is run, by the beginning of the test's path as in `AGAIN`."""


def times(usual: int, *, at_length: int) -> int:
    """Return how often something is tried."""
    return at_length if ALL else usual


def is_left_out(path: str) -> bool:
    """Return whether nothing is run of the file or folder at this path."""
    return ONCE_EACH and not any(each.startswith(path) or path.startswith(each) for each in AGAIN)


def left_out(names: Iterable[str]) -> set[str]:
    """Return which of these tests are not run."""
    if ALL:
        return set()
    if ONCE_EACH:
        return {name for name in names if not name.startswith(AGAIN)}
    cases = defaultdict(list)
    for name in names:
        cases[name.partition("[")[0]].append(name)
    return {name for function, each in cases.items() for name in _beyond_share(function, each)}


def _beyond_share(function: str, cases: list[str]) -> list[str]:
    """Return the cases of one function that are not of its sample: they are chosen by their names, as if at random."""
    divisor = max((number for path, number in SAMPLED.items() if function.startswith(path)), default=1)
    return sorted(cases, key=lambda name: crc32(name.encode()))[-(-len(cases) // divisor) :]
