"""Lost answers: whatever the server had done when a connection ended, each operation happens once and answers so.

One answer in a few is lost here. benchmarks/lost_answers.py loses each one, at each of its bytes.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from postgres.steps import APIS
from threadmark import Saver
from unanswered.losing import lose_each, some
from unanswered.places import PLACES, operations, world_at


@pytest.mark.parametrize("place", PLACES)
def test_an_operation_whose_answer_was_lost_happens_once_and_answers_so(place: str) -> None:
    for number, api in enumerate(APIS):
        # Each operation with one of the two: which one depends on the place.
        names = operations(place)[(number + PLACES.index(place)) % len(APIS) :: len(APIS)]
        lost, objections = asyncio.run(_lost(place, api, names))
        assert objections == []
        assert lost > len(names)  # of two of each


async def _lost(place: str, api: Callable[[Saver], Any], names: list[str]) -> tuple[int, list[str]]:
    random, lost = Random(place), 0
    objections: list[str] = []
    with world_at(place, api) as world:
        for name in names:
            found = await lose_each(world, name, partial(some, random=random))
            lost += found.lost
            objections += found.objections
        await world.saver.aclose()
    return lost, objections
