"""One world, from its beginning to the model's judgement."""

import asyncio
import random
from hashlib import sha256
from typing import NamedTuple

from simulator.clocks import Machine, SimulatedLoop, simulated_time
from simulator.met import Met
from simulator.pairs import PairWorld
from simulator.plan import Plan
from simulator.world import World


class Outcome(NamedTuple):
    """The outcome of a world."""

    objections: list[str]
    met: Met
    trace: str
    """A digest of all calls and answers: the same for the same plan."""
    calls: list[str]


def play(plan: Plan) -> Outcome:
    """Play a world from its beginning to its end."""
    loop = SimulatedLoop()
    outside = Machine("outside", loop, random.Random(f"{plan.seed} outside"))
    try:
        with simulated_time(outside):
            world = World(plan, loop) if plan.mode == "one" else PairWorld(plan, loop, outside)
            try:
                world.live()
                objections = world.judged()
                calls = world.trace()
            finally:
                world.end()
                _cancel_all(loop)
    finally:
        loop.close()
    return Outcome(objections, world.met, sha256("\n".join(calls).encode()).hexdigest(), calls)


def _cancel_all(loop: SimulatedLoop) -> None:
    if tasks := asyncio.all_tasks(loop):
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.wait(tasks))
