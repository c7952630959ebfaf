"""Every scenario gives, on every backend and both faces, what it gives on LangGraph's in-memory saver."""

import asyncio

import pytest

from peer.expected import Scenario, expected
from peer.faces import Face
from peer.scenarios import conversations, deltas, failures, interrupts, subgraphs, travel
from threadmark_langgraph import Checkpointer

SCENARIOS: list[Scenario] = [
    *conversations.SCENARIOS,
    *deltas.SCENARIOS,
    *failures.SCENARIOS,
    *interrupts.SCENARIOS,
    *subgraphs.SCENARIOS,
    *travel.SCENARIOS,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_runs_as_on_langgraphs_saver(face: Face, saver: Checkpointer, scenario: Scenario) -> None:
    assert asyncio.run(scenario(face, saver)) == expected(scenario, face)
