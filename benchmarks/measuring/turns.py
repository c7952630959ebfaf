"""Runs of a graph through LangGraph: all turns of a thread from its beginning, or the end of a long conversation.

A long conversation is made of a few large turns, because to store 10,000 messages one by one takes LangGraph's savers
30 GB; only the turns at its end, with one question each, are timed.
"""

import asyncio
import random
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from graphs import GRAPHS, questions
from measuring.clocks import Recorded, now, since
from measuring.jobs import ASYNCIO, LONG, Comparison, Figures, Job
from measuring.places import Place, new_place
from measuring.steps import PUT, SIDES

TURN = "turn"

_AT_A_TIME = 100
"""Messages of a large turn."""
_LAST_TURNS = 20

Values = Iterator[dict[str, Any]]
"""The inputs of a graph, one after the other; between two of them a turn is over."""


def measure(job: Job) -> Figures:
    """The time of a turn, and at the end of a long conversation also a put."""
    recorded = Recorded()
    with new_place(job.comparison.backend, job.server) as place:
        if job.comparison.api == ASYNCIO:
            empty = asyncio.run(_atake_turns(job, place, recorded))
        else:
            with ThreadPoolExecutor(1) as worker:  # as a server calls a graph, and never on the main thread
                empty = worker.submit(_take_turns, job, place, recorded).result()
        return Figures(recorded.medians(), place.size() - empty, recorded.walls())


def _take_turns(job: Job, place: Place, recorded: Recorded) -> int:
    with SIDES[job.side]().blocking(place) as saver:
        empty = place.size()
        graph, thread = GRAPHS[job.comparison.workload].compiled(saver), _new_thread()
        for value in _values(job.comparison, saver, recorded):
            graph.invoke(value, thread)
    return empty


async def _atake_turns(job: Job, place: Place, recorded: Recorded) -> int:
    async with SIDES[job.side]().asyncio(place) as saver:
        empty = place.size()
        graph, thread = GRAPHS[job.comparison.workload].compiled(saver), _new_thread()
        for value in _values(job.comparison, saver, recorded):
            await graph.ainvoke(value, thread)
    return empty


def _new_thread() -> Any:
    return {"configurable": {"thread_id": secrets.token_hex(4)}}


def _values(what: Comparison, saver: Any, recorded: Recorded) -> Values:
    return _end(what, saver, recorded) if what.measure == LONG else _all_turns(what, recorded)


def _all_turns(what: Comparison, recorded: Recorded) -> Values:
    chance = random.Random(1)
    values = [GRAPHS[what.workload].value(turn, chance) for turn in range(what.size)]
    begun = now()
    yield from values
    recorded.add(TURN, since(begun, what.size))


def _end(what: Comparison, saver: Any, recorded: Recorded) -> Values:
    chance = random.Random(1)
    for stored in range(0, what.size, _AT_A_TIME):
        yield questions(min(_AT_A_TIME, what.size - stored), chance)
    with _timed_puts(saver, recorded):
        for _ in range(min(_LAST_TURNS, what.size)):
            value = questions(1, chance)
            begun = now()
            yield value
            recorded.add(TURN, since(begun))


@contextmanager
def _timed_puts(saver: Any, recorded: Recorded) -> Iterator[None]:
    """Within it, each put is timed, whichever copy of the saver a graph makes for itself."""
    put = type(saver).put

    def timed(*arguments: Any) -> Any:
        return recorded.call(PUT, put, *arguments)

    with patch.object(type(saver), "put", timed):
        yield
