"""The suite on Postgres, however its saver came to its connections."""

from pathlib import Path

import pytest

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

_OWN = [("url", "asyncio"), ("url", "blocking")]
_WAYS = [
    *_OWN,
    ("partitioned", "asyncio"),
    ("pgbouncer", "asyncio"),
    ("pgbouncer", "blocking"),
    ("sealed", "asyncio"),
    ("pool", "blocking"),
    ("connection", "blocking"),
    ("connection", "asyncio"),
    ("asyncio pool", "asyncio"),
]


@pytest.mark.parametrize(("backend", "api"), _WAYS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_behaviour(case: Case, backend: str, api: str, tmp_path: Path) -> None:
    run_case(case, BACKENDS[backend], api, tmp_path)


@pytest.mark.parametrize(("backend", "api"), _OWN)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_death_at_any_step(operation: str, backend: str, api: str, tmp_path: Path) -> None:
    check_crash(OPERATIONS[operation], BACKENDS[backend], api, tmp_path)


@pytest.mark.parametrize(("backend", "api"), _OWN)
@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_meeting_in_any_order(meeting: Meeting, backend: str, api: str, tmp_path: Path) -> None:
    check_interleavings(meeting, BACKENDS[backend], api, tmp_path)


@pytest.mark.parametrize(("backend", "api"), _OWN)
def test_random_use(backend: str, api: str) -> None:
    check_model(BACKENDS[backend], api, examples=8)
