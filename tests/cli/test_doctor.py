"""The findings of `threadmark doctor`, and the way out that it names."""

import platform
from pathlib import Path

import pytest

from cli.running import in_pipe, json_lines
from postgres.cluster import shared
from redis_backend.processes import DURABLE, FORGETFUL, RedisProcess
from threadmark.format import stored
from threadmark.runtime import compiled
from threadmark_cli import diagnosis
from threadmark_cli.diagnosis import of_packages
from threadmark_conformance.engine import at, checkpoint
from threadmark_redis import RedisSaver
from threadmark_sqlite import SqliteSaver


def test_a_sound_database_has_nothing_at_fault(database: str) -> None:
    ran = in_pipe("doctor", database)
    assert (ran.code, ran.err) == (0, "")
    assert "fault" not in ran.out
    findings = json_lines(in_pipe("doctor", database, "--json"))
    assert {finding["check"] for finding in findings} >= {"packages", "connection", "database", "threads"}
    (threads,) = (finding for finding in findings if finding["check"] == "threads")
    assert threads["finding"] == "5 threads, the newest of which reads well"


def test_settings_that_lose_threads_are_warned_of() -> None:
    with RedisProcess({**FORGETFUL, "maxmemory": "64mb", "maxmemory-policy": "allkeys-lru"}).start() as server:
        with RedisSaver(server.url, durability="memory") as saver:
            saver.create_thread("one")
        ran = in_pipe("doctor", server.url, "-o", "durability=memory")
        assert ran.code == 0
        assert "warning settings" in ran.out
        assert "docs/how-to/redis.md" in ran.out
        assert in_pipe("doctor", server.url, "-o", "durability=memory", "--strict").code == 1


def test_a_database_without_tables_gets_none() -> None:
    url = shared().database("cli_doctor")
    try:
        for _ in range(2):
            ran = in_pipe("doctor", url)
            assert ran.code == 0
            assert "there are no tables of Threadmark here yet" in ran.out
        assert "the server answers: look at user" in in_pipe("doctor", f"{url}_2").out
        assert in_pipe("threads", url).code == 5
        assert "there are no tables of Threadmark here yet" in in_pipe("doctor", url).out
    finally:
        shared().execute("DROP DATABASE cli_doctor WITH (FORCE)")


@pytest.mark.parametrize("url", ["postgresql://nobody@127.0.0.1:1/none", "redis://127.0.0.1:1/0"])
def test_what_cannot_be_reached_is_exit_code_5(url: str) -> None:
    ran = in_pipe("doctor", url)
    assert ran.code == 5
    assert "fault   connection" in ran.out
    assert "look whether the server runs, and at the URL" in ran.out
    assert in_pipe("threads", url).code == 5


def test_a_file_that_cannot_be_opened_is_no_matter_of_a_server(tmp_path: Path) -> None:
    database = tmp_path / "agents.db"
    with SqliteSaver(database) as saver:
        saver.create_thread("one")
    Path(f"{database}-wal").mkdir()  # it fails as for a user without rights, for any user
    ran = in_pipe("doctor", str(database))
    assert ran.code == 5
    assert "check that its folder exists, who may read and write them, and how many files may be open" in ran.out
    assert "look at the file, and at who may use it" in ran.out


def test_a_package_that_is_missing_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = tmp_path / "agents.db"
    with SqliteSaver(database) as saver:
        values = {"text": " ".join(map(str, range(2000)))}
        saver.put(at("one", ""), checkpoint(values), {}, {"text": 1})
    monkeypatch.setattr(stored, "_INSTALLED", False)
    (threads,) = (each for each in json_lines(in_pipe("doctor", str(database), "--json")) if each["check"] == "threads")
    assert (threads["level"], threads["way_out"]) == ("fault", "install the package that it names")
    assert "pip install 'threadmark[zstd]'" in str(threads["finding"])


def test_packages_of_different_releases_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"threadmark": "0.1.0", "threadmark-speed": "0.1.0", "threadmark-sqlite": "0.2.0"}
    monkeypatch.setattr(diagnosis, "_version", versions.get)
    first, *others = of_packages()
    assert (first.level, first.check) == ("fault", "packages")
    assert "threadmark-sqlite 0.2.0" in first.finding
    assert {other.level for other in others} == {"ok"}


def test_it_says_which_code_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    last = list(of_packages())[-1]
    assert (last.level, last.finding) == ("ok", f"implementation: {compiled.implementation()}")
    monkeypatch.setattr(compiled, "IS_BROKEN", True)
    last = list(of_packages())[-1]
    assert (last.level, last.way_out) == ("fault", "install threadmark-speed again, in the version of threadmark")


@pytest.mark.parametrize(("python", "level"), [("CPython", "warning"), ("PyPy", "ok")])
def test_a_compiled_part_that_should_be_there_is_missed(
    python: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "_version", {"threadmark": "0.1.0"}.get)
    monkeypatch.setattr(platform, "python_implementation", lambda: python)
    assert list(of_packages())[-1].level == level


def test_a_long_log_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agents.db"
    monkeypatch.setattr(diagnosis, "_LARGE_LOG", 1000)
    with SqliteSaver(path) as saver:
        saver.create_thread("one")
        assert path.with_name("agents.db-wal").stat().st_size > 1000
        ran = in_pipe("doctor", str(path))
    assert "some process keeps a transaction open" in ran.out


@pytest.mark.parametrize("fsync", ["everysec", "no"])
def test_redis_that_does_not_wait_for_its_disk_is_read_and_warned_of(fsync: str) -> None:
    with RedisProcess({**DURABLE, "appendfsync": fsync, "no-appendfsync-on-rewrite": "no"}).start() as server:
        with RedisSaver(server.url, durability="memory") as saver:
            saver.create_thread("one", title="a lamp")
            waits = saver.report().servers[0].waits_for_disk
        assert "a lamp" in in_pipe("threads", server.url).out
        ran = in_pipe("doctor", server.url)
        assert ran.code == 0, ran.out
        assert ("acknowledges changes before they are on its disk" in ran.out) is not waits
        assert "acknowledges changes" not in in_pipe("doctor", server.url, "-o", "durability=memory").out
        if not waits:
            refused = in_pipe("rename", server.url, "one", "two")
            assert refused.code == 2
            assert "durability='full' cannot be kept" in refused.err
