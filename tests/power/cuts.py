"""Every moment of a recording at which the power may fail, with disks that it may leave, opened and compared.

The clients of a saver are numbered, and so are the operations of each. A disk is judged by the number of operations
that each client finds done on it: with "full" all that were acknowledged, with "normal" the first ones, where no later
operation is there without those that were acknowledged before it had begun.
"""

import asyncio
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Self

from power import programs
from power.clients import Client, state_of
from power.disk import Disk, Files
from power.recording import Recording
from threadmark import MemorySaver, ThreadmarkError
from threadmark.persistent import PersistentDict
from threadmark_conformance.engine import at, checkpoint
from threadmark_sqlite import SqliteSaver

States = dict[int, list[str]]
"""For each client, its state after none of its operations, after the first one, and so on."""

_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder is made in it


class Known(NamedTuple):
    """The knowledge of the clients at a moment."""

    acknowledged: Mapping[int, int]
    """How many operations of each client were acknowledged."""
    begun: Mapping[int, int]
    before: Mapping[tuple[int, int], Mapping[int, int]]
    """For each operation (client, number) that has begun, how many of each client's were acknowledged before."""


class Outcome(NamedTuple):
    """The counts of a recording's disks, and the objections to them."""

    moments: int
    states: int
    """How many disks were made."""
    distinct: int
    """How many of them differed, and were opened."""
    unsynced: int
    """How many were made of changes of which not all had reached the disk."""
    fewer: int
    """On how many of the distinct ones an operation was missing that had been acknowledged."""
    objections: list[str]


class Moment(NamedTuple):
    """A disk that a power cut may leave."""

    event: int
    kind: str
    files: Files
    known: Known


def moments(recording: Recording, seed: int, lots: int, share: float = 1.0) -> Iterator[Moment]:
    """Yield after each change the disk with all of it, that with the synced changes only, and `lots` others.

    `share` is the part of the changes after which the power fails.
    """
    disk, random = Disk(), Random(seed)
    acknowledged: Counter[int] = Counter()
    begun: Counter[int] = Counter()
    before: dict[tuple[int, int], Mapping[int, int]] = {}
    for number, event in enumerate(recording.events):
        if event.kind == "M":
            kind, client, operation = event.data.decode().split()
            if kind == "B":
                begun[int(client)] = int(operation)
                before[int(client), int(operation)] = dict(acknowledged)
            else:
                acknowledged[int(client)] = int(operation)
        else:
            disk.play(event)
        if random.random() >= share:
            continue
        known = Known(dict(acknowledged), dict(begun), before)
        yield Moment(number, "all", disk.all(), known)
        if disk.unsynced():
            yield Moment(number, "synced", disk.synced(), known)
            for _ in range(lots):
                yield Moment(number, "some", disk.some(random), known)


def objection(states: States, found: Mapping[int, str], known: Known, *, full: bool) -> str:
    """Return the objection to the states that the clients find, or an empty text."""
    least: dict[int, int] = {}
    most: dict[int, int] = {}
    for client, all_states in states.items():
        begun = all_states[: known.begun.get(client, 0) + 1]
        done = [number for number, state in enumerate(begun) if state == found[client]]
        if not done:
            return f"client {client} finds a state that it has never left: {found[client][:2000]}"
        least[client], most[client] = done[0], done[-1]
        if full and done[-1] < known.acknowledged.get(client, 0):
            return f"client {client} finds {done[-1]} operations, {known.acknowledged[client]} were acknowledged"
    for client, number in least.items():
        for other, acknowledged in known.before.get((client, number), {}).items():
            if most[other] < acknowledged:
                return (
                    f"operation {number} of client {client} is there, and of client {other} only {most[other]} of the "
                    f"{acknowledged} that were acknowledged before it"
                )
    return ""


