"""Processes of two releases use one database at the same time, are killed, and then the format is switched."""

import json
import logging
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from length import times
from patience import wait_until
from releases.databases import BACKENDS, READ_AGAIN, Database, made, on_its_own, python
from releases.worker import REFUSED, at, checkpoint
from threadmark import SchemaError
from threadmark_redis import formats

SECONDS = float(os.environ.get("THREADMARK_RELEASES_SECONDS") or times(3, at_length=120))
"""How long both releases write the earlier format."""

AFTER = min(SECONDS / 3, 20.0)
"""How long the next one goes on after the switch."""

_WORKER = Path(__file__).with_name("worker.py")


@pytest.fixture(params=BACKENDS)
def database(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """An empty database of format 1."""
    monkeypatch.setattr(formats, "READ_AGAIN", float(READ_AGAIN))
    with made(request.param, tmp_path) as found:
        yield found


class Processes:
    """Processes of both releases, which are killed at random and started again."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database, self.folder = database, folder
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.releases: dict[str, str] = {}
        self._begun: dict[str, int] = {}
        """How long each journal was when its process was started, with the empty line that this begins with."""
        self.counts: dict[str, Counter[str]] = {"old": Counter(), "new": Counter()}
        self.refusals: list[str] = []
        self.kills = 0

    def start(self, name: str, release: str | None = None) -> None:
        """Start a process, or start it again, perhaps as one of another release."""
        release = self.releases[name] = release or self.releases.get(name) or name.partition("-")[0]
        journal = self.folder / f"{name}.journal"
        self._begun[name] = journal.stat().st_size + 1 if journal.exists() else 1
        about = (release, self.database.backend, self.database.url, name, self.folder, READ_AGAIN)
        self.running[name] = python(str(_WORKER), *about)

    def let_work(self, seconds: float) -> None:
        """Let them work, and kill one about every second: one that has done something since it was started."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(random.uniform(0.3, 1.7))
            self.expect_well()
            at_work = [name for name in self.running if self._is_at_work(name)]
            if at_work:
                name = random.choice(at_work)
                self.running[name].kill()
                self.running[name].communicate()
                self.kills += 1
                self.start(name)
        wait_until(lambda: all(map(self._is_at_work, self.running)), "a process does nothing")
        self.expect_well()

    def _is_at_work(self, name: str) -> bool:
        journal = self.folder / f"{name}.journal"
        return journal.exists() and journal.stat().st_size > self._begun[name]

    def expect_well(self) -> None:
        """Fail with the output of a process that has ended by itself."""
        for name, process in self.running.items():
            if process.poll() is not None:
                raise AssertionError(f"{name} ended with {process.returncode}: {process.communicate()}")

    def stop(self, release: str) -> None:
        """Let the processes of a release end, and read their results."""
        (self.folder / f"stop-{release}").touch()
        for name in [name for name in self.running if self.releases[name] == release]:
            process = self.running.pop(name)
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
            self.counts[release].update(json.loads(out)["counts"])

    def expect_refused(self, release: str) -> None:
        """Wait until every process of a release was refused."""
        for name in [name for name in self.running if self.releases[name] == release]:
            process = self.running.pop(name)
            out, err = process.communicate(timeout=120)
            assert process.returncode == REFUSED, err
            self.refusals.append(json.loads(out)["refused"])
            self.counts[release].update(json.loads(out)["counts"])

    def acknowledged(self, release: str) -> int:
        """How many changes to their own threads processes of a release have made, also those that were killed."""
        return sum(path.read_text().count('"is": "done"') for path in self.folder.glob(f"{release}-*.journal"))

    def kill_all(self) -> None:
        """Leave nothing behind."""
        for process in self.running.values():
            process.kill()
            process.communicate()


@pytest.fixture
def processes(database: Database, tmp_path: Path) -> Iterator[Processes]:
    """Two of each release."""
    found = Processes(database, tmp_path)
    for name in ("old-1", "old-2"):
        found.start(name)
    yield found
    found.kill_all()


def test_two_releases_write_one_database_until_it_is_upgraded(database: Database, processes: Processes) -> None:
    on_its_own(database, "setup")  # while old processes write
    for name in ("new-1", "new-2"):
        processes.start(name)
    processes.let_work(SECONDS)
    assert database.added() == (0, 0)
    processes.expect_well()

    assert on_its_own(database, "upgrade") == "1 2 0.2.0"
    there = database.written_by("old")
    processes.expect_refused("old")
    assert len(processes.refusals) == 2
    assert all("is written in format 2" in each and "upgrade threadmark-" in each for each in processes.refusals)

    processes.start("old-1")  # one that starts later
    processes.expect_refused("old")
    processes.let_work(AFTER)
    processes.stop("new")
    assert database.written_by("old") <= there
    columns, notes = database.added()
    assert columns > 0
    assert notes >= columns
    _expect_sound(database)
    assert processes.kills > 0
    assert min(processes.counts[release]["add_to_shared"] for release in ("old", "new")) > 0
    acknowledged = {release: processes.acknowledged(release) for release in ("old", "new")}
    logging.getLogger(__name__).info("%s: %d kills, changes: %s", database.backend, processes.kills, acknowledged)


def test_nothing_is_lost_by_going_back_before_the_switch(database: Database, processes: Processes) -> None:
    on_its_own(database, "setup")
    for name in ("new-1", "new-2"):
        processes.start(name)
    processes.let_work(SECONDS / 3)
    processes.stop("new")
    there = database.written_by("new")
    processes.expect_well()
    for name in ("new-1", "new-2"):  # old ones take their places, and know what they wrote
        processes.start(name, release="old")
    processes.let_work(SECONDS / 3)
    processes.stop("old")
    assert database.added() == (0, 0)
    assert there
    _expect_sound(database)


@pytest.mark.parametrize("least_reader", [1, 2])
def test_a_process_of_the_earlier_release_reads_if_it_may(database: Database, least_reader: int) -> None:
    with database.opened() as saver:
        saver.put(at("one"), checkpoint({"a": 1}, {"a": 1}), {"by": "old"}, {"a": 1})
        on_its_own(database, "upgrade", least_reader)
        with pytest.raises(SchemaError, match="upgrade threadmark-"):
            saver.put(at("one"), checkpoint({"a": 2}, {"a": 2}), {"by": "old"}, {"a": 2})
    with database.opened() as saver, pytest.raises(SchemaError, match="upgrade threadmark-"):
        saver.setup()
    with database.for_reading() as saver:
        if least_reader == 1:
            found = saver.get(at("one"))
            assert found is not None
            assert found["channel_values"] == {"a": 1}
        else:
            with pytest.raises(SchemaError, match="at least format 2 to read"):
                saver.get(at("one"))


def _expect_sound(database: Database) -> None:
    with database.for_reading() as saver:
        assert saver.verify(decode=True).problems == []
