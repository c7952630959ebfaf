"""Every scenario gives, on every backend and both faces, what it gives on LangGraph's in-memory saver."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from peer.backends import BACKENDS, Backend
from peer.faces import FACES, Face
from peer.scenarios import conversations, deltas, failures, interrupts, subgraphs, travel

Scenario = Callable[[Face, BaseCheckpointSaver[Any]], Awaitable[Any]]

SCENARIOS: list[Scenario] = [
    *conversations.SCENARIOS,
    *deltas.SCENARIOS,
    *failures.SCENARIOS,
    *interrupts.SCENARIOS,
    *subgraphs.SCENARIOS,
    *travel.SCENARIOS,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("face", FACES, ids=lambda face: face.name)
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_runs_as_on_langgraphs_saver(backend: Backend, face: Face, scenario: Scenario, tmp_path: Path) -> None:
    async def both() -> tuple[Any, Any]:
        with backend.open(tmp_path) as saver:
            return await scenario(face, saver), await scenario(face, InMemorySaver())

    ours, theirs = asyncio.run(both())
    assert ours == theirs
