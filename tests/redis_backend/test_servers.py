"""The servers that the tests start are as the tests assume, and none is left behind."""

import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from children import child, line_from
from patience import wait_until
from redis_backend import cluster as clusters
from redis_backend.cluster import SLOTS, RedisCluster
from redis_backend.processes import DURABLE, HOST, ROOT, RedisProcess
from redis_backend.proxy import Proxy
from redis_backend.sentinel import Watched

FORGOTTEN = """
import sys
sys.path.insert(0, sys.argv[1])
from redis_backend.processes import RedisProcess
server = RedisProcess({}).start()
print(server.folder, server.port, flush=True)
sys.stdin.readline()
"""


def test_a_durable_server_has_after_a_kill_what_it_acknowledged() -> None:
    with RedisProcess(DURABLE).start() as server:
        for number in range(50):
            server.client.set(f"key {number}", number)
        server.kill()
        server.start()
        assert [server.client.get(f"key {number}") for number in range(50)] == [b"%d" % number for number in range(50)]


def test_a_killed_test_run_leaves_no_server() -> None:
    run = child(FORGOTTEN, ROOT / "tests")
    folder, port = line_from(run.stdout).split()
    assert _answers(int(port))
    run.kill()
    run.communicate()
    wait_until(lambda: not (Path(folder).exists() or _answers(int(port))), "the server is still there")


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port)):
        return True
    return False


def test_without_a_server_it_is_said_what_to_do() -> None:
    command = [ROOT / "scripts" / "ensure-redis"]
    environment = {**os.environ, "REDIS_SERVER": "/nowhere/redis-server"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "set REDIS_SERVER" in done.stderr


def test_a_cluster_has_three_masters_with_a_replica_each() -> None:
    cluster = clusters.shared()
    owners = {cluster.master_of(b"key %d" % number).port for number in range(100)}
    assert owners == {master.port for master in cluster.masters}
    assert {cluster.replica_of(master).port for master in cluster.masters} == {
        node.port for node in cluster.nodes if node not in cluster.masters
    }


def test_a_slot_moves_with_its_keys() -> None:
    with RedisCluster(masters=2, replicas=0) as cluster, cluster.client() as client:
        client.set("key", "value")
        slot = client.keyslot("key")
        (target,) = (node for node in cluster.masters if node is not cluster.master_of(b"key"))
        assert 0 <= slot < SLOTS
        with cluster.moving(slot, target) as source:
            client.set("{key} while it moves", "value")
            cluster.migrate([b"key"], source, target)
            assert client.get("key") == b"value"
        assert cluster.master_of(b"key") is target
        assert (client.get("key"), client.get("{key} while it moves")) == (b"value", b"value")


def test_sentinels_make_the_replica_the_master_when_the_master_is_killed() -> None:
    with Watched() as watched:
        first = watched.master
        first.client.set("key", "value")
        assert first.client.wait(1, 60_000) == 1
        first.kill()
        watched.replace(first)
        now = watched.master
        assert now.client.get("key") == b"value"
        assert now.client.set("key", "another")


def test_replicas_are_waited_for_until_they_have_what_others_have_given_the_master() -> None:
    with Watched() as watched, redis.Redis(port=watched.master.port) as other:
        master, replica = watched.servers
        goes_on = threading.Event()

        def resume() -> None:
            goes_on.set()
            replica.resume()

        replica.suspend()
        other.set("key", "value")
        timer = threading.Timer(0.2, resume)
        timer.start()
        master.wait_for_replicas()
        assert goes_on.is_set()
        assert replica.client.get("key") == b"value"
        timer.join()


def test_a_proxy_counts_what_goes_through(proxy: Proxy, prefix: str) -> None:
    with redis.Redis(port=proxy.port) as client:
        client.set(f"{prefix}key", "value" * 100_000)
        assert client.get(f"{prefix}key") == b"value" * 100_000
        assert proxy.round_trips == 2
        with client.pipeline(transaction=False) as pipeline:
            pipeline.get(f"{prefix}key")
            pipeline.exists(f"{prefix}key")
            pipeline.execute()
        assert proxy.round_trips == 3
        assert proxy.commands[-4:] == ["SET", "GET", "GET", "EXISTS"]
        assert proxy.connections == 1


def test_a_proxy_loses_a_reply_after_the_command_was_executed(proxy: Proxy, server: RedisProcess, prefix: str) -> None:
    with redis.Redis(port=proxy.port, retry=Retry(NoBackoff(), 0)) as client:
        proxy.lose_reply("SET")
        with pytest.raises(redis.ConnectionError):
            client.set(f"{prefix}key", "value")
        assert server.client.get(f"{prefix}key") == b"value"
        assert client.get(f"{prefix}key") == b"value"


def test_a_proxy_holds_replies_back(proxy: Proxy, server: RedisProcess, prefix: str) -> None:
    with redis.Redis(port=proxy.port) as client:
        client.ping()
        answered = threading.Event()

        def ask() -> None:
            client.set(f"{prefix}key", "value")
            answered.set()

        asking = threading.Thread(target=ask)
        with proxy.holding():
            asking.start()
            wait_until(lambda: bool(server.client.exists(f"{prefix}key")), "the command does not arrive")
            assert not answered.is_set()
        asking.join(60)
        assert answered.is_set()


def test_the_client_is_not_hidden_by_the_tests() -> None:
    """A folder `tests/redis` would be a package of the client's name."""
    assert "site-packages" in Path(redis.__file__).parts
    assert "redis_backend" not in sys.modules["redis"].__name__
