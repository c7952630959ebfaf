"""A process of one of two releases, which works on a database until it is told to stop, killed or refused.

It compares everything that it reads with the writes: its own threads with those in its journal, threads that it shares
with others by a digest in each value. It ends with a line of JSON about its work, and with
`REFUSED` if the database is written in a later format than its release knows.
"""

import hashlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from length import times
from threadmark import Saver, SchemaError, ThreadBusyError, ThreadDeletedError
from threadmark.errors import CheckpointNotFoundError, ConflictError, LeaseLostError
from threadmark.ids import new_id

REFUSED = 3
PAUSE = times(10, at_length=0) / 1000
"""Seconds after each thing, so that the processes of one test leave processors to others."""

SHARED = [f"shared-{number}" for number in range(3)]
KEPT = 5


def at(thread_id: str, ns: str | None = None) -> dict[str, Any]:
    """The config of a thread. (Importing the conformance suite would take longer than a process often lives here.)"""
    return {"configurable": {"thread_id": thread_id, **({} if ns is None else {"checkpoint_ns": ns})}}


def checkpoint(values: dict[str, Any], versions: dict[str, Any]) -> Any:
    """A checkpoint as an engine makes it."""
    return {
        "v": 4,
        "id": new_id(),
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": values,
        "channel_versions": versions,
        "versions_seen": {},
        "updated_channels": None,
    }


def opened(backend: str, url: str, **options: Any) -> Saver:
    """A saver of the release that this process is of."""
    if backend == "sqlite":
        from threadmark_sqlite import SqliteSaver

        return SqliteSaver(url, durability="normal", **options)
    if backend == "postgres":
        from threadmark_postgres import PostgresSaver

        return PostgresSaver(url, pool_size=2, **options)
    from threadmark_redis.saver import open_url

    return open_url(url, durability="memory", pool_size=2, **options)


def state_of(name: str, number: int) -> dict[str, Any]:
    """The state that a process puts as its step of this number: a list that grows, and starts again after 40 steps."""
    first = number - number % 40
    return {"number": number, "log": [f"{name} {each} " * 8 for each in range(first, number + 1)]}


def signed(by: str, body: str) -> dict[str, Any]:
    """A state that proves itself."""
    return {"by": by, "body": body, "digest": hashlib.sha256(f"{by} {body}".encode()).hexdigest()}


def expect_signed(state: dict[str, Any]) -> None:
    """Fail if a state is not as it was signed."""
    assert state == signed(state["by"], state["body"]), f"a changed state: {state}"


class Journal:
    """The changes that one process has begun and has done, in a file that survives it."""

    def __init__(self, path: Path) -> None:
        lines = path.read_text().splitlines() if path.exists() else []
        # A killed process may have left half a line.
        entries = [json.loads(line) for line in lines if line.endswith("}")]
        self.done: dict[str, Any] = {"number": -1, "there": False, "written": False}
        """The own thread after the last change that was acknowledged."""
        self.begun: dict[str, Any] | None = None
        """The own thread after a change that may or may not have been made."""
        for entry in entries:
            if entry["is"] == "begun":
                self.begun = entry["state"]
            else:
                self.done, self.begun = entry["state"], None
        self._file = path.open("a", buffering=1)
        self._file.write("\n")

    def begin(self, **state: Any) -> None:
        """Note a change before it is made."""
        self.begun = {**self.done, **state}
        self._file.write(json.dumps({"is": "begun", "state": self.begun, "at": time.time()}) + "\n")

    def end(self, state: dict[str, Any] | None = None) -> None:
        """Note that it was made, or that this state was found."""
        self.done, self.begun = state or self.begun or self.done, None
        self._file.write(json.dumps({"is": "done", "state": self.done, "at": time.time()}) + "\n")


