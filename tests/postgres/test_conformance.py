"""The suite on Postgres, however its saver came to its connections."""

from pathlib import Path

import pytest

from postgres.backends import ASYNCIO_ONLY, BOTH_FACES
from threadmark.conformance import (
    CASES,
    FACES,
    MEETINGS,
    OPERATIONS,
    Case,
    check_crash,
    check_interleavings,
    check_model,
    run_case,
)
from threadmark.conformance.interleaving import Meeting

_BACKENDS = BOTH_FACES | ASYNCIO_ONLY
_WAYS = [(backend, face) for backend in _BACKENDS for face in FACES if backend in BOTH_FACES or face == "asyncio"]
_OWN_CONNECTIONS = [("url", face) for face in FACES]


@pytest.mark.parametrize(("backend", "face"), _WAYS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_behaviour(case: Case, backend: str, face: str, tmp_path: Path) -> None:
    run_case(case, _BACKENDS[backend], face, tmp_path)


@pytest.mark.parametrize(("backend", "face"), _WAYS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_death_at_any_step(operation: str, backend: str, face: str, tmp_path: Path) -> None:
    check_crash(OPERATIONS[operation], _BACKENDS[backend], face, tmp_path)


@pytest.mark.parametrize(("backend", "face"), _OWN_CONNECTIONS)
@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_meeting_in_any_order(meeting: Meeting, backend: str, face: str, tmp_path: Path) -> None:
    check_interleavings(meeting, _BACKENDS[backend], face, tmp_path)


@pytest.mark.parametrize(("backend", "face"), _OWN_CONNECTIONS)
def test_random_use(backend: str, face: str) -> None:
    check_model(_BACKENDS[backend], face, examples=8)