class Judge:
    """Opens disks, and compares them with the knowledge of the clients."""

    def __init__(self, states: States, *, full: bool) -> None:
        self._states, self._full = states, full

    def __enter__(self) -> Self:
        self._closing = ExitStack()
        folder = tempfile.mkdtemp(prefix="threadmark-power-", dir=_MEMORY if _MEMORY.is_dir() else None)
        self._closing.callback(shutil.rmtree, folder)
        self._folder = Path(folder) / "disk"
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def judge(self, found: Iterable[Moment]) -> Outcome:
        """Open each disk once, whatever the number of moments that leave it."""
        seen: dict[bytes, dict[int, str] | str] = {}
        counts: Counter[str] = Counter()
        events = set()
        objections: list[str] = []
        for moment in found:
            counts["states"] += 1
            counts["unsynced"] += moment.kind != "all"
            events.add(moment.event)
            digest = _digest(moment.files)
            is_new = digest not in seen
            if is_new:
                seen[digest] = self._open(moment.files, goes_on=not len(seen) % 10)
            state = seen[digest]
            problem = state if isinstance(state, str) else self._objection(state, moment.known)
            if problem:
                objections.append(f"event {moment.event}, {moment.kind}: {problem}")
            elif is_new and not isinstance(state, str):
                counts["fewer"] += self._is_behind(state, moment.known)
        return Outcome(len(events), counts["states"], len(seen), counts["unsynced"], counts["fewer"], objections)

    def _objection(self, state: dict[int, str], known: Known) -> str:
        return objection(self._states, state, known, full=self._full)

    def _is_behind(self, state: dict[int, str], known: Known) -> bool:
        return bool(objection(self._states, state, known, full=True))

    def _open(self, files: Files, *, goes_on: bool) -> dict[int, str] | str:
        """The state of each client on this disk, or the objection."""
        self._folder.mkdir()
        try:
            for name, content in files.items():
                (self._folder / name).write_bytes(content)
            return self._states_in(goes_on=goes_on)
        except (ThreadmarkError, sqlite3.Error, AssertionError) as error:
            return f"{type(error).__name__}: {error}"
        finally:
            shutil.rmtree(self._folder)

    def _states_in(self, *, goes_on: bool) -> dict[int, str]:
        raise NotImplementedError


class SaverJudge(Judge):
    """Opens the disks with a saver."""

    def _states_in(self, *, goes_on: bool) -> dict[int, str]:
        path = self._folder / programs.DATABASE
        with SqliteSaver(path) as saver:
            problems = saver.verify(decode=True)[3:]
            assert not any(problems), f"verify finds {problems}"
            found = {client: state_of(saver, client) for client in self._states}
            if goes_on:
                config = saver.put(at("later", ""), checkpoint({"a": 1}), {}, {"a": 1})
                saver.put_writes(config, [("a", 2)], "task")
        if goes_on:
            _goes_on(path, config)
        return found


def _goes_on(path: Path, config: Any) -> None:
    with closing(sqlite3.connect(path)) as connection:
        ((answer,),) = connection.execute("PRAGMA integrity_check").fetchall()
    assert answer == "ok", answer
    with SqliteSaver(path) as saver:
        found = saver.get_tuple(config)
        assert found is not None, "a put after the power cut was lost"
        assert found.pending_writes == [("task", "a", 2)]
        assert not any(saver.verify()[3:])


class DictionaryJudge(Judge):
    """Opens the disks as a persistent dictionary."""

    def _states_in(self, *, goes_on: bool) -> dict[int, str]:
        path = self._folder / programs.DICTIONARY
        with PersistentDict[str, Any](path) as found:
            state = repr(sorted(found.items()))
            if goes_on:
                found["later"] = 1
        if goes_on:
            with PersistentDict[str, Any](path, "r") as found:
                assert found["later"] == 1
        return {0: state}


def states_of_saver(seed: int, operations: int, clients: int) -> States:
    """The states that the clients of the recorded program leave, by the same clients of savers in memory."""

    async def states(number: int) -> list[str]:
        async with MemorySaver() as saver:
            client = Client(saver, seed, number, programs.APIS[number % len(programs.APIS)])
            return [state_of(saver, number) async for _ in client.work(operations)]

    return {number: asyncio.run(states(number)) for number in range(clients * programs.PHASES)}


def states_of_dictionary(seed: int, syncs: int) -> States:
    """The states that the recorded dictionary leaves."""
    contents = programs.contents(seed, syncs)
    return {0: [repr([]), *(repr(sorted(content.items())) for content in contents)]}


def _digest(files: Files) -> bytes:
    digest = blake2b()
    for name, content in sorted(files.items()):
        digest.update(f"{name} {len(content)} ".encode())
        digest.update(content)
    return digest.digest()
