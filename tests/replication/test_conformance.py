"""The suite on pairs of databases.

A pair adds the same to all databases, so all of it runs in memory, with one API. Pairs of SQLite
files, and of Postgres and Redis, run the removals, and a share of the rest. THREADMARK_TESTS=all runs everything
everywhere.

Left out are the cases about a backend's replication data: those of a pair are its databases' own.
"""

from pathlib import Path

import pytest

from length import ALL
from replication.backends import BACKENDS
from shares import Share, Way, behaviours, share, steps, warm
from threadmark_conformance import (
    APIS,
    MEETINGS,
    OPERATIONS,
    WITHOUT_REPLICATION,
    Case,
    check_crash,
    check_interleavings,
    run_case,
)
from threadmark_conformance.interleaving import Meeting

WHOLE: list[Way] = [("replicated memory", "asyncio")]
SHARES: dict[Way, Share] = {
    ("replicated memory", "blocking"): share("0", "deleting", "leases"),
    ("replicated memory async", "asyncio"): share("2", "removing"),
    ("replicated sqlite", "blocking"): share("46", "concurrency", "deleting", "removing"),
    ("replicated sqlite async", "asyncio"): share("5"),
    ("replicated postgres redis", "asyncio"): share("17", "deleting", "removing"),
}
MEETING: list[Way] = [("replicated memory", "blocking")]
if ALL:
    WHOLE = MEETING = [(backend, api) for backend in BACKENDS for api in APIS]
    SHARES = {}
BEHAVIOURS = [each for each in behaviours(WHOLE, SHARES) if each[0] in WITHOUT_REPLICATION]


@pytest.mark.parametrize(("backend", "api"), WHOLE)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_death_at_any_step(operation: str, backend: str, api: str, tmp_path: Path) -> None:
    check_crash(OPERATIONS[operation], BACKENDS[backend], api, tmp_path, **steps(api))


@pytest.mark.parametrize(("backend", "api"), MEETING)
@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_meeting_in_any_order(meeting: Meeting, backend: str, api: str, tmp_path: Path) -> None:
    check_interleavings(meeting, BACKENDS[backend], api, tmp_path, warm=warm(api))


@pytest.mark.parametrize(("case", "backend", "api"), BEHAVIOURS, ids=str)
def test_behaviour(case: Case, backend: str, api: str, tmp_path: Path) -> None:
    run_case(case, BACKENDS[backend], api, tmp_path)
