"""The drill of docs/how-to/back-up.md: a database is backed up under a writer, restored elsewhere, and goes on."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

import threadmark
from patience import wait_until
from postgres.cluster import server_binaries, shared
from postgres.steps import step, thread
from redis_backend.processes import DURABLE, RedisProcess, program

PAGE = (Path(__file__).parent.parent / "docs" / "how-to" / "back-up.md").read_text(encoding="utf-8")
NAME = "drill"


def _commands(heading: str) -> list[str]:
    """The blocks of commands of a section."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


def _run(commands: str, folder: Path, names: Mapping[str, str] = {}, programs: Path | None = None) -> None:
    """Run the commands of a block, with its made-up addresses replaced by these."""
    for made_up, meant in names.items():
        commands = commands.replace(made_up, meant)
    commands = re.sub(r"^threadmark ", f'"{sys.executable}" -m threadmark_cli ', commands, flags=re.MULTILINE)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}" if programs else os.environ["PATH"]
    done = subprocess.run(
        ["/bin/sh", "-ec", commands],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{commands}: {done.stdout}{done.stderr}"


@contextmanager
def _a_writer(url: str) -> Iterator[list[str]]:
    """Someone who puts without a pause; the ids of acknowledged checkpoints."""
    acknowledged: list[str] = []
    ends = threading.Event()

    def store() -> None:
        config = thread(NAME)
        with threadmark.open(url) as saver:
            while not ends.is_set():
                config = saver.put(config, *step(len(acknowledged), 0))
                acknowledged.append(config["configurable"]["checkpoint_id"])

    writer = threading.Thread(target=store)
    writer.start()
    try:
        wait_until(lambda: len(acknowledged) > 20, "the writer stores nothing")
        yield acknowledged
        stored = len(acknowledged)
        wait_until(lambda: len(acknowledged) > stored, "the writer was stopped by the backup")
    finally:
        ends.set()
        writer.join()


def _expect(url: str, before: list[str], everything: list[str]) -> None:
    """Checkpoints acknowledged before the backup are there, nothing is missing in between, and the thread goes on."""
    with threadmark.open(url) as saver:
        found = [each.config["configurable"]["checkpoint_id"] for each in saver.list(thread(NAME))][::-1]
        assert found == everything[: len(found)]
        assert len(found) >= len(before)
        assert saver.verify().problems == []
        config = saver.put(thread(NAME, found[-1]), *step(len(found), 0))
        newest = saver.get_tuple(thread(NAME))
        assert newest is not None
        assert newest.config["configurable"]["checkpoint_id"] == config["configurable"]["checkpoint_id"]
        assert newest.checkpoint["channel_values"]["count"] == len(found)


def test_the_drill_on_sqlite(tmp_path: Path) -> None:
    back_up, restore = _commands("SQLite")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with _a_writer(f"sqlite:///{tmp_path / 'agents.db'}") as acknowledged:
        before = acknowledged[:]
        _run(back_up, tmp_path)
    shutil.copy(tmp_path / "backup.db", elsewhere)
    _run(restore, elsewhere)
    _expect(f"sqlite:///{elsewhere / 'agents.db'}", before, acknowledged)


def test_a_backup_takes_the_place_of_the_database(tmp_path: Path) -> None:
    back_up, restore = _commands("SQLite")
    with _a_writer(f"sqlite:///{tmp_path / 'agents.db'}") as acknowledged:
        before = acknowledged[:]
        _run(back_up, tmp_path)
    _run(restore, tmp_path)
    _expect(f"sqlite:///{tmp_path / 'agents.db'}", before, acknowledged)


def test_the_drill_on_postgres(tmp_path: Path) -> None:
    back_up, restore = _commands("Postgres")
    server = shared()
    source, target = "drill_source", "drill_restored"
    for name in (source, target):
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    url = server.database(source)
    names = {
        "postgresql://app@db/postgres restored": f"{server.url} {target}",
        "postgresql://app@db/restored": url.replace(source, target),
        "postgresql://app@db/agents": url,
    }
    try:
        with _a_writer(url) as acknowledged:
            before = acknowledged[:]
            _run(back_up, tmp_path, names, server_binaries())
        _run(restore, tmp_path, names, server_binaries())
        _expect(names["postgresql://app@db/restored"], before, acknowledged)
    finally:
        for name in (source, target):
            server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def test_the_drill_on_redis(tmp_path: Path) -> None:
    back_up, restore = _commands("Redis")
    if not (Path(program()).with_name("redis-cli").exists() or shutil.which("redis-cli")):
        pytest.skip("redis-cli is not installed")
    programs = Path(program()).parent
    with RedisProcess(DURABLE) as server, RedisProcess({"appendonly": "no"}) as other:
        server.start()
        with _a_writer(server.url) as acknowledged:
            before = acknowledged[:]
            _run(back_up, tmp_path, {"redis://db:6379": server.url}, programs)
        shutil.copy(tmp_path / "backup.rdb", other.folder / "dump.rdb")
        other.start()
        _run(restore, tmp_path, {"redis://new:6379": other.url}, programs)
        _expect(other.url, before, acknowledged)
