"""The suite on cached savers, whose caches all savers of a database share.

In memory every case runs, with one API each way; on Postgres and Redis a share, which together are all cases.
"""

from pathlib import Path

import pytest

from caching.backends import BACKENDS
from length import ALL
from shares import Way, assert_nothing_is_left_out, behaviours, share, steps, warm
from threadmark_conformance import APIS, MEETINGS, OPERATIONS, Case, check_crash, check_interleavings, run_case
from threadmark_conformance.interleaving import Meeting

IN_MEMORY: list[Way] = [("memory", "asyncio"), ("memory", "blocking")]
SHARES = {
    ("memory sealed", "blocking"): share(1, "sealing"),
    ("postgres and redis", "asyncio"): share(0, "deleting", "isolation"),
    ("postgres and redis", "blocking"): share(2, "concurrency", "surviving"),
}
WHOLE = IN_MEMORY
if ALL:
    WHOLE = [(backend, api) for backend in BACKENDS for api in APIS]
    SHARES = {}
BEHAVIOURS = behaviours(WHOLE, SHARES)


def test_every_case_runs_with_both_apis() -> None:
    assert_nothing_is_left_out(BEHAVIOURS)


@pytest.mark.parametrize(("case", "backend", "api"), BEHAVIOURS, ids=str)
def test_behaviour(case: Case, backend: str, api: str, tmp_path: Path) -> None:
    run_case(case, BACKENDS[backend], api, tmp_path)


@pytest.mark.parametrize(("backend", "api"), IN_MEMORY)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_death_at_any_step(operation: str, backend: str, api: str, tmp_path: Path) -> None:
    check_crash(OPERATIONS[operation], BACKENDS[backend], api, tmp_path, **steps(api))


@pytest.mark.parametrize(("backend", "api"), IN_MEMORY)
@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_meeting_in_any_order(meeting: Meeting, backend: str, api: str, tmp_path: Path) -> None:
    check_interleavings(meeting, BACKENDS[backend], api, tmp_path, warm=warm(api))
