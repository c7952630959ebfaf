"""Threads keep the kind of channel version they have, and forks whose versions meet do not mix."""

import asyncio
from typing import Any

import pytest

from langgraph_parity.apis import Api
from langgraph_parity.expected import Scenario, expected
from langgraph_parity.records import record
from langgraph_parity.scenarios import deltas, subgraphs, travel
from threadmark import SaverProtocol
from threadmark_langgraph import Checkpointer


class Whole(Checkpointer):
    """Counts from 1."""

    def get_next_version(self, current: Any, channel: None = None) -> Any:  # noqa: ARG002 - the engine's
        return 1 if current is None else int(current) + 1


class Broken(Checkpointer):
    """Counts in halves, as a saver may that was written for floats."""

    def get_next_version(self, current: Any, channel: None = None) -> Any:  # noqa: ARG002 - the engine's
        return 0.5 if current is None else float(current) + 0.5


KINDS: list[type[Checkpointer]] = [Whole, Broken]
SCENARIOS = [travel.fork_from_the_past, travel.replay, subgraphs.going_back_inside, *deltas.SCENARIOS]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_forks_are_the_same_whatever_counts_them(
    api: Api, saver: Checkpointer, kind: type[Checkpointer], scenario: Scenario
) -> None:
    assert asyncio.run(scenario(api, kind(saver.saver))) == expected(scenario, api)


@pytest.mark.parametrize("kind", KINDS)
def test_thread_goes_on_in_its_own_kind(api: Api, saver: Checkpointer, kind: type[Checkpointer]) -> None:
    def versions(core: SaverProtocol) -> set[type]:
        found = core.get({"configurable": {"thread_id": "replayed"}})
        assert found is not None
        return set(map(type, found["channel_versions"].values()))

    asyncio.run(travel.replay(api, kind(saver.saver)))
    first = versions(saver.saver)
    thread: Any = {"configurable": {"thread_id": "replayed"}}
    graph = travel.walk(saver, "abcd")
    asyncio.run(api.invoke(graph, {"trail": ["turn 3"], "last": ""}, thread))
    assert versions(saver.saver) == first
    assert record(asyncio.run(api.history(graph, thread)))[0]["values"]["trail"][-5:] == ["turn 3", *"abcd"]
