"""Transaction rounds: processes killed while they store a row of theirs, a checkpoint and an item in one transaction.

    python benchmarks/transaction_rounds.py sqlite --rounds 1000
    python benchmarks/transaction_rounds.py postgresql://... --rounds 1000

A child process stores number after number, each in one transaction, until it is killed at a random moment. One child in
six uses a block of the saver, with a checkpoint, a write and an item; three use a connection of their own, most of
them with asyncio, and store a row there as well; two run graphs whose nodes put items (`node_rounds`). SQLite syncs
each commit to the disk, and Postgres as the server is set up. Every 50 kills, a process that is not killed compares the
numbers. Apart is a number that is in one place and not in another; lost is one that was acknowledged and is in none.
"""

import argparse
import asyncio
import json
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import aiosqlite
import psycopg

import node_rounds
from crash_rounds import Journal, in_child, in_process, killed_after, open_saver
from threadmark import Checkpoint, ConfigError, Saver, new_id
from threadmark_store import Store

_LONGEST = 0.08
"""Seconds after the first transaction has begun in which a child is killed."""
_LONGEST_OF_NODES = 0.4
"""A run of a graph takes longer than a transaction."""
_KILLS_PER_THREAD = 50
_ROLLED_BACK = "asyncio connection, and rolled back now and then"
_WAYS = ("connection", "block", "nodes", "asyncio connection", "nodes with asyncio", _ROLLED_BACK)
_TABLE = "CREATE TABLE IF NOT EXISTS orders (thread text NOT NULL, number integer NOT NULL)"


class Rounds(NamedTuple):
    """The outcome of the rounds."""

    killed: int
    killed_by_way: dict[str, int]
    in_a_transaction: int
    """How many were killed between the beginning of a transaction and its acknowledgement."""
    committed: int
    with_items: bool
    apart: int
    lost: int


class Stored(NamedTuple):
    """The numbers that one thread has in each place."""

    rows: list[int]
    checkpoints: list[int]
    writes: list[int]
    items: list[int] | None


def has_items(saver: Saver) -> bool:
    """Whether a store of items exists for this backend."""
    with suppress(ConfigError, ImportError):
        Store(saver).setup()
        return True
    return False


def made(number: int) -> Checkpoint:
    """The checkpoint of a number, with a value that is stored in segments."""
    return {
        "v": 1,
        "id": new_id(),
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": {"number": number, "text": f"{number} " * 600},
        "channel_versions": {"number": number + 1, "text": number + 1},
        "versions_seen": {},
    }


