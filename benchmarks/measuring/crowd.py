"""Many runs at once on one saver: 1, 8 and 32 threads, or asyncio tasks, each with a separate conversation.

A step is the pending write of its task and then the checkpoint. A run goes on from a checkpoint that was just stored,
outside the measured time, as every step but the first does.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import workloads
from measuring.clocks import now, since
from measuring.jobs import ASYNCIO, Figures, Job, Seconds
from measuring.places import Place, new_place
from measuring.sides import Side
from measuring.steps import SIDES
from workloads import Step

AT_ONCE = (1, 8, 32)
CONNECTIONS = 16

_EACH = 10
"""Steps of each run in a round, and not more than its conversation has messages."""
_ALONE = 5
"""A single run is so many times as long, because there are no others for the mean."""

Start = tuple[Any, ...]
"""The arguments of the put that a run goes on from."""


def name(at_once: int) -> str:
    """The name of a step in so many runs."""
    return f"step of {at_once}"


def measure(job: Job) -> Figures:
    """The time of a step for each number of runs at once; the time is that of all of them, divided by the steps."""
    side = SIDES[job.side]()
    with new_place(job.comparison.backend, job.server, CONNECTIONS) as place:
        if job.comparison.api == ASYNCIO:
            return asyncio.run(_tasks(side, place, job))
        return _threads(side, place, job)


def _threads(side: Side, place: Place, job: Job) -> Figures:
    taken: dict[str, Seconds] = {}
    with side.blocking(place) as saver:
        for at_once, each in _rounds(job):
            runs = [(saver.put(*start), steps) for start, steps in _runs(side.next_version, job, at_once, each)]
            with ThreadPoolExecutor(at_once) as pool:
                begun = now()
                list(pool.map(lambda run: workloads.drive(saver, *run), runs))
                taken[name(at_once)] = since(begun, at_once * each)
    return Figures(taken)


async def _tasks(side: Side, place: Place, job: Job) -> Figures:
    taken: dict[str, Seconds] = {}
    async with side.asyncio(place) as saver:
        for at_once, each in _rounds(job):
            runs = [(await saver.aput(*start), steps) for start, steps in _runs(side.next_version, job, at_once, each)]
            begun = now()
            await asyncio.gather(*(workloads.adrive(saver, *run) for run in runs))
            taken[name(at_once)] = since(begun, at_once * each)
    return Figures(taken)


def _rounds(job: Job) -> Iterator[tuple[int, int]]:
    """How many at once, and how many steps each. The first round warms up: the second one's figures replace its own."""
    for at_once in (AT_ONCE[0], *AT_ONCE):
        yield at_once, min(_EACH, job.comparison.size) * (_ALONE if at_once == 1 else 1)


def _runs(
    next_version: Callable[[Any, None], Any], job: Job, at_once: int, each: int
) -> Iterator[tuple[Start, Sequence[Step]]]:
    what = job.comparison
    before, *steps = list(workloads.TIMED[what.workload](next_version, what.size + each))[-each - 1 :]
    start = (before.checkpoint, before.metadata, before.checkpoint["channel_versions"])
    for number in range(at_once):
        yield (workloads.thread(f"{secrets.token_hex(4)} {number}"), *start), steps
