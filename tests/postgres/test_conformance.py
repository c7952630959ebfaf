"""The suite on Postgres, with every way to open connections.

A saver with its own connections runs every case with asyncio. The other ways differ in how they get at a server, so
each runs a share of the cases: those that may differ, and every fourth of the others, so that the four that block
run them all, too. Deaths and meetings are divided between the two APIs. THREADMARK_TESTS=all divides nothing.
"""

from pathlib import Path

import pytest

from length import ALL, times
from postgres.backends import BACKENDS
from shares import Share, Way, assert_nothing_is_left_out, behaviours, share, steps, warm
from threadmark_conformance import (
    MEETINGS,
    OPERATIONS,
    Case,
    check_crash,
    check_interleavings,
    check_model,
    run_case,
)
from threadmark_conformance.interleaving import Meeting

OWN: list[Way] = [("url", "asyncio"), ("url", "blocking")]
"""The place of deaths, meetings and random cases."""
WHOLE: list[Way] = [("url", "asyncio")]
SHARES: dict[Way, Share] = {
    ("url", "blocking"): share(3, "concurrency", "leases"),
    ("pool", "blocking"): share(0, "concurrency"),
    ("connection", "blocking"): share(1, "isolation"),
    ("pgbouncer", "blocking"): share(2, "concurrency"),
    ("pgbouncer", "asyncio"): share(1, "concurrency"),
    ("connection", "asyncio"): share(2, "concurrency"),
    ("asyncio pool", "asyncio"): share(3, "isolation"),
    ("partitioned", "asyncio"): share(0, "writing"),
    ("sealed", "asyncio"): share(3, "metadata"),
}
"""The other ways to the server, and the cases of each."""
if ALL:
    WHOLE, SHARES = [*WHOLE, *SHARES], {}
BEHAVIOURS = behaviours(WHOLE, SHARES)


def test_every_case_runs_with_both_apis() -> None:
    assert_nothing_is_left_out(BEHAVIOURS)


@pytest.mark.parametrize(("backend", "api"), OWN)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_death_at_any_step(operation: str, backend: str, api: str, tmp_path: Path) -> None:
    check_crash(OPERATIONS[operation], BACKENDS[backend], api, tmp_path, **steps(api))


@pytest.mark.parametrize(("backend", "api"), OWN)
def test_random_use(backend: str, api: str) -> None:
    check_model(BACKENDS[backend], api, examples=times(4, at_length=8))


@pytest.mark.parametrize(("backend", "api"), OWN)
@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_meeting_in_any_order(meeting: Meeting, backend: str, api: str, tmp_path: Path) -> None:
    check_interleavings(meeting, BACKENDS[backend], api, tmp_path, warm=warm(api))


@pytest.mark.parametrize(("case", "backend", "api"), BEHAVIOURS, ids=str)
def test_behaviour(case: Case, backend: str, api: str, tmp_path: Path) -> None:
    run_case(case, BACKENDS[backend], api, tmp_path)
