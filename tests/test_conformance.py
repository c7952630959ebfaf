"""Every backend, with both APIs, behaves as the suite says."""

from pathlib import Path

import pytest

from backends import BACKENDS
from threadmark_conformance import (
    APIS,
    CASES,
    MEETINGS,
    OPERATIONS,
    Case,
    check_crash,
    check_interleavings,
    run_case,
)
from threadmark_conformance.interleaving import Meeting

pytestmark = [pytest.mark.parametrize("backend", BACKENDS), pytest.mark.parametrize("api", APIS)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_behaviour(case: Case, backend: str, api: str, tmp_path: Path) -> None:
    run_case(case, BACKENDS[backend], api, tmp_path)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_death_at_any_step(operation: str, backend: str, api: str, tmp_path: Path) -> None:
    check_crash(OPERATIONS[operation], BACKENDS[backend], api, tmp_path)


@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_meeting_in_any_order(meeting: Meeting, backend: str, api: str, tmp_path: Path) -> None:
    check_interleavings(meeting, BACKENDS[backend], api, tmp_path)
