"""Every scenario gives, on every backend and both APIs, the same result as on LangGraph's in-memory saver."""

import asyncio

import pytest

from langgraph_parity.apis import Api
from langgraph_parity.expected import Scenario, expected
from langgraph_parity.scenarios import conversations, deltas, failures, interrupts, subgraphs, travel
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
def test_runs_as_on_langgraphs_saver(api: Api, saver: Checkpointer, scenario: Scenario) -> None:
    assert asyncio.run(scenario(api, saver)) == expected(scenario, api)
