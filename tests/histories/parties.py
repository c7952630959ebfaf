"""Clients that work on one database at the same time: threads and tasks, each in processes of their own.

As a program it is one of these processes: `python parties.py` reads its part as JSON, and prints its calls.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from children import finished, line_from, send_line
from histories.checker import FINALLY
from histories.clients import Client, atake_step, everything, take_step
from histories.savers import Place, aopened, opened, set_up
from histories.spec import Operation, operation

Api = Literal["blocking", "asyncio"]


class Party(NamedTuple):
    """Some clients with one saver: threads, or tasks."""

    name: str
    api: Api
    clients: int


PARTIES = (Party("threads", "blocking", 3), Party("tasks", "asyncio", 3))
"""Threads in one process, and tasks in another one."""

_READY = "ready"


class Round(NamedTuple):
    """The time of the clients' work, and the choices that they make."""

    seconds: float
    seed: str
    deletes: bool = True


def play_round(place: Place, round_: Round, parties: Sequence[Party] = PARTIES) -> list[Operation]:
    """Have all parties work for some seconds. Returns all calls, those that read everything at the end included."""
    if place.in_memory:
        with opened(place) as saver:
            return play_in_memory(saver, place, round_, parties)
    set_up(place)
    processes = [_process(place, party, round_) for party in parties]
    for process in processes:
        assert line_from(process.stdout) == _READY, finished(process)
    start = time.monotonic_ns()
    for process in processes:
        send_line(process.stdin, str(start))
    calls = [operation(json.loads(line)) for process in processes for line in finished(process).splitlines()]
    with opened(place) as saver:
        return [*calls, *_finally(saver, calls)]


def play_in_memory(saver: Any, place: Place, round_: Round, parties: Sequence[Party] = PARTIES) -> list[Operation]:
    """Have all parties work on one saver, in this process."""
    start = time.monotonic_ns()
    end = start + int(round_.seconds * 1e9)
    clients = [_clients(saver, place, party, round_, start) for party in parties]
    threads = [
        threading.Thread(target=_work, args=(saver, party.api, some, end))
        for party, some in zip(parties, clients, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    calls = _calls_of(each for some in clients for each in some)
    return [*calls, *_finally(saver, calls)]


def _finally(saver: Any, calls: Sequence[Operation]) -> list[Operation]:
    """Read all threads, when the clients have ended."""
    found = []
    for thread in sorted({each.thread for each in calls}):
        began = time.monotonic_ns()
        contents = take_step(everything(thread), saver)
        found.append(Operation(FINALLY, "all", thread, began, time.monotonic_ns(), answer=contents))
    return found


def _process(place: Place, party: Party, round_: Round) -> "subprocess.Popen[str]":
    part = json.dumps([place, party, round_])
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, __file__, part],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def _clients(saver: Any, place: Place, party: Party, round_: Round, start: int) -> list[Client]:
    return [
        Client(
            f"{party.name} {number}",
            start,
            round_.seed,
            saver.get_next_version,
            copies=place.ours,
            deletes=round_.deletes,
        )
        for number in range(party.clients)
    ]


def _calls_of(clients: Any) -> list[Operation]:
    return [call for client in clients for call in client.operations]


def _work(saver: Any, api: Api, clients: Sequence[Client], end: int) -> None:
    """Have these clients work until the end."""
    if api == "asyncio":
        asyncio.run(_work_as_tasks(saver, clients, end))
        return
    threads = [threading.Thread(target=_work_as_thread, args=(saver, client, end)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _work_as_thread(saver: Any, client: Client, end: int) -> None:
    while time.monotonic_ns() < end:
        take_step(client.step(), saver)


async def _work_as_tasks(saver: Any, clients: Sequence[Client], end: int) -> None:
    async def work(client: Client) -> None:
        while time.monotonic_ns() < end:
            await atake_step(client.step(), saver)
            await asyncio.sleep(0)  # a call that never waits would keep the other tasks from theirs

    await asyncio.gather(*map(work, clients))


def _take_part(place: Place, party: Party, round_: Round) -> list[Operation]:
    """Do the part of a process."""
    if party.api == "asyncio":
        return asyncio.run(_take_part_as_tasks(place, party, round_))
    with opened(place) as saver:
        start = _started()
        clients = _clients(saver, place, party, round_, start)
        _work(saver, "blocking", clients, start + int(round_.seconds * 1e9))
    return _calls_of(clients)


async def _take_part_as_tasks(place: Place, party: Party, round_: Round) -> list[Operation]:
    async with aopened(place) as saver:
        start = _started()
        clients = _clients(saver, place, party, round_, start)
        await _work_as_tasks(saver, clients, start + int(round_.seconds * 1e9))
    return _calls_of(clients)


def _started() -> int:
    """Say that this process is ready, and wait for the moment at which all begin."""
    _say(_READY)
    return int(sys.stdin.readline())


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Do the part that the argument describes, and print the calls."""
    place, party, round_ = json.loads(sys.argv[1])
    for call in _take_part(Place(*place), Party(*party), Round(*round_)):
        _say(json.dumps(call))


if __name__ == "__main__":
    main()
