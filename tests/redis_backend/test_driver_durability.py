"""The reach of an acknowledged change: proven, waited for and counted, or refused before anything is stored."""

import asyncio
import math
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import pytest

from patience import wait_until
from redis_backend.cluster import RedisCluster
from redis_backend.drivers import adding, driver_of, members
from redis_backend.processes import DURABLE, FORGETFUL, HOST, RedisProcess
from redis_backend.sentinel import Watched
from threadmark import ConfigError, TransientStoreError
from threadmark_redis.driver import durability_of

KEY = b"{one}"


@pytest.fixture(scope="module")
def own() -> Iterator[RedisProcess]:
    """A server whose settings the tests change."""
    with RedisProcess(DURABLE) as process:
        yield process.start()


@contextmanager
def _with(server: RedisProcess, **settings: str) -> Iterator[RedisProcess]:
    names = {name.replace("_", "-"): value for name, value in settings.items()}
    for name, value in names.items():
        server.client.config_set(name, value)
    try:
        yield server
    finally:
        for name in names:
            server.client.config_set(name, {**DURABLE, "no-appendfsync-on-rewrite": "no"}[name])


def test_full_durability_is_proven_by_the_servers_settings(own: RedisProcess) -> None:
    driver = driver_of(own.url, durability="full")
    assert driver.run(adding(KEY, 1)) == 1
    asyncio.run(driver.arun(adding(KEY, 2)))
    ((facts, _),) = driver.survey()
    assert facts.syncs_before_replying
    driver.close()
    own.client.delete(KEY)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"appendfsync": "everysec"}, "appendfsync everysec"),
        ({"appendfsync": "no"}, "appendfsync no"),
        ({"appendonly": "no"}, "appendonly no"),
        ({"no_appendfsync_on_rewrite": "yes"}, "no-appendfsync-on-rewrite yes"),
    ],
)
def test_a_server_that_does_not_wait_for_its_disk_is_refused(
    own: RedisProcess, settings: dict[str, str], found: str
) -> None:
    with _with(own, **settings):
        driver = driver_of(own.url, durability="full")
        for attempt in (lambda: driver.run(adding(KEY, 1)), driver.start, lambda: asyncio.run(driver.astart())):
            with pytest.raises(ConfigError, match=found) as caught:
                attempt()
            assert "durability='memory'" in str(caught.value)
        driver.close()
        assert own.client.exists(KEY) == 0
        allowed = driver_of(own.url, durability="memory")
        assert allowed.run(adding(KEY, 1)) == 1
        allowed.close()
        own.client.delete(KEY)


def test_a_server_whose_settings_are_forbidden_is_refused_with_the_way_out(own: RedisProcess) -> None:
    own.command("ACL", "SETUSER", "tenant", "on", ">secret", "~*", "+@all", "-config", "-info")
    url = f"redis://tenant:secret@{HOST}:{own.port}"
    driver = driver_of(url, durability="full")
    with pytest.raises(ConfigError, match=r"forbids CONFIG GET.*durability='memory'"):
        driver.run(adding(KEY, 1))
    driver.close()
    allowed = driver_of(url, durability="memory")
    assert allowed.run(adding(KEY, 1)) == 1
    ((facts, runs_scripts),) = allowed.survey()
    assert (facts.forbidden, facts.append_only, facts.fsync, runs_scripts) == (("INFO", "CONFIG"), None, None, True)
    allowed.close()
    own.client.delete(KEY)


def test_a_server_that_was_started_anew_with_other_settings_is_refused() -> None:
    with RedisProcess(DURABLE) as server:
        server.start()
        driver = driver_of(server.url, durability="full")
        driver.run(adding(KEY, 1))
        server.stop()
        server.configure(["appendfsync everysec"])
        server.start()
        with pytest.raises(ConfigError, match="everysec"):
            driver.run(adding(KEY, 2))
        assert driver_of(server.url).run(members(KEY)) == [[b"1"]]
        driver.close()


def test_every_master_of_a_cluster_is_asked_before_anything_is_stored() -> None:
    with RedisCluster(replicas=0, settings=DURABLE) as cluster:
        driver = driver_of(cluster.url, durability="full")
        assert driver.run(adding(KEY, 1)) == 1
        driver.close()
        careless = next(node for node in cluster.masters if node is not cluster.master_of(KEY))
        careless.client.config_set("appendfsync", "no")
        driver = driver_of(cluster.url, durability="full")
        with pytest.raises(ConfigError, match=f"{careless.port} acknowledges"):
            driver.run(adding(KEY, 2))
        driver.close()


def test_a_change_waits_for_as_many_replicas_as_asked() -> None:
    with Watched(replicas=1, settings=FORGETFUL) as watched:
        url = f"redis://{HOST}:{watched.servers[0].port}"
        driver = driver_of(url, durability="replicas:1")
        assert driver.run(adding(KEY, 1)) == 1
        assert watched.servers[1].client.smembers(KEY) == {b"1"}
        assert asyncio.run(driver.arun(adding(KEY, 1))) == 0, "a change that was made already is waited for, too"
        driver.close()
        more = driver_of(url, durability="replicas:2", timeout=0.2)
        with pytest.raises(TransientStoreError, match="1 of 2 replicas"):
            more.run(adding(KEY, 2))
        more.close()


