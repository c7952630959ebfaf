"""The suite on a single Redis server, on a cluster, and through Sentinels.

A single server and Sentinels run every case, with one API. A cluster runs half of them, and all that touch several
threads or slots. The other ways, and clients that the user made, run a share: the cases that may differ, and every
fourth of the other cases. Deaths and
meetings, in which programs matter, are divided between the APIs. THREADMARK_TESTS=all runs everything
everywhere.
"""

from pathlib import Path

import pytest

from length import ALL, times
from redis_backend.backends import BACKENDS
from shares import Share, Way, assert_nothing_is_left_out, behaviours, share, steps, warm
from threadmark_conformance import (
    APIS,
    MEETINGS,
    OPERATIONS,
    Case,
    check_crash,
    check_interleavings,
    check_model,
    run_case,
)
from threadmark_conformance.interleaving import Meeting

WHOLE: list[Way] = [("single", "asyncio"), ("sentinel", "blocking")]
SHARES: dict[Way, Share] = {
    ("single", "blocking"): share(0, "concurrency"),
    ("sealed", "asyncio"): share(1, "metadata"),
    ("client", "blocking"): share(2, "concurrency"),
    ("asyncio client", "asyncio"): share(3, "concurrency"),
    ("cluster", "asyncio"): share(2, "concurrency", "copying", "deleting", "forking", "leases", "retention", "threads"),
    ("cluster", "blocking"): share(0, "isolation"),
    ("sentinel", "asyncio"): share(1, "isolation"),
}
"""The other ways, and the cases of each."""
DYING: list[Way] = [("single", "asyncio"), ("single", "blocking"), ("cluster", "asyncio")]
"""The deaths of operations: at every step on a single server, at every second one on a cluster."""
MEETING: list[Way] = [("single", "blocking"), ("cluster", "asyncio")]
RANDOM: list[Way] = [*WHOLE, ("cluster", "asyncio")]
if ALL:
    EVERYWHERE: list[Way] = [(backend, api) for backend in BACKENDS for api in APIS]
    WHOLE = DYING = MEETING = RANDOM = EVERYWHERE
    SHARES = {}
BEHAVIOURS = behaviours(WHOLE, SHARES)


def test_every_case_runs_with_both_apis() -> None:
    assert_nothing_is_left_out(BEHAVIOURS)


@pytest.mark.parametrize(("backend", "api"), DYING)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_death_at_any_step(operation: str, backend: str, api: str, tmp_path: Path) -> None:
    check_crash(OPERATIONS[operation], BACKENDS[backend], api, tmp_path, **steps(api))


@pytest.mark.parametrize(("backend", "api"), RANDOM)
def test_random_use(backend: str, api: str) -> None:
    check_model(BACKENDS[backend], api, examples=times(4, at_length=8))


@pytest.mark.parametrize(("backend", "api"), MEETING)
@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_meeting_in_any_order(meeting: Meeting, backend: str, api: str, tmp_path: Path) -> None:
    check_interleavings(meeting, BACKENDS[backend], api, tmp_path, warm=warm(api))


@pytest.mark.parametrize(("case", "backend", "api"), BEHAVIOURS, ids=str)
def test_behaviour(case: Case, backend: str, api: str, tmp_path: Path) -> None:
    run_case(case, BACKENDS[backend], api, tmp_path)
