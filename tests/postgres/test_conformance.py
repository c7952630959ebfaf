"""The suite on Postgres, however its saver came to its connections.

Savers with connections of their own run every case. The other ways differ in how they get at a server, so each runs a
sample: what it may do differently, and every fourth of the other cases, each way another fourth. Deaths and meetings
are divided between the two APIs as in tests/test_conformance.py. THREADMARK_TESTS=all runs everything everywhere.
"""

from pathlib import Path

import pytest

from length import ALL, ONCE_EACH, times
from postgres.backends import BACKENDS
from threadmark_conformance import (
    CASES,
    MEETINGS,
    OPERATIONS,
    Case,
    check_crash,
    check_interleavings,
    check_model,
    run_case,
)
from threadmark_conformance.interleaving import Meeting

OWN = [("url", "asyncio"), ("url", "blocking")]
OTHERS: dict[tuple[str, str], set[str]] = {
    ("partitioned", "asyncio"): {"writing"},
    ("pgbouncer", "asyncio"): {"concurrency"},
    ("pgbouncer", "blocking"): {"concurrency"},
    ("sealed", "asyncio"): {"metadata"},
    ("pool", "blocking"): {"concurrency"},
    ("connection", "blocking"): {"isolation"},
    ("connection", "asyncio"): {"concurrency"},
    ("asyncio pool", "asyncio"): {"isolation"},
}
"""The other ways to the server, and the topics that each runs whole."""
if ONCE_EACH:
    OWN, OTHERS = [], {("url", "asyncio"): {"writing"}}
_FRACTION = 4


def _behaviours() -> list[tuple[Case, str, str]]:
    found = [(case, *way) for way in OWN for case in CASES]
    for offset, (way, topics) in enumerate(OTHERS.items()):
        for number, case in enumerate(CASES):
            if ALL or case.topic in topics or number % _FRACTION == offset % _FRACTION:
                found.append((case, *way))
    return found


@pytest.mark.parametrize(("backend", "api"), OWN)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_death_at_any_step(operation: str, backend: str, api: str, tmp_path: Path) -> None:
    steps = {} if ALL else {"first": int(api == "blocking"), "stride": 2}
    check_crash(OPERATIONS[operation], BACKENDS[backend], api, tmp_path, **steps)


@pytest.mark.parametrize(("backend", "api"), OWN)
def test_random_use(backend: str, api: str) -> None:
    check_model(BACKENDS[backend], api, examples=times(4, at_length=8))


@pytest.mark.parametrize(("backend", "api"), OWN)
@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_meeting_in_any_order(meeting: Meeting, backend: str, api: str, tmp_path: Path) -> None:
    warm = (False, True) if ALL else (api == "blocking",)
    check_interleavings(meeting, BACKENDS[backend], api, tmp_path, warm=warm)


@pytest.mark.parametrize(("case", "backend", "api"), _behaviours(), ids=str)
def test_behaviour(case: Case, backend: str, api: str, tmp_path: Path) -> None:
    run_case(case, BACKENDS[backend], api, tmp_path)
