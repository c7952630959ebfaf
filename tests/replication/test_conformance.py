"""The suite on pairs of databases."""

from pathlib import Path

import pytest

from replication.backends import BACKENDS
from shares import behaviours, steps, warm
from threadmark_conformance import MEETINGS, OPERATIONS, Case, check_crash, check_interleavings, run_case
from threadmark_conformance.interleaving import Meeting

WHOLE = [("replicated memory", "asyncio"), ("replicated memory", "blocking")]


@pytest.mark.parametrize(("backend", "api"), WHOLE)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_death_at_any_step(operation: str, backend: str, api: str, tmp_path: Path) -> None:
    check_crash(OPERATIONS[operation], BACKENDS[backend], api, tmp_path, **steps(api))


@pytest.mark.parametrize(("backend", "api"), WHOLE)
@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_meeting_in_any_order(meeting: Meeting, backend: str, api: str, tmp_path: Path) -> None:
    check_interleavings(meeting, BACKENDS[backend], api, tmp_path, warm=warm(api))


@pytest.mark.parametrize(
    ("case", "backend", "api"), [b for b in behaviours(WHOLE, {}) if b[0].topic != "outbox"], ids=str
)
def test_behaviour(case: Case, backend: str, api: str, tmp_path: Path) -> None:
    run_case(case, BACKENDS[backend], api, tmp_path)
