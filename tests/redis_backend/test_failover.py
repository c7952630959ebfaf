"""Nodes that die or change roles under load: the saver goes on, and everything the servers kept is there."""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
import redis

from client_log import ClientLog, Load, all_faults
from length import times
from patience import wait_until
from redis_backend.backends import OPTIONS
from redis_backend.cluster import RedisCluster
from redis_backend.processes import FORGETFUL, RedisProcess
from redis_backend.sentinel import Watched
from threadmark_redis import RedisSaver
from threadmark_redis.keys import thread_keys

_PUTS = 2000
_WRITERS = 8
_PAUSE = times(20, at_length=0) / 1000
"""Seconds that a writer waits after each step while a node is replaced, which takes many seconds."""

_PATIENT = {**OPTIONS, "timeout": 120}


def test_a_replica_takes_over_in_the_middle_of_two_thousand_puts() -> None:
    """Each master in turn hands over to its replica, which has everything before it is the master."""
    with RedisCluster() as cluster, RedisSaver(cluster.url, **_PATIENT) as saver:
        load = Load(saver, "load", _WRITERS)
        with load.running():
            for master in cluster.masters:
                load.wait_for(_PUTS // _WRITERS // 4)
                replica = cluster.replica_of(master)
                wait_until(partial(_takes_over, replica), "the replica does not take over")
            load.wait_for(_PUTS // _WRITERS // 4)
        assert load.acknowledged >= _PUTS
        with RedisSaver(cluster.url, **_PATIENT, cache_bytes=0) as cold:
            assert all_faults(load.logs, cold) == []


def test_a_cluster_goes_on_without_a_master_that_was_killed() -> None:
    with RedisCluster() as cluster, RedisSaver(cluster.url, **_PATIENT) as saver:
        early = _stored(saver, 40)
        for master in cluster.masters:
            master.wait_for_replicas()
        load = Load(saver, "load", _WRITERS, pause=_PAUSE)
        with load.running():
            load.wait_for(2)
            victim = cluster.masters[0]
            replica = cluster.replica_of(victim)
            victim.kill()
            with cluster.replacing():
                wait_until(lambda: _is_master(replica), "the replica does not take over")
            load.wait_for(2)
            victim.start()
            load.wait_for(2)
        late = _stored(saver, 40)
        assert all_faults(early + late, saver) == []
        assert [problem for log in load.logs for problem in saver.verify(log.thread_id).problems] == []


def test_sentinels_replace_a_master_that_was_killed() -> None:
    with Watched() as watched, RedisSaver(watched.url, **_PATIENT) as saver:
        first = watched.master
        early = _stored(saver, 10)
        first.wait_for_replicas()
        load = Load(saver, "load", _WRITERS, pause=_PAUSE)
        with load.running():
            load.wait_for(2)
            first.kill()
            watched.replace(first)
            load.wait_for(2)
            first.start()  # as a master, until the Sentinels tell it otherwise
            load.wait_for(2)
        late = _stored(saver, 10)
        assert all_faults(early + late, saver) == []
        assert [problem for log in load.logs for problem in saver.verify(log.thread_id).problems] == []


def test_what_a_replica_has_acknowledged_is_there_when_it_takes_over() -> None:
    with Watched() as watched:
        with RedisSaver(watched.url, **{**_PATIENT, "durability": "replicas:1"}) as saver:
            logs = _stored(saver, 4)
        first = watched.master
        first.kill()
        watched.replace(first)
        with RedisSaver(watched.url, **_PATIENT) as saver:
            assert all_faults(logs, saver) == []


@pytest.mark.parametrize("seed", range(3))
def test_what_a_server_has_lost_is_not_built_upon(seed: int) -> None:
    """It is back with an earlier state, as a replica that lagged behind is: the saver's memory must be proven."""
    chance = random.Random(seed)
    with RedisProcess(FORGETFUL).start() as server, RedisSaver(server.url, **_PATIENT) as saver:
        logs = [ClientLog(f"thread {number}") for number in range(4)]
        for log in logs:
            for _ in range(chance.randint(1, 3)):
                log.step(saver)
        server.command("SAVE")
        kept = [log.put for log in logs]
        for log in logs:
            for _ in range(chance.randint(1, 4)):
                log.step(saver)
        server.kill()
        server.start()
        for log, before in zip(logs, kept, strict=True):
            log.step(saver)
            found = [item.checkpoint["id"] for item in saver.list({"configurable": {"thread_id": log.thread_id}})]
            assert found == [log.ids[-1], *log.ids[:before][::-1]]
            assert saver.verify(log.thread_id, decode=True).problems == []


def test_a_slot_moves_while_its_thread_is_written() -> None:
    with RedisCluster(masters=2, replicas=0) as cluster, RedisSaver(cluster.url, **_PATIENT) as saver:
        load = Load(saver, "load", 2, pause=_PAUSE)
        slots = {log.thread_id: _slot(cluster, log.thread_id) for log in load.logs}
        with load.running():
            for _ in range(3):
                for log in load.logs:
                    load.wait_for(2)
                    _move(cluster, slots[log.thread_id], load.wait_for)
        assert all_faults(load.logs, saver) == []


def _move(cluster: RedisCluster, slot: int, wait_for: Callable[[int], None]) -> None:
    """Move a slot to the other master, key by key, under writes."""
    source = cluster.master_of_slot(slot)
    (target,) = (node for node in cluster.masters if node is not source)
    with cluster.moving(slot, target):
        while keys := source.command("CLUSTER", "GETKEYSINSLOT", slot, 1):
            cluster.migrate(keys, source, target)
    wait_for(1)


def _slot(cluster: RedisCluster, thread_id: str) -> int:
    keys = thread_keys(b"threadmark:", thread_id)
    return int(cluster.nodes[0].command("CLUSTER", "KEYSLOT", keys.head))


def _stored(saver: RedisSaver, threads: int) -> list[ClientLog]:
    """Threads of a few steps each, with their acknowledged writes."""
    logs = [ClientLog(f"{threads} threads, {random.random()}") for _ in range(threads)]
    for log in logs:
        for _ in range(3):
            log.step(saver)
    return logs


def _takes_over(replica: RedisProcess) -> bool:
    """Whether it has; it is asked again if it gave up, as it does on a busy machine after five seconds."""
    if _is_master(replica):
        return True
    with suppress(redis.ResponseError):  # it is the master by now
        replica.command("CLUSTER", "FAILOVER")
    until = time.monotonic() + 10
    while not _is_master(replica) and time.monotonic() < until:
        time.sleep(0.005)
    return _is_master(replica)


def _is_master(node: RedisProcess) -> bool:
    return bool(node.information("replication")["role"] == "master")
