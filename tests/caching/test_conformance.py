"""The suite on cached savers, whose caches all savers of a database share.

A cache adds the same in every place, so each way runs a share, and all removals. Deaths and meetings are
divided between the APIs. THREADMARK_TESTS=all runs everything everywhere.
"""

from pathlib import Path

import pytest

from caching.backends import BACKENDS
from length import ALL
from shares import Share, Way, behaviours, share, steps, warm
from threadmark_conformance import APIS, MEETINGS, OPERATIONS, Case, check_crash, check_interleavings, run_case
from threadmark_conformance.interleaving import Meeting

WHOLE: list[Way] = []
SHARES: dict[Way, Share] = {
    ("memory", "blocking"): share("26", "concurrency", "deleting", "extracting", "listing", "reading", "removing"),
    ("memory", "asyncio"): share("37", "concurrency"),
    ("memory sealed", "asyncio"): share("1"),
    ("postgres and redis", "asyncio"): share("04", "deleting", "removing"),
}
DYING: list[Way] = [("memory", "blocking")]
MEETING: list[Way] = [("memory", "asyncio")]
if ALL:
    WHOLE = DYING = MEETING = [(backend, api) for backend in BACKENDS for api in APIS]
    SHARES = {}


@pytest.mark.parametrize(("case", "backend", "api"), behaviours(WHOLE, SHARES), ids=str)
def test_behaviour(case: Case, backend: str, api: str, tmp_path: Path) -> None:
    run_case(case, BACKENDS[backend], api, tmp_path)


@pytest.mark.parametrize(("backend", "api"), DYING)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_death_at_any_step(operation: str, backend: str, api: str, tmp_path: Path) -> None:
    check_crash(OPERATIONS[operation], BACKENDS[backend], api, tmp_path, **steps(api))


@pytest.mark.parametrize(("backend", "api"), MEETING)
@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_meeting_in_any_order(meeting: Meeting, backend: str, api: str, tmp_path: Path) -> None:
    check_interleavings(meeting, BACKENDS[backend], api, tmp_path, warm=warm(api))
