"""Lost answers: connections that end after the server has done its part, at every byte of its answers.

    python benchmarks/lost_answers.py --only postgres
    PATH="$(python scripts/newest_postgres.py):$PATH" python benchmarks/lost_answers.py

It starts a Postgres, a PgBouncer and a Redis, and puts a proxy before each (tests/unanswered/cutter.py), also between
PgBouncer and its server. Every operation is played as often as its undisturbed answers have bytes: the proxy lets so
many bytes pass, and ends the connection. Of an answer of more than 64 bytes it tries nine places. Whatever was lost,
the operation must have happened once, and must return the undisturbed answer, or raise its documented error.

It prints one line for each place and API, and fails if there is an objection.
"""

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from postgres.steps import APIS
from unanswered.losing import Counts, every, lose_each
from unanswered.places import PLACES, operations, world_at

_SHOWN, _LENGTH = 10, 600


async def lost_answers(place: str, api: Callable[[Any], Any], small: int, parts: int) -> Counts:
    """Lose the answers of every operation of a place. Returns the sums."""
    total = Counts(0, 0, 0, [])
    with world_at(place, api) as world:
        for name in operations(place):
            one = await lose_each(world, name, partial(every, small=small, parts=parts))
            total = Counts(
                total.rounds + one.rounds,
                total.lost + one.lost,
                total.answers + one.answers,
                total.objections + one.objections,
            )
        await world.saver.aclose()
    return total


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each place and API."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="begin of the places, such as 'redis'")
    parser.add_argument("--small", type=int, default=64, help="lose answers up to this length at each of their bytes")
    parser.add_argument("--parts", type=int, default=8, help="and longer ones at so many places, and the last byte")
    chosen = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    objections: list[str] = []
    for place in PLACES:
        for api in APIS if place.startswith(chosen.only) else ():
            begun = time.monotonic()
            found = asyncio.run(lost_answers(place, api, chosen.small, chosen.parts))
            sys.stdout.write(
                f"{place}, {api.__name__}: {len(operations(place))} operations with {found.answers} answers, "
                f"{found.rounds} rounds, {found.lost} answers lost, {len(found.objections)} objections, "
                f"{time.monotonic() - begun:.0f} s\n"
            )
            sys.stdout.flush()
            objections += found.objections
    for objection in objections[:_SHOWN]:
        sys.stdout.write(f"{objection[:_LENGTH]}\n")
    if objections:
        raise SystemExit(f"{len(objections)} objections")


if __name__ == "__main__":
    main()