def test_a_change_that_waits_for_replicas_while_its_server_becomes_one_is_made_again() -> None:
    """The server ends the wait with an error: UNBLOCKED."""
    with Watched(replicas=1, settings=FORGETFUL) as watched:
        master, replica = watched.servers
        driver = driver_of(master.url, durability="replicas:1", timeout=60)
        assert driver.run(adding(KEY, 1)) == 1
        replica.suspend()
        done: list[Any] = []
        waiting = threading.Thread(target=lambda: done.append(driver.run(adding(KEY, 2))))
        waiting.start()
        wait_until(lambda: master.information("clients")["blocked_clients"] == 1, "it does not wait")
        master.command("REPLICAOF", HOST, replica.port)
        master.command("REPLICAOF", "NO", "ONE")
        replica.resume()
        waiting.join(60)
        assert done == [0], "it was made by the first attempt"
        driver.close()


@pytest.mark.parametrize("text", ["fully", "replicas:0", "replicas:", "replicas:x", None, 1])
def test_a_durability_that_there_is_not_is_refused(text: object) -> None:
    with pytest.raises(ConfigError, match="'full', 'memory' or 'replicas:1'"):
        durability_of(text)


class _KnowsWaitaof(socketserver.BaseRequestHandler):
    """Forwards to a server, and answers WAITAOF itself, which the server of the tests may be too old for."""

    waited: list[bytes]
    on_disk: int
    slow: float = math.inf
    """From which question on it says that everything is on the disk."""
    target: int

    def handle(self) -> None:
        with socket.create_connection((HOST, self.target)) as server:
            incoming, replies = self.request.makefile("rb"), server.makefile("rb")
            while command := _command(incoming):
                if command[0].upper() == b"WAITAOF":
                    self.waited.append(b" ".join(command))
                    on_disk = 1 if len(self.waited) >= self.slow else self.on_disk
                    self.request.sendall(b"*2\r\n:%d\r\n:0\r\n" % on_disk)
                    continue
                server.sendall(b"*%d\r\n" % len(command) + b"".join(b"$%d\r\n%b\r\n" % (len(x), x) for x in command))
                self.request.sendall(_reply(replies))


def _command(file: BinaryIO) -> list[bytes]:
    line = file.readline()
    return [_bulk(file) for _ in range(int(line[1:]))] if line else []


def _bulk(file: BinaryIO) -> bytes:
    length = int(file.readline()[1:])
    return file.read(length + 2)[:-2]


def _reply(file: BinaryIO) -> bytes:
    line = file.readline()
    if line[:1] == b"$" and int(line[1:]) >= 0:
        return line + file.read(int(line[1:]) + 2)
    if line[:1] == b"*":
        return line + b"".join(_reply(file) for _ in range(int(line[1:])))
    return line


@contextmanager
def _knowing_waitaof(server: RedisProcess, on_disk: int) -> Iterator[Any]:
    handler: Any = type("Handler", (_KnowsWaitaof,), {"waited": [], "on_disk": on_disk, "target": server.port})
    with socketserver.ThreadingTCPServer((HOST, 0), handler) as listener:
        listener.daemon_threads = True
        listener.block_on_close = False
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        handler.url = f"redis://{HOST}:{listener.server_address[1]}"
        yield handler
        listener.shutdown()


def test_where_the_server_knows_waitaof_every_change_waits_for_the_disk(own: RedisProcess) -> None:
    with _with(own, appendfsync="everysec"), _knowing_waitaof(own, on_disk=1) as handler:
        driver = driver_of(handler.url, durability="full")
        assert driver.run(adding(KEY, 1)) == 1
        greeted = len(handler.waited)
        assert driver.run(adding(KEY, 2)) == 1
        assert driver.run(members(KEY)) == [[b"1", b"2"]], "reading waits for nothing"
        assert len(handler.waited) == greeted + 1
        assert handler.waited[-1].startswith(b"WAITAOF 1 0 ")
        driver.close()
        own.client.delete(KEY)


def test_a_change_that_does_not_reach_the_disk_is_not_acknowledged(own: RedisProcess) -> None:
    with _with(own, appendfsync="everysec"), _knowing_waitaof(own, on_disk=0) as handler:
        driver = driver_of(handler.url, durability="full", timeout=0.1)
        with pytest.raises(TransientStoreError, match="not on the server's disk"):
            driver.run(adding(KEY, 1))
        driver.close()
        own.client.delete(KEY)


def test_a_change_that_is_not_on_the_disk_yet_is_asked_for_again(own: RedisProcess) -> None:
    with _with(own, appendfsync="everysec"), _knowing_waitaof(own, on_disk=0) as handler:
        handler.slow = 4
        driver = driver_of(handler.url, durability="full")
        assert driver.run(adding(KEY, 1)) == 0, "it was made by the first attempt"
        assert len(handler.waited) == 4
        driver.close()
        own.client.delete(KEY)
