"""The suite on Postgres, however its saver came to its connections.

Every case runs once with each API, and the ways to a server divide the cases: each has some eighths of them, and all
cases of the topics in which it may differ. Deaths and meetings, too, are divided between the APIs. THREADMARK_TESTS=all
divides nothing.
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
"""Where operations die and meet, and what is random is done."""
WHOLE: list[Way] = []
SHARES: dict[Way, Share] = {
    ("url", "asyncio"): share("012", "concurrency"),
    ("url", "blocking"): share("37", "concurrency", "leases"),
    ("pool", "blocking"): share("04", "concurrency"),
    ("connection", "blocking"): share("15", "isolation"),
    ("pgbouncer", "blocking"): share("26", "concurrency"),
    ("connection", "asyncio"): share("3", "concurrency"),
    ("pgbouncer", "asyncio"): share("4", "concurrency"),
    ("asyncio pool", "asyncio"): share("5", "isolation"),
    ("partitioned", "asyncio"): share("6", "writing"),
    ("sealed", "asyncio"): share("7", "metadata"),
}
"""What each way runs."""
if ALL:
    WHOLE, SHARES = [*SHARES], {}
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
