"""Slots that move and masters that change, seen by the driver: a step goes to the right server, and is done once."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from redis.crc import key_slot

from patience import wait_until
from redis_backend.cluster import RedisCluster
from redis_backend.drivers import adding, driver_of, echoing, members, running, script
from redis_backend.processes import FORGETFUL, HOST, RedisProcess
from redis_backend.sentinel import NAME, Watched
from threadmark import ConfigError, StoreError, TransientStoreError
from threadmark.backends import Pause, play
from threadmark.program import Transaction
from threadmark_redis.driver import RedisDriver
from threadmark_redis.driver.connecting import Address, Connecting, Servers
from threadmark_redis.driver.topology import Answered, Cluster, Exchange, Sentinels
from threadmark_redis.steps import all_keys, run_each


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisCluster]:
    """A cluster whose slots the tests move."""
    with RedisCluster(replicas=0) as running_cluster:
        yield running_cluster


def _both(driver: RedisDriver, transaction: Transaction[Any]) -> list[Any]:
    return [driver.run(transaction), asyncio.run(driver.arun(transaction))]


def _other(cluster: RedisCluster, master: RedisProcess) -> RedisProcess:
    return next(node for node in cluster.masters if node is not master)


def test_a_step_over_several_slots_is_answered_in_its_order(cluster: RedisCluster) -> None:
    driver = driver_of(cluster.url)
    keys = [b"{%d}several" % number for number in range(20)]
    assert len({cluster.master_of(key).port for key in keys}) == 3
    for number, key in enumerate(keys):
        driver.run(adding(key, number))
    expected = [[b"%d" % number] for number in range(20)]
    assert _both(driver, members(*keys)) == [expected, expected]
    driver.close()


def test_a_slot_that_has_moved_is_followed(cluster: RedisCluster) -> None:
    key = b"{moved}set"
    driver = driver_of(cluster.url)
    assert driver.run(adding(key, 1)) == 1
    for member in (2, 3):
        target = _other(cluster, cluster.master_of(key))
        with cluster.moving(key_slot(key), target) as source:
            cluster.migrate([key], source, target)
        assert driver.run(adding(key, member)) == 1
        assert cluster.master_of(key) is target
    assert _both(driver, members(key)) == [[[b"1", b"2", b"3"]]] * 2
    driver.close()


def test_keys_on_their_way_are_asked_for_where_they_are(cluster: RedisCluster) -> None:
    there, gone = b"{way}there", b"{way}gone"
    driver = driver_of(cluster.url)
    driver.run(adding(there, 1))
    driver.run(adding(gone, 2))
    target = _other(cluster, cluster.master_of(there))
    with cluster.moving(key_slot(there), target) as source:
        cluster.migrate([gone], source, target)
        assert _both(driver, members(there, gone, b"{way}none")) == [[[b"1"], [b"2"], []]] * 2
        assert driver.run(adding(gone, 3)) == 1
        assert driver.run(adding(there, 3)) == 1
        cluster.migrate([there], source, target)
    assert driver.run(members(there, gone)) == [[b"1", b"3"], [b"2", b"3"]]
    driver.close()


def test_a_script_whose_keys_are_apart_waits_until_they_are_together(cluster: RedisCluster) -> None:
    keys = [b"{apart}one", b"{apart}two"]
    both = "return redis.call('SADD', KEYS[1], ARGV[1]) + redis.call('SADD', KEYS[2], ARGV[1])"
    driver = driver_of(cluster.url)
    assert driver.run(running(both, keys, 1)) == 2
    target = _other(cluster, cluster.master_of(keys[0]))
    done: list[Any] = []
    waiting = threading.Thread(target=lambda: done.append(driver.run(running(both, keys, 2))))
    with cluster.moving(key_slot(keys[0]), target) as source:
        cluster.migrate(keys[:1], source, target)
        hasty = driver_of(cluster.url, timeout=0.1)
        with pytest.raises(TransientStoreError, match="TRYAGAIN"):
            hasty.run(running(both, keys, 2))
        hasty.close()
        waiting.start()
        cluster.migrate(keys[1:], source, target)
    waiting.join(60)
    assert done == [2]
    assert driver.run(members(*keys)) == [[b"1", b"2"]] * 2
    driver.close()


def test_a_script_for_each_of_some_keys_on_their_way_is_made_known_to_both_nodes(cluster: RedisCluster) -> None:
    there, gone = b"{each}there", b"{each}gone"
    driver = driver_of(cluster.url)
    driver.run(adding(there, 1))
    driver.run(adding(gone, 2))
    counting = script("return redis.call('SCARD', KEYS[1])")
    target = _other(cluster, cluster.master_of(there))
    with cluster.moving(key_slot(there), target) as source:
        cluster.migrate([gone], source, target)
        counted = Transaction(run_each, (counting, [([key], ()) for key in (there, gone)]))
        assert _both(driver, counted) == [[1, 1]] * 2
        cluster.migrate([there], source, target)
    driver.close()


def test_keys_of_two_slots_are_refused_with_advice(cluster: RedisCluster) -> None:
    driver = driver_of(cluster.url)
    with pytest.raises((StoreError, ValueError), match="one slot"):
        driver.run(running("return 1", [b"{a}", b"{b}"]))
    driver.close()


def test_a_cluster_is_known_by_any_of_its_nodes(cluster: RedisCluster) -> None:
    gone = RedisProcess(FORGETFUL)
    places = ",".join(f"{HOST}:{node.port}" for node in (gone, *cluster.nodes[1:]))
    driver = driver_of(f"redis+cluster://{places}")
    assert driver.run(echoing(b"{any}", b"well")) == b"well"
    assert len(driver.survey()) == 3
    driver.close()
    gone.__exit__()


def test_a_node_that_knows_no_slots_is_passed_over(cluster: RedisCluster) -> None:
    """It was taken out of the cluster, or came back without its files."""
    with RedisProcess({"cluster-enabled": "yes"}).start() as lone:
        driver = driver_of(f"redis+cluster://{HOST}:{lone.port},{HOST}:{cluster.nodes[0].port}")
        assert _both(driver, echoing(b"{any}", b"well")) == [b"well"] * 2
        driver.close()
        lost = driver_of(f"redis+cluster://{HOST}:{lone.port}", timeout=0.1)
        with pytest.raises(TransientStoreError, match=f"{lone.port} knows no slots"):
            lost.run(echoing(b"{any}", b"well"))
        lost.close()


def test_the_node_that_failed_is_the_last_to_be_asked_for_the_slots() -> None:
    """If it is silent, each question to it takes as long as an answer may."""
    nodes = [Address("one", 6379), Address("two", 6379)]
    topology = Cluster(Servers("cluster", tuple(nodes), Connecting("tcp", {})))
    asked: list[Address] = []

    def answer(exchange: Exchange | Pause) -> Answered:
        assert isinstance(exchange, Exchange)
        asked.append(exchange.address)
        return Answered([[[0, 8191, [b"one", 6379]], [8192, 16383, [b"two", 6379]]]])

    assert play(topology.locate(0), answer) == nodes[0]
    topology.forget(nodes[0])
    assert play(topology.masters(), answer) == nodes
    assert asked == nodes


def test_a_change_waits_for_replicas_where_its_slot_arrives() -> None:
    key = b"{arrives}set"
    with RedisCluster(masters=2, replicas=1) as cluster:
        driver = driver_of(cluster.url, durability="replicas:1", timeout=60)
        driver.run(adding(key, 1))
        target = _other(cluster, cluster.master_of(key))
        hasty = driver_of(cluster.url, durability="replicas:1", timeout=5)
        with cluster.moving(key_slot(key), target) as source:
            cluster.migrate([key], source, target)
            assert _both(hasty, adding(key, 2)) == [1, 0]
        assert cluster.replica_of(target).client.keys() == [key]
        hasty.close()
        driver.close()


@pytest.mark.parametrize(
    ("scheme", "path", "remedy"),
    [
        ("redis+cluster", "", "no node of a cluster: write redis:// in the URL"),
        ("redis+sentinel", "/main/0", r"no Sentinel: give the addresses of Sentinels.* or write redis:// in the URL"),
    ],
)
def test_a_server_of_another_kind_than_the_url_says_so(
    server: RedisProcess, scheme: str, path: str, remedy: str
) -> None:
    driver = driver_of(f"{scheme}://{HOST}:{server.port}{path}", timeout=5)
    with pytest.raises(ConfigError, match=remedy):
        driver.run(echoing(b"{any}", b"well"))
    driver.close()


def test_a_node_that_has_joined_is_asked_for_its_keys() -> None:
    """Nothing has failed since the driver asked for the slots, and no command was redirected."""
    keys = {b"{%d}joined" % number for number in range(4)}
    with RedisCluster(masters=2, replicas=0) as cluster:
        driver = driver_of(cluster.url)
        for key in keys:
            driver.run(adding(key, 1))
        found = Transaction(all_keys, (b"*joined",))
        assert list(map(set, _both(driver, found))) == [keys, keys]
        joined = cluster.join()
        with cluster.moving(key_slot(b"{0}joined"), joined) as source:
            cluster.migrate([b"{0}joined"], source, joined)
        assert list(map(set, _both(driver, found))) == [keys, keys]
        assert len(driver.survey()) == 3
        driver.close()


def test_a_replica_that_has_taken_over_a_cluster_is_found() -> None:
    with RedisCluster(masters=3, replicas=1) as cluster:
        driver = driver_of(cluster.url, timeout=60)
        key = b"{over}set"
        driver.run(adding(key, 1))
        master = cluster.master_of(key)
        wait_until(cluster.replica_of(master).client.ping, "the replica is away")
        master.kill()
        with cluster.replacing():
            assert _both(driver, adding(key, 2)) == [1, 0]
        driver.close()


def test_the_server_that_sentinels_chose_is_found() -> None:
    with Watched(replicas=1) as watched:
        driver = driver_of(watched.url, timeout=60)
        driver.run(adding(b"set", 1))
        old = watched.master
        old.kill()
        with watched.replacing():
            assert _both(driver, adding(b"set", 2)) == [1, 0]
        # The Sentinel that reported it need not be the first, which the others inform of it.
        wait_until(lambda: watched.master is not old, "the first Sentinel does not hear of it")
        driver.close()


def test_a_new_connection_leads_to_whom_the_sentinels_call_the_master_now() -> None:
    """One that was replaced while nothing was asked of it is back, as a master, until a Sentinel tells it otherwise."""
    with Watched() as watched:
        drivers = [driver_of(watched.url, timeout=60) for _ in range(2)]
        for driver in drivers:
            asyncio.run(driver.arun(adding(b"set", 0)))  # the connections end with the event loop
        old = watched.master
        old.kill()
        watched.replace(old)
        old.start()
        assert drivers[0].run(adding(b"set", 1)) == 1
        assert asyncio.run(drivers[1].arun(adding(b"set", 2))) == 1
        assert watched.master.client.smembers("set") >= {b"1", b"2"}
        for driver in drivers:
            driver.close()


def test_a_master_that_was_replaced_behind_its_back_is_left() -> None:
    """It is cut off from the Sentinels and from its replicas, and goes on to answer its connected clients."""
    with Watched(replicas=0) as watched, RedisProcess(FORGETFUL).start() as other:
        driver = driver_of(watched.url, timeout=60)
        assert driver.run(adding(b"set", 1)) == 1
        watched.master.command("CONFIG", "SET", "min-replicas-to-write", 1)  # from now on it answers NOREPLICAS
        _watch_instead(watched, other)
        assert _both(driver, adding(b"set", 2)) == [1, 0]
        assert other.client.smembers("set") == {b"2"}
        driver.close()


def test_a_master_whose_replica_follows_another_one_is_left() -> None:
    """It takes the change, and no replica acknowledges it: the answer is UNPROVEN, and the Sentinels are asked."""
    with Watched() as watched, RedisProcess(FORGETFUL).start() as other:
        old, replica = watched.servers
        driver = driver_of(f"{watched.url}?socket_timeout=2", durability="replicas:1", timeout=60)
        assert driver.run(adding(b"set", 1)) == 1
        _watch_instead(watched, other)
        replica.command("REPLICAOF", HOST, other.port)
        wait_until(lambda: old.information("replication")["connected_slaves"] == 0, "the replica stays")
        other.wait_for_replicas()
        assert _both(driver, adding(b"set", 2)) == [1, 0]
        assert old.client.smembers("set") == {b"1", b"2"}, "it was asked first"
        assert other.client.smembers("set") == replica.client.smembers("set") == {b"2"}
        driver.close()


def _watch_instead(watched: Watched, other: RedisProcess) -> None:
    """Have the Sentinels call another server the master, and let them leave the others alone."""
    for sentinel in watched.sentinels:
        sentinel.command("SENTINEL", "REMOVE", NAME)
    for sentinel in watched.sentinels:
        sentinel.command("SENTINEL", "MONITOR", NAME, HOST, other.port, 2)


def test_threads_may_ask_the_sentinels_at_once() -> None:
    """Each puts the one that answered before the others."""
    places = tuple(Address(f"sentinel{number}", 26379) for number in range(3))
    sentinels = Sentinels(Servers("sentinel", places, Connecting("tcp", {}), NAME))
    knows, knows_nothing = Answered([[b"master", b"6379"]]), Answered([None])

    def ask(last: int) -> Any:
        def answer(asked: Exchange | Pause) -> Answered:
            return knows if isinstance(asked, Exchange) and asked.address == places[last] else knows_nothing

        sentinels.forget(Address("master", 6379))
        return play(sentinels.locate(0), answer)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            found = set(threads.map(ask, [number % 3 for number in range(30_000)], chunksize=1))
    finally:
        sys.setswitchinterval(usual)
    assert found == {Address("master", 6379)}


def test_sentinels_that_are_away_are_passed_over_and_a_wrong_name_is_told() -> None:
    with Watched(replicas=0) as watched:
        watched.sentinels[0].kill()
        driver = driver_of(watched.url)
        assert driver.run(echoing(b"any", b"well")) == b"well"
        driver.close()
        wrong = driver_of(watched.url.replace("mymaster", "other"), timeout=0.1)
        with pytest.raises(TransientStoreError, match="'other'"):
            wrong.run(echoing(b"any", b"well"))
        wrong.close()
