"""Every backend, with both APIs, behaves as the suite says.

Sealed rows in memory differ from others in the rows, not in the API, so one API asks for them. A driver that dies and
operations that meet are half the work for each API: every step is a death under one of them, and savers that remember
the thread meet under one of them. THREADMARK_TESTS=all runs everything everywhere.
"""

from pathlib import Path

import pytest

from backends import BACKENDS
from length import ALL, ONCE_EACH
from shares import behaviours, share, steps, warm
from threadmark_conformance import (
    APIS,
    MEETINGS,
    OPERATIONS,
    Case,
    check_crash,
    check_interleavings,
    run_case,
)
from threadmark_conformance.interleaving import Meeting

EVERYWHERE = [(backend, api) for backend in BACKENDS for api in APIS]
CHOSEN = (
    EVERYWHERE
    if ALL
    else [
        ("memory", "asyncio"),
        ("memory", "blocking"),
        ("memory sealed", "blocking"),
        ("sqlite file", "asyncio"),
        ("sqlite file", "blocking"),
    ]
)
SHARES = {("sqlite memory", "asyncio"): share(0, "concurrency"), ("sqlite memory", "blocking"): share(2, "leases")}
"""A database in memory has the statements of a file, and a separate driver: it runs a share."""
if ALL or ONCE_EACH:
    SHARES = {}
if ONCE_EACH:
    CHOSEN = [("memory", "blocking"), ("memory sealed", "blocking"), ("sqlite file", "asyncio")]


@pytest.mark.parametrize(("backend", "api"), CHOSEN)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_death_at_any_step(operation: str, backend: str, api: str, tmp_path: Path) -> None:
    check_crash(OPERATIONS[operation], BACKENDS[backend], api, tmp_path, **steps(api))


@pytest.mark.parametrize(("backend", "api"), CHOSEN)
@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_meeting_in_any_order(meeting: Meeting, backend: str, api: str, tmp_path: Path) -> None:
    check_interleavings(meeting, BACKENDS[backend], api, tmp_path, warm=warm(api))


@pytest.mark.parametrize(("case", "backend", "api"), behaviours(CHOSEN, SHARES), ids=str)
def test_behaviour(case: Case, backend: str, api: str, tmp_path: Path) -> None:
    run_case(case, BACKENDS[backend], api, tmp_path)
