"""The programs that are recorded: they mark in the recording which operations have begun and were acknowledged."""

import asyncio
import sys
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from random import Random
from typing import Any, cast

from postgres.steps import Blocking, asyncio_api
from power.clients import Api, Client
from power.recording import marker
from threadmark.persistent import PersistentDict
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.options import Durability

DATABASE = "threads.db"
DICTIONARY = "cache.db"

APIS: list[Api] = [asyncio_api, Blocking, Blocking, Blocking]
"""How each client calls the saver. Those that block share commits."""

PHASES = 2
"""How many savers work on the file, one after the other."""

SAVER = "from power.programs import saver; saver()"
DICTIONARIES = "from power.programs import dictionary; dictionary()"


def saver() -> None:
    """Clients of one saver at once, then others of another saver on the same file."""
    folder, durability, seed, operations, clients = sys.argv[1:]

    async def work() -> None:
        for phase in range(PHASES):
            async with SqliteSaver(Path(folder) / DATABASE, durability=cast("Durability", durability)) as opened:
                numbers = range(phase * int(clients), (phase + 1) * int(clients))
                made = [Client(opened, int(seed), number, APIS[number % len(APIS)]) for number in numbers]
                await asyncio.gather(*map(_marked, made, numbers, repeat(int(operations))))

    asyncio.run(work())


async def _marked(client: Client, number: int, operations: int) -> None:
    mark, done = marker(), 0
    async for _ in client.work(operations):
        if done:
            mark(f"A {number} {done}")
        done += 1
        mark(f"B {number} {done}")


def dictionary() -> None:
    """A dictionary that is changed and synced, and opened several times."""
    folder, seed, syncs = sys.argv[1:]
    mark = marker()
    opened: PersistentDict[str, Any] | None = None
    for done, content in enumerate(contents(int(seed), int(syncs)), 1):
        mark(f"B 0 {done}")
        if opened is None:
            opened = PersistentDict(Path(folder) / DICTIONARY)
        for key in opened.keys() - content.keys():
            del opened[key]
        opened.update(content)
        if done % 7:
            opened.sync()
        else:
            opened.close()
            opened = None
        mark(f"A 0 {done}")
    if opened is not None:
        opened.close()


def contents(seed: int, syncs: int) -> Iterator[dict[str, Any]]:
    """The content of the dictionary at each sync."""
    random, content = Random(seed), dict[str, Any]()
    for number in range(syncs):
        for _ in range(random.randint(1, 6)):
            content[f"key {random.randint(0, 30)}"] = [number, random.randbytes(random.choice((5, 500, 20_000)))]
        if random.random() < 0.3:
            content.pop(random.choice(sorted(content)))
        content["number"] = number
        yield dict(content)
