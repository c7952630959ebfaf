"""How long the suite is: use `THREADMARK_TESTS=all` before a release and after a change to many parts.

`make test` runs each test function, and of the cases of those in `SAMPLED` a share, the same one each time. How it
divides the conformance suite is in suites.py; README.md lists the cases that are left out. Then it runs a few tests
again in Python only, without the compiled part, and on the newest Postgres instead of the machine's own (`AGAIN`). The
long form leaves out nothing either time.
"""

import functools
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
    "caching/test_conformance.py::test_behaviour": 4,
    "caching/test_conformance.py::test_meeting": 2,
    "cli/test_moving_classes.py": 8,
    "core/test_memory_file.py": 6,
    "langgraph_checkpointer/test_imports.py": 6,
    "langgraph_checkpointer/test_moving.py": 4,
    "langgraph_parity/": 4,
    "postgres/test_cancelling.py": 6,
    "postgres/test_conformance.py::test_death": 3,
    "postgres/test_conformance.py::test_meeting": 6,
    "postgres/test_thread_stores.py": 2,
    "races/test_leases.py": 2,
    "redis_backend/test_conformance.py::test_death": 6,
    "redis_backend/test_conformance.py::test_meeting": 6,
    "redis_backend/test_wrong_fields.py": 12,
    "releases/test_refusals.py::test_what_a_pair": 3,
    "releases/test_side_by_side.py": 3,
    "replication/test_bare_savers.py": 2,
    "replication/test_beside_puts.py": 4,
    "replication/test_chaos.py": 2,
    "replication/test_conformance.py::test_behaviour": 4,
    "replication/test_conformance.py::test_death": 4,
    "replication/test_conformance.py::test_meeting": 4,
    "replication/test_meetings.py": 24,
    "replication/test_removed_apart.py": 8,
    "serde/test_bombs.py": 4,
    "signals/": 6,
    "simulator/test_planted_faults.py": 3,
    "sqlite/test_crafted.py": 4,
    "sqlite/test_damage.py": 2,
    "sqlite/test_damaged_keys.py": 2,
    "sqlite/test_processes.py": 3,
    "sqlite/test_replaced_files.py": 2,
    "sqlite/test_wrong_kinds.py": 6,
    "store/test_cache.py::test_behaviour[redis cluster]": 4,
    "store/test_cache.py::test_behaviour_with_a_keyring": 2,
    "store/test_conformance.py::test_a_case_of_any_store[memory sealed]": 4,
    "store/test_conformance.py::test_a_case_of_any_store[redis cluster]": 4,
    "store/test_conformance.py::test_a_case_of_any_store[sqlite memory]": 4,
    "store/test_conformance.py::test_a_case_of_our_stores[memory sealed]": 4,
    "store/test_conformance.py::test_a_case_of_our_stores[redis cluster]": 4,
    "store/test_conformance.py::test_a_case_of_our_stores[sqlite memory]": 4,
    "test_conformance.py::test_behaviour[memory sealed]": 4,
    "test_conformance.py::test_death": 4,
    "test_conformance.py::test_meeting": 4,
    "test_incarnations.py": 3,
    "test_packages.py::test_a_package_works_alone": 3,
    "test_resealing.py": 3,
    "test_thread_stores.py": 4,
    "test_views.py": 3,
}
"""One of this many cases of each function is run, by the beginning of the test's path as in `AGAIN`. With a name in
brackets, this holds for the cases with this parameter.
"""


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
    found, shares = set(), defaultdict(list)
    for name in names:
        if ONCE_EACH and not name.startswith(AGAIN):
            found.add(name)
        else:
            shares[_share(name)].append(name)
    return found.union(*(_beyond_share(divisor, each) for (_, divisor), each in shares.items()))


def _share(name: str) -> tuple[str, int]:
    """Return the cases among which this one is chosen, and one of how many runs."""
    function, _, parameters = name.partition("[")
    among, divisor = function, _divisor(function)
    for parameter in parameters.removesuffix("]").split("-"):
        if (own := SAMPLED.get(f"{function}[{parameter}]", 1)) > divisor:
            among, divisor = f"{function}[{parameter}]", own
    return among, divisor


@functools.cache
def _divisor(function: str) -> int:
    return max((number for path, number in SAMPLED.items() if function.startswith(path)), default=1)


def _beyond_share(divisor: int, cases: list[str]) -> list[str]:
    """Return the cases that are not of the sample: they are chosen by their names, as if at random."""
    return sorted(cases, key=lambda name: crc32(name.encode()))[-(-len(cases) // divisor) :]
