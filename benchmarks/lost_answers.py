"""Lost answers: connections that end after the server has done its part, at every byte of its answers.

    python benchmarks/lost_answers.py                      each byte: some ten thousand rounds, for hours
    python benchmarks/lost_answers.py --small 0 --parts 1  each answer: whole, and but for its last byte
    python benchmarks/lost_answers.py --some 1 --seed 7    two losses of each operation, in a minute
    POSTGRES_BIN="$(python scripts/newest_postgres.py)" python benchmarks/lost_answers.py --only postgres

It starts a Postgres, a PgBouncer and a Redis, and puts a proxy before each (tests/unanswered/cutter.py), also between
PgBouncer and its server. Every operation is played as often as its undisturbed answers have bytes: the proxy lets so
many bytes pass, and ends the connection. Of an answer of more than 64 bytes it tries nine places. With `--some`, each
operation loses its last answer, and parts of others by chance. Whatever was lost, the operation must have happened
once, and must return the undisturbed answer, or raise its documented error.

A round needs new connections, the operation's data, and all that it left, which is read through another connection; so
the number of rounds decides the time. Each place and API has a process, as many at once as the machine has cores.

It prints one line for each place and API, and fails if there is an objection. POSTGRES_BIN names the folder of the
programs of another Postgres.
"""

import argparse
import asyncio
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from postgres import cluster
from postgres.steps import APIS
from redis_backend import processes
from unanswered.losing import Choice, Counts, every, lose_each, some
from unanswered.places import PLACES, operations, world_at

_SHOWN, _LENGTH = 10, 600


async def lost_answers(place: str, api: Callable[[Any], Any], choice: Choice) -> Counts:
    """Lose answers of every operation of a place. Returns the sums."""
    total = Counts(0, 0, 0, [])
    with world_at(place, api) as world:
        for name in operations(place):
            one = await lose_each(world, name, choice)
            total = Counts(
                total.rounds + one.rounds,
                total.lost + one.lost,
                total.answers + one.answers,
                total.objections + one.objections,
            )
        await world.saver.aclose()
    return total


def _server(place: str) -> str:
    if place == "redis":
        return f"Redis {processes.shared().information('server')['redis_version']}"
    with psycopg.connect(cluster.shared().url) as connection:
        return f"Postgres {str(connection.info.parameter_status('server_version')).split()[0]}"


def _line(place: str, api: Callable[[Any], Any], choice: Choice) -> tuple[str, list[str]]:
    """Do one place with one API, in a process of its own. Returns the line to print, and the objections."""
    logging.disable(logging.WARNING)
    begun = time.monotonic()
    found = asyncio.run(lost_answers(place, api, choice))
    return (
        f"{place}, {api.__name__}, {_server(place)}: {len(operations(place))} operations with {found.answers} answers, "
        f"{found.rounds} rounds, {found.lost} answers lost, {len(found.objections)} objections, "
        f"{time.monotonic() - begun:.0f} s\n"
    ), found.objections


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each place and API."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="begin of the places, such as 'redis'")
    parser.add_argument("--small", type=int, default=64, help="lose answers up to this length at each of their bytes")
    parser.add_argument("--parts", type=int, default=8, help="and longer ones at so many places, and the last byte")
    parser.add_argument("--some", type=int, help="lose only the last answer, and so many parts of others")
    parser.add_argument("--seed", type=int, default=1, help="decides which parts")
    chosen = parser.parse_args(arguments)
    jobs = list(product([place for place in PLACES if place.startswith(chosen.only)], APIS))
    choices: list[Choice] = [
        partial(every, small=chosen.small, parts=chosen.parts)
        if chosen.some is None
        else partial(some, random=Random(chosen.seed + number), times=chosen.some)
        for number in range(len(jobs))
    ]
    objections: list[str] = []
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        for line, found in pool.map(_line, *zip(*jobs, strict=True), choices):
            sys.stdout.write(line)
            sys.stdout.flush()
            objections += found
    for objection in objections[:_SHOWN]:
        sys.stdout.write(f"{objection[:_LENGTH]}\n")
    if objections:
        raise SystemExit(f"{len(objections)} objections")


if __name__ == "__main__":
    main()
