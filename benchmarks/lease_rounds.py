"""Lease rounds: some processes fight for one thread's lease, and the stored rows afterwards show its holders in order.

    python benchmarks/lease_rounds.py sqlite --seconds 60
    python benchmarks/lease_rounds.py postgresql://... --seconds 60
    python benchmarks/lease_rounds.py redis://... --seconds 60 --processes 8

Each process takes the lease, puts some checkpoints, each as the child of the newest, and releases it or does not. They
are stopped for longer than the lease lives, lose their connections (to a server), and their clocks are set back and
forth.
Afterwards the checkpoints must form one chain, whose order is the order at the database: a fork would be two holders at
once, a token that is smaller than its parent's a write that came too late. Acknowledged writes must be in it.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import redis

from threadmark import Checkpoint, LeaseLostError, Saver, StoreError, ThreadBusyError, new_id
from threadmark.types import Lease, OnBusy
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisSaver
from threadmark_sqlite import SqliteSaver

THREAD = "thread"
TTL = 0.2
ANSWERS: list[OnBusy] = ["wait", "wait", "wait", "reject", "interrupt"]
PAUSES = (1.5 * TTL, 4 * TTL)
"""How long a process is stopped."""

LOOKS = 0.2
"""After this part of the puts a process looks at the register."""

KILLS = 0.3
"""After this part of the pauses all connections are lost."""

HOURS = 2
"""So far a process's clock is set back or forth."""

REGISTER = {"configurable": {"thread_id": THREAD, "checkpoint_ns": "register", "checkpoint_id": "register"}}
"""A pending write that every holder replaces first: it must never show a smaller token than one that was seen there."""


class Figures(NamedTuple):
    """The outcome of the rounds."""

    checkpoints: int
    hand_overs: int
    """How often the next checkpoint of the chain had another token."""
    refused: int
    """Writes with a token that another holder had made stale."""
    failed: int
    """Calls that ended with an error of the database."""
    stopped: int
    killed_connections: int
    lost: int
    """Acknowledged checkpoints that are not there."""
    forks: int
    late: int
    """Writes of an older token after one of a newer token."""


class Holder:
    """One of the processes."""

    def __init__(self, saver: Saver, journal: int, chance: random.Random) -> None:
        self._saver = saver
        self._journal = journal
        self._chance = chance

    def work(self, until: float) -> None:
        """Take leases until the time is over."""
        while time.monotonic() < until:
            set_clock(self._chance.uniform(-HOURS, HOURS) * 3600)
            on_busy = self._chance.choice(ANSWERS)
            timeout = 4 * TTL if on_busy == "wait" else None
            lease = self._saver.lease(THREAD, on_busy=on_busy, ttl=TTL, timeout=timeout)
            try:
                with lease:
                    self._hold(lease)
            except ThreadBusyError:
                time.sleep(self._chance.uniform(0, TTL / 10))
            except LeaseLostError:
                self._note("refused")
                self._try_again(lease)
            except StoreError:
                self._note("failed")

    def _hold(self, lease: Lease) -> None:
        self._saver.put_writes(_register(lease), [("__error__", lease.token)], "task")
        newest = self._saver.get_tuple({"configurable": {"thread_id": THREAD}})
        config = newest.config if newest else {"configurable": {"thread_id": THREAD, "checkpoint_ns": ""}}
        for _ in range(self._chance.randrange(1, 30)):
            checkpoint = made()
            config = self._saver.put(_under(config, lease), checkpoint, {"token": lease.token}, {"a": 1})
            self._note("acknowledged", checkpoint["id"])
            if self._chance.random() < LOOKS:
                self._look(lease)
            time.sleep(self._chance.uniform(0, TTL / 20))

    def _look(self, lease: Lease) -> None:
        """See whether a write of an older token has replaced the one of this lease."""
        found = self._saver.get_tuple(REGISTER)
        if found is None or any(token < lease.token for _, _, token in found.pending_writes or []):
            self._note("late")

    def _try_again(self, lease: Lease) -> None:
        """A refused holder is refused again, whatever it tries."""
        for call in (
            lambda: self._saver.put(_under(lease.config, lease), made(), {"token": lease.token}, {"a": 1}),
            lambda: self._saver.put_writes(_register(lease), [("__error__", lease.token)], "task"),
        ):
            with suppress(StoreError):
                try:
                    call()
                except LeaseLostError:
                    self._note("refused")
                else:
                    self._note("late")

    def _note(self, what: str, about: str = "") -> None:
        os.write(self._journal, f"{what} {about}\n".encode())


def _under(config: dict[str, Any], lease: Lease) -> dict[str, Any]:
    return {"configurable": {**config["configurable"], "checkpoint_ns": "", "lease_token": lease.token}}


def _register(lease: Lease) -> dict[str, Any]:
    return {"configurable": {**REGISTER["configurable"], "lease_token": lease.token}}


