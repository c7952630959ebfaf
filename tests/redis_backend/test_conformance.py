"""The suite on a single Redis server, on a cluster, and through Sentinels.

Each of the three runs every case, with one API; through Sentinels there is a single server, too. Deaths and
meetings, where programs are what matters, are divided between the APIs as in tests/test_conformance.py. The other ways
and clients that the user made run a sample: every fourth of the cases, each another fourth. THREADMARK_TESTS=all runs
everything everywhere.
"""

from pathlib import Path

import pytest

from length import ALL, ONCE_EACH, times
from redis_backend.backends import BACKENDS
from threadmark_conformance import (
    APIS,
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

WHOLE = [("single", "asyncio"), ("cluster", "asyncio"), ("sentinel", "blocking")]
PROGRAMS = [("single", "asyncio"), ("single", "blocking"), ("cluster", "asyncio")]
"""Where operations die and meet."""
SAMPLES: dict[tuple[str, str], set[str]] = {
    ("single", "blocking"): {"concurrency"},
    ("sealed", "asyncio"): {"metadata"},
    ("client", "blocking"): {"concurrency"},
    ("asyncio client", "asyncio"): {"concurrency"},
    ("cluster", "blocking"): {"isolation"},
    ("sentinel", "asyncio"): {"isolation"},
}
"""The other ways, and the topics that each runs whole."""
if ONCE_EACH:
    WHOLE = PROGRAMS = []
    SAMPLES = {("single", "blocking"): {"writing"}}
_FRACTION = 4
_EVERYWHERE = [(backend, api) for backend in BACKENDS for api in APIS]


def _behaviours() -> list[tuple[Case, str, str]]:
    if ALL:
        return [(case, *way) for way in _EVERYWHERE for case in CASES]
    found = [(case, *way) for way in WHOLE for case in CASES]
    for offset, (way, topics) in enumerate(SAMPLES.items()):
        for number, case in enumerate(CASES):
            if case.topic in topics or number % _FRACTION == offset % _FRACTION:
                found.append((case, *way))
    return found


@pytest.mark.parametrize(("backend", "api"), _EVERYWHERE if ALL else PROGRAMS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_death_at_any_step(operation: str, backend: str, api: str, tmp_path: Path) -> None:
    steps = {} if ALL else {"first": int(api == "blocking"), "stride": 2}
    check_crash(OPERATIONS[operation], BACKENDS[backend], api, tmp_path, **steps)


@pytest.mark.parametrize(("backend", "api"), WHOLE)
def test_random_use(backend: str, api: str) -> None:
    check_model(BACKENDS[backend], api, examples=times(4, at_length=8))


@pytest.mark.parametrize(("backend", "api"), _EVERYWHERE if ALL else PROGRAMS)
@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_meeting_in_any_order(meeting: Meeting, backend: str, api: str, tmp_path: Path) -> None:
    warm = (False, True) if ALL else (api == "blocking",)
    check_interleavings(meeting, BACKENDS[backend], api, tmp_path, warm=warm)


@pytest.mark.parametrize(("case", "backend", "api"), _behaviours(), ids=str)
def test_behaviour(case: Case, backend: str, api: str, tmp_path: Path) -> None:
    run_case(case, BACKENDS[backend], api, tmp_path)