class Worker:
    """The work of one process, one thing after another."""

    def __init__(self, saver: Saver, name: str, journal: Journal) -> None:
        self.saver, self.name, self.journal = saver, name, journal
        self.own = f"own-{name}"
        self.counts: Counter[str] = Counter()
        self.random = random.Random()

    def work(self, stop: Path) -> None:
        """Go on until there is a file."""
        things: dict[Callable[[], None], int] = {
            self.go_on: 8,
            self.read_own: 3,
            self.write: 2,
            self.list_own: 1,
            self.prune_own: 1,
            self.delete_own: 1,
            self.add_to_shared: 8,
            self.read_shared: 4,
            self.write_to_shared: 2,
            self.prune_shared: 1,
            self.delete_shared: 1,
            self.lease: 2,
        }
        self.read_own()
        while not stop.exists():
            (thing,) = self.random.choices(list(things), list(things.values()))
            thing()
            if not self.counts:
                self.journal.end()  # so that it is seen to work before it is killed
            self.counts[thing.__name__] += 1
            time.sleep(PAUSE)

    def read_own(self) -> None:
        """No other process writes to this thread: it is as it was left, or as the change that was begun leaves it."""
        found = self.saver.get_tuple(at(self.own))
        state = self._own_state(found)
        assert state in (self.journal.done, self.journal.begun), (state, self.journal.done, self.journal.begun)
        self.journal.end(state)

    def _own_state(self, found: Any) -> dict[str, Any]:
        if found is None:
            numbers = {each["number"] for each in (self.journal.done, self.journal.begun) if each and not each["there"]}
            return {"number": max(numbers, default=None), "there": False, "written": False}
        values = found.checkpoint["channel_values"]
        assert values == state_of(self.name, values["number"])
        assert found.metadata["by"] == self.name
        expected = [(f"task {values['number']}", "log", f"written by {self.name}")]
        assert found.pending_writes in ([], expected)
        return {"number": values["number"], "there": True, "written": bool(found.pending_writes)}

    def go_on(self) -> None:
        """The next step of the own thread."""
        self._settle()
        number = self.journal.done["number"] + 1
        parent = self.saver.get_tuple(at(self.own)) if self.journal.done["there"] else None
        state = state_of(self.name, number)
        versions = dict.fromkeys(state, number + 1)
        self.journal.begin(number=number, there=True, written=False)
        self.saver.put(
            parent.config if parent else at(self.own, ""), checkpoint(state, versions), {"by": self.name}, versions
        )
        self.journal.end()

    def write(self) -> None:
        """Write as a task after the newest step of the own thread."""
        self._settle()
        if self.journal.done["there"] and not self.journal.done["written"]:
            found = self.saver.get_tuple(at(self.own))
            assert found is not None
            self.journal.begin(written=True)
            task = f"task {self.journal.done['number']}"
            self.saver.put_writes(found.config, [("log", f"written by {self.name}")], task)
            self.journal.end()

    def list_own(self) -> None:
        """Older checkpoints are unchanged."""
        for found in self.saver.list(at(self.own)):
            number = found.checkpoint["channel_values"]["number"]
            assert found.checkpoint["channel_values"] == state_of(self.name, number)

    def prune_own(self) -> None:
        """Only the newest stay."""
        self.saver.prune([self.own], keep_last=KEPT)
        assert len(list(self.saver.list(at(self.own)))) <= KEPT

    def delete_own(self) -> None:
        """The next step begins it again."""
        self._settle()
        self.journal.begin(there=False, written=False)
        self.saver.delete_thread(self.own)
        self.journal.end()
        assert self.saver.get(at(self.own)) is None

    def _settle(self) -> None:
        if self.journal.begun is not None:
            self.read_own()

    def add_to_shared(self) -> None:
        """A checkpoint after whichever is the newest."""
        thread = self.random.choice(SHARED)
        found = self.saver.get_tuple(at(thread))
        if found is not None:
            expect_signed(found.checkpoint["channel_values"])
        state = signed(self.name, f"{self.random.random()} " * 20)
        number = 1 + (found.checkpoint["channel_versions"]["body"] if found else 0)  # type: ignore[operator] # an int
        versions = dict.fromkeys(state, number)
        parent = found.config if found else at(thread, "")
        try:
            self.saver.put(parent, checkpoint(state, versions), {"by": self.name}, versions)
        except (ThreadDeletedError, ThreadBusyError) as error:
            self.counts[type(error).__name__] += 1

    def write_to_shared(self) -> None:
        """A task's writes, also signed."""
        thread = self.random.choice(SHARED)
        found = self.saver.get_tuple(at(thread))
        if found is None:
            return
        try:
            self.saver.put_writes(found.config, [("log", signed(self.name, "written"))], f"task {self.random.random()}")
        except (ThreadDeletedError, ThreadBusyError) as error:
            self.counts[type(error).__name__] += 1

    def read_shared(self) -> None:
        """Every checkpoint and every write of a thread is as it was signed."""
        for found in self.saver.list(at(self.random.choice(SHARED))):
            expect_signed(found.checkpoint["channel_values"])
            for _, _, value in found.pending_writes or []:
                expect_signed(value)

    def prune_shared(self) -> None:
        """Anyone may."""
        self.saver.prune([self.random.choice(SHARED)], keep_last=KEPT)

    def delete_shared(self) -> None:
        """One of them, seldom."""
        if self.random.random() < 0.2:
            self.saver.delete_thread(SHARED[-1])

    def lease(self) -> None:
        """A step under a lease, which other processes of both releases respect."""
        thread = "leased"
        try:
            with self.saver.lease(thread, on_busy="reject", ttl=2, holder=self.name) as lease:
                found = self.saver.get_tuple(at(thread))
                number = 1 + (found.checkpoint["channel_values"]["number"] if found else 0)
                config = found.config if found else at(thread, "")
                config["configurable"] = {**config["configurable"], **lease.config["configurable"]}
                state = {"number": number}
                self.saver.put(config, checkpoint(state, {"number": number}), {"by": self.name}, {"number": number})
                after = self.saver.get_tuple(at(thread))
                assert after is not None
                assert after.checkpoint["channel_values"] == state
        except (ThreadBusyError, LeaseLostError, ConflictError, CheckpointNotFoundError) as error:
            self.counts[type(error).__name__] += 1


def main(release: str, backend: str, url: str, name: str, folder: str, read_again: str) -> int:
    """Work as one process."""
    if backend == "redis":
        from threadmark_redis import formats

        formats.READ_AGAIN = float(read_again)
    if release == "new":
        from releases import next_release

        next_release.install(backend)
    journal = Journal(Path(folder) / f"{name}.journal")
    with opened(backend, url) as saver:
        worker = Worker(saver, name, journal)
        try:
            worker.work(Path(folder) / f"stop-{release}")
        except SchemaError as error:
            sys.stdout.write(json.dumps({"refused": str(error), "counts": worker.counts}))
            return REFUSED
    sys.stdout.write(json.dumps({"counts": worker.counts}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