def made(checkpoint_id: str | None = None) -> Checkpoint:
    """A checkpoint of a few hundred bytes."""
    return {
        "v": 4,
        "id": checkpoint_id or new_id(),
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": {"a": "x" * 300},
        "channel_versions": {"a": 1},
        "versions_seen": {},
    }


def set_clock(seconds: float) -> None:
    """Let the clock of this process be so far ahead."""
    time.time = lambda: _TIME() + seconds
    time.time_ns = lambda: _TIME_NS() + round(seconds * 1e9)


_TIME, _TIME_NS = time.time, time.time_ns


def open_saver(database: str) -> Saver:
    """The saver for a path or a URL."""
    if database.startswith("postgres"):
        return PostgresSaver(database)
    if database.startswith("redis"):
        return RedisSaver(database, durability="memory")
    return SqliteSaver(database, durability="normal")


def hold(database: str, journal: Path, seed: int, until: float) -> None:
    """Be one of the processes."""
    file = os.open(journal, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    with open_saver(database) as saver:
        Holder(saver, file, random.Random(seed)).work(until)


def begin(database: str) -> None:
    """Make the tables, and the first checkpoint."""
    with open_saver(database) as saver:
        where = {"configurable": {"thread_id": THREAD, "checkpoint_ns": "register"}}
        saver.put(where, made("register"), {}, {"a": 1})


def in_child(work: Callable[[], object]) -> int:
    """A forked process that does the work; everything is imported already, so it starts at once."""
    process = os.fork()
    if process:
        return process
    try:
        work()
    except BaseException:  # noqa: BLE001 - it ends this process, and its exit code tells
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def finished(process: int) -> None:
    """Wait for a process that must succeed."""
    if os.waitpid(process, 0)[1]:
        raise SystemExit("a child failed")


def disturb(database: str, processes: list[int], chance: random.Random, until: float) -> tuple[int, int]:
    """Stop one process after the other for a while, and kill connections. Returns how many of each."""
    stopped = killed = 0
    while time.monotonic() + 2 * PAUSES[1] < until:
        time.sleep(chance.uniform(0, TTL))
        process = chance.choice(processes)
        os.kill(process, signal.SIGSTOP)
        time.sleep(chance.uniform(*PAUSES))
        os.kill(process, signal.SIGCONT)
        stopped += 1
        if "://" in database and chance.random() < KILLS:
            killed += kill_connections(database)
    return stopped, killed


def kill_connections(database: str) -> int:
    """End all other connections to the database. Returns how many that were."""
    if database.startswith("redis"):
        with redis.Redis.from_url(database) as client:
            return int(client.client_kill_filter(_type="normal", skipme=True))
    with psycopg.connect(database, autocommit=True) as connection:
        return connection.execute(OTHERS).rowcount


OTHERS = """
SELECT pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def lease_rounds(database: str, seconds: float, folder: Path, seed: int, processes: int) -> Figures:
    """Let the processes fight, and look at the stored rows."""
    finished(in_child(partial(begin, database)))
    until = time.monotonic() + seconds
    journals = [folder / f"journal {number}" for number in range(processes)]
    children = [in_child(partial(hold, database, journal, seed + n, until)) for n, journal in enumerate(journals)]
    stopped, killed = disturb(database, children, random.Random(seed), until)
    for process in children:
        finished(process)
    lines = [line.split(" ") for journal in journals for line in journal.read_text().splitlines()]
    return looked_at(database, lines)._replace(stopped=stopped, killed_connections=killed)


def looked_at(database: str, lines: list[list[str]]) -> Figures:
    """Compare the stored rows with the processes' answers."""
    said = Counter(what for what, _ in lines)
    with open_saver(database) as saver:
        stored = list(saver.list({"configurable": {"thread_id": THREAD, "checkpoint_ns": ""}}))
        if saver.verify().problems:
            raise SystemExit("what is stored is damaged")
    tokens = {item.checkpoint["id"]: item.metadata["token"] for item in stored}
    parents = [item.parent_config["configurable"]["checkpoint_id"] if item.parent_config else None for item in stored]
    steps = [(tokens[parent], item.metadata["token"]) for item, parent in zip(stored, parents, strict=True) if parent]
    return Figures(
        checkpoints=len(stored),
        hand_overs=sum(before != after for before, after in steps),
        refused=said["refused"],
        failed=said["failed"],
        stopped=0,
        killed_connections=0,
        lost=sum(what == "acknowledged" and about not in tokens for what, about in lines),
        forks=sum(children - 1 for children in Counter(parents).values()),
        late=said["late"] + sum(before > after for before, after in steps),
    )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("database", help="'sqlite' for a fresh file, or the URL of an empty database")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "leases.db") if asked.database == "sqlite" else asked.database
        result = lease_rounds(database, asked.seconds, Path(folder), asked.seed, asked.processes)
    print(json.dumps({"backend": asked.database.partition(":")[0], **result._asdict()}))
    sys.exit(bool(result.lost or result.forks or result.late))


if __name__ == "__main__":
    main()