def at(thread_id: str) -> dict[str, Any]:
    """The configuration of a thread's newest checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


class Child:
    """A process that stores numbers until it is killed."""

    def __init__(self, database: str, thread_id: str, journal: Journal, way: str, ready: int) -> None:
        self._database = database
        self._thread_id = thread_id
        self._journal = journal
        self._way = way
        self._ready = ready
        """A pipe to which a byte is written when the first transaction begins."""

    def work(self) -> None:
        """Store numbers for ever."""
        saver = open_saver(self._database)
        self._has_items = has_items(saver)
        if self._way == "connection":
            self._with_connection(saver)
        elif self._way == "block":
            self._with_blocks(saver)
        elif self._way.startswith("nodes"):
            self._with_nodes(saver)
        else:
            asyncio.run(self._with_asyncio(saver))

    def _with_connection(self, saver: Saver) -> None:
        connection: Any
        if self._database.startswith("postgres"):
            connection = psycopg.connect(self._database)
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        else:
            connection = sqlite3.connect(self._database, timeout=60)
        first = self._next(connection.execute(self._newest()).fetchall())
        connection.rollback()
        bound = saver.within(connection)
        for number in self._numbers(first):
            connection.execute(self._order(number))
            config = bound.put(at(self._thread_id), made(number), {}, {"number": number + 1, "text": number + 1})
            bound.put_writes(config, [("number", number)], "task")
            self._put_item(bound, number)
            connection.commit()

    def _with_blocks(self, saver: Saver) -> None:
        # The numbers of blocks have no row, so they have a thread of their own.
        thread_id = f"{self._thread_id} in blocks"
        found = saver.get(at(thread_id))
        for number in self._numbers(1 + (int(found["channel_values"]["number"]) if found else 0), thread_id):
            with saver.transaction() as tx:
                config = tx.saver.put(at(thread_id), made(number), {}, {"number": number + 1, "text": number + 1})
                tx.saver.put_writes(config, [("number", number)], "task")
                self._put_item(tx.saver, number, thread_id)

    def _with_nodes(self, saver: Saver) -> None:
        thread_id = f"{self._thread_id} in nodes"

        def begun() -> None:
            self._journal.note("begun", f"0/{thread_id}")
            os.write(self._ready, b"1")

        def done(number: int) -> None:
            self._journal.note("acknowledged", f"{number}/{thread_id}")

        node_rounds.work(saver, thread_id, begun, done, blocking=self._way == "nodes")

    async def _with_asyncio(self, saver: Saver) -> None:
        connection: Any
        if self._database.startswith("postgres"):
            connection = await psycopg.AsyncConnection.connect(self._database)
            await connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
        else:
            connection = await aiosqlite.connect(self._database, timeout=60)
        first = self._next(list(await (await connection.execute(self._newest())).fetchall()))
        await connection.rollback()
        bound = saver.within(connection)
        items = Store(bound) if self._has_items else None
        for number in self._numbers(first):
            for is_last in (False, True) if self._way == _ROLLED_BACK and number % 3 == 0 else (True,):
                await connection.execute(self._order(number))
                config = await bound.aput(
                    at(self._thread_id), made(number), {}, {"number": number + 1, "text": number + 1}
                )
                await bound.aput_writes(config, [("number", number)], "task")
                if items is not None:
                    await items.aput((self._thread_id,), str(number), {"number": number})
                await (connection.commit() if is_last else connection.rollback())

    def _put_item(self, saver: Saver, number: int, thread_id: str | None = None) -> None:
        if self._has_items:
            Store(saver).put((thread_id or self._thread_id,), str(number), {"number": number})

    def _numbers(self, first: int, thread_id: str | None = None) -> Iterator[int]:
        """Yield numbers, and note when the transaction of each begins and when it has been acknowledged."""
        number = first
        os.write(self._ready, b"1")
        while True:
            self._journal.note("begun", f"{number}/{thread_id or self._thread_id}")
            yield number
            self._journal.note("acknowledged", f"{number}/{thread_id or self._thread_id}")
            number += 1

    def _newest(self) -> str:
        return f"SELECT max(number) FROM orders WHERE thread = '{self._thread_id}'"

    def _order(self, number: int) -> str:
        return f"INSERT INTO orders VALUES ('{self._thread_id}', {number})"

    @staticmethod
    def _next(rows: list[Any]) -> int:
        return 1 + (rows[0][0] or 0)


def stored(database: str, thread_id: str) -> Stored:
    """The numbers of a thread, in each place."""
    with open_saver(database) as saver:
        found = list(saver.list(at(thread_id)))
        items = None
        if has_items(saver):
            listed = Store(saver).search((thread_id,), limit=1_000_000)
            items = sorted(int(item.value["number"]) for item in listed)
        problems = saver.verify(thread_id).problems if found else []
        if problems:
            raise SystemExit(f"{thread_id}: {problems[0]}")
    return Stored(
        rows(database, thread_id),
        sorted(int(each.checkpoint["channel_values"]["number"]) for each in found),
        sorted(value for each in found for _, _, value in each.pending_writes or ()),
        items,
    )


def rows(database: str, thread_id: str) -> list[int]:
    """The numbers of a thread in the table of the user."""
    statement = f"SELECT number FROM orders WHERE thread = '{thread_id}' ORDER BY number"
    connection: Any = psycopg.connect(database) if database.startswith("postgres") else sqlite3.connect(database)
    try:
        return [number for (number,) in connection.execute(statement).fetchall()]
    finally:
        connection.close()


def prepare(database: str) -> bool:
    """Create the tables. Returns whether there are items."""
    with open_saver(database) as saver:
        saver.setup()
        found = has_items(saver)
    connection: Any = psycopg.connect(database) if database.startswith("postgres") else sqlite3.connect(database)
    connection.execute(_TABLE)
    connection.commit()
    connection.close()
    return found


def compared(database: str, thread_id: str, acknowledged: set[int], *, with_rows: bool) -> tuple[int, int]:
    """Return how many numbers of a thread are in one place only, and how many are lost."""
    found = stored(database, thread_id)
    places: list[set[Any]] = [set(found.checkpoints), set(found.writes)]
    places += [set(found.rows)] if with_rows else []
    places += [set(found.items)] if found.items is not None else []
    doubled = sum(len(each) - len(set(each)) for each in found if each is not None)
    return len(set.union(*places) - set.intersection(*places)) + doubled, len(acknowledged - set.union(*places))


def compared_nodes(database: str, thread_id: str, acknowledged: set[int]) -> tuple[int, int]:
    """Return how many numbers of nodes are in one place only, and how many are lost."""
    with open_saver(database) as saver:
        if not has_items(saver):
            return 0, 0
        apart, numbers = node_rounds.compared_nodes(saver, thread_id)
    return len(apart), len(acknowledged - numbers)


def transaction_rounds(database: str, rounds: int, folder: Path, seed: int, seconds: float) -> Rounds:
    """Kill as many times as asked, or for as long."""
    chance, until = random.Random(seed), time.monotonic() + seconds
    with_items = in_process(folder, partial(prepare, database))
    ways: Counter[str] = Counter()
    killed = in_a_transaction = committed = apart = lost = threads = 0
    while killed < rounds and time.monotonic() < until:
        thread_id = f"killed-{os.getpid()}-{threads}"
        journal = Journal(folder / thread_id)
        for number in range(min(_KILLS_PER_THREAD, rounds - killed)):
            begun, ready = os.pipe()
            way = _WAYS[number % len(_WAYS)]
            process = in_child(Child(database, thread_id, journal, way, ready).work)
            os.close(ready)
            os.read(begun, 1)
            os.close(begun)
            longest = _LONGEST_OF_NODES if way.startswith("nodes") else _LONGEST
            ways[way] += killed_after(process, chance.uniform(0, longest))
        killed = ways.total()
        threads += 1
        noted = [line.split(" ", 1) for line in (folder / thread_id).read_text().splitlines()]
        in_a_transaction += _open_ones([what for what, _ in noted])
        for name in (thread_id, f"{thread_id} in blocks", f"{thread_id} in nodes"):
            acknowledged = _numbers_of(noted, "acknowledged", name)
            check: Callable[[], Any] = partial(compared, database, name, acknowledged, with_rows=name == thread_id)
            if name.endswith("in nodes"):
                check = partial(compared_nodes, database, name, acknowledged)
            found_apart, found_lost = in_process(folder, check)
            apart, lost, committed = apart + found_apart, lost + found_lost, committed + len(acknowledged)
        journal.close()
    return Rounds(killed, dict(ways), in_a_transaction, committed, with_items, apart, lost)


def _open_ones(noted: list[str]) -> int:
    """How many transactions had begun and were not acknowledged when their process was killed."""
    followed = zip(noted, [*noted[1:], "begun"], strict=True)
    return sum(what == "begun" and then == "begun" for what, then in followed)


def _numbers_of(noted: list[list[str]], what: str, thread_id: str) -> set[int]:
    marks = (about.split("/", 1) for noted_as, about in noted if noted_as == what)
    return {int(number) for number, name in marks if name == thread_id}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("database", help="'sqlite' for a fresh file, or a Postgres URL")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this time")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "killed.db") if asked.database == "sqlite" else asked.database
        result = transaction_rounds(database, asked.rounds, Path(folder), asked.seed, asked.seconds)
    print(json.dumps({"backend": asked.database.partition(":")[0], **result._asdict()}))
    sys.exit(bool(result.apart or result.lost))


if __name__ == "__main__":
    main()
