"""The statements of docs/how-to/redis.md about servers' settings, their users and the report are true of a server."""

import asyncio
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from redis_backend.backends import OPTIONS
from redis_backend.cluster import RedisCluster
from redis_backend.processes import FORGETFUL, HOST, RedisProcess
from threadmark import new_id
from threadmark_redis import RedisSaver

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "redis.md").read_text(encoding="utf-8")
SETTINGS, USER = re.findall(r"^```conf\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

THREAD: Any = {"configurable": {"thread_id": "one", "checkpoint_ns": ""}}


def _checkpoint() -> Any:
    return {
        "v": 4,
        "id": new_id(),
        "ts": "2026-11-20T12:00:00+00:00",
        "channel_values": {"messages": ["hello"] * 100},
        "channel_versions": {"messages": 1},
        "versions_seen": {},
    }


def _use(saver: RedisSaver) -> None:
    """Ask for all kinds of things."""
    stored = saver.put(THREAD, _checkpoint(), {"step": 1}, {"messages": 1})
    saver.put_writes(stored, [("messages", "more")], "task")
    assert saver.get_tuple(stored) is not None
    assert len(list(saver.list(None))) == 1
    with saver.lease("one"):
        pass
    assert saver.copy_thread("one", "two")
    assert saver.stats().threads == 2
    assert saver.verify().problems == []
    assert saver.delete_thread("two")
    assert saver.delete_thread("one")


@pytest.fixture(scope="module")
def server() -> Iterator[RedisProcess]:
    """A server with the settings and the user of the page."""
    with RedisProcess({}) as process:
        process.configure([*SETTINGS.splitlines(), USER.strip()])
        yield process.start()


def test_the_settings_and_the_user_of_the_page_are_enough(server: RedisProcess) -> None:
    for durability in ("full", "memory"):
        with RedisSaver(f"redis://threadmark:password@{HOST}:{server.port}", durability=durability) as saver:
            saver.setup()
            _use(saver)
            (found,) = saver.report().servers
            assert (found.runs_scripts, found.append_only, found.fsync, found.waits_for_disk) == (
                True,
                True,
                "always",
                True,
            )
            assert found.forbidden == ()
            assert saver.report().warnings == ()


def test_a_report_says_what_may_lose_threads(caplog: pytest.LogCaptureFixture) -> None:
    with RedisProcess({**FORGETFUL, "maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"}) as server:
        server.start()
        with RedisSaver(server.url, **OPTIONS) as saver:
            (warning,) = saver.report().warnings
            assert "allkeys-lru" in warning
            assert "noeviction" in warning
            assert warning in caplog.text
            assert saver.report() == asyncio.run(saver.areport())
            (found,) = saver.report().servers
            assert found.max_memory == 100 * 1024 * 1024
        server.client.config_set("maxmemory-policy", "volatile-ttl")
        with RedisSaver(server.url, **OPTIONS) as lasting:
            assert lasting.report().warnings == ()
        with RedisSaver(server.url, ttl=timedelta(hours=1), **OPTIONS) as expiring:
            (warning,) = expiring.report().warnings
            assert "volatile-ttl" in warning


def test_a_report_on_a_cluster_has_every_master() -> None:
    with RedisCluster(replicas=0) as cluster:
        cluster.masters[1].client.config_set("maxmemory-policy", "allkeys-lfu")
        with RedisSaver(cluster.url, **OPTIONS) as saver:
            report = saver.report()
            assert {each.address for each in report.servers} == {f"{HOST}:{node.port}" for node in cluster.masters}
            assert all(each.runs_scripts and each.is_cluster for each in report.servers)
            (warning,) = report.warnings
            assert str(cluster.masters[1].port) in warning
        with RedisSaver(cluster.masters[0].url, **OPTIONS) as lost:
            assert any("redis+cluster://" in warning for warning in lost.report().warnings)


def test_a_report_needs_no_prefix_that_is_unicode(server: RedisProcess) -> None:
    with RedisSaver(server.url, prefix="\udcff", **OPTIONS) as saver:
        assert [each.runs_scripts for each in saver.report().servers] == [True]


def test_a_report_says_that_scripts_are_forbidden() -> None:
    with RedisProcess(FORGETFUL) as server:
        server.start()
        server.command("ACL", "SETUSER", "some", "on", ">secret", "~*", "+@all", "-@scripting", "-config", "-info")
        with RedisSaver(f"redis://some:secret@{HOST}:{server.port}", **OPTIONS) as saver:
            report = saver.report()
            (found,) = report.servers
            assert not found.runs_scripts
            assert found.forbidden == ("INFO", "CONFIG")
            assert (found.server, found.eviction, found.append_only) == (None, None, None)
            assert any("runs no scripts" in warning for warning in report.warnings)
