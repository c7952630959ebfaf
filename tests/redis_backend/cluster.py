"""Redis Clusters of the tests' own: formed before they start, by the file in which each node remembers the others."""

import atexit
import functools
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Self

import redis
from redis.crc import key_slot

from patience import wait_until
from redis_backend.processes import HOST, RedisProcess, bus_port
from redis_backend.proxy import Proxy

SLOTS = 16_384

_PATIENT = 60_000
"""Milliseconds of silence after which a node is replaced: a busy machine is no failure."""

_HASTY = 1_000
"""The same, while a test waits for a dead one to be replaced."""


class RedisCluster:
    """Masters that share the slots evenly, each with as many replicas as asked.

    With `behind_proxies` every node has a proxy, and the cluster tells its clients the proxies' ports.
    """

    def __init__(
        self,
        masters: int = 3,
        replicas: int = 1,
        *,
        behind_proxies: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._stack = ExitStack()
        own = {
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-node-timeout": str(_PATIENT),
            "cluster-replica-validity-factor": "0",
            "cluster-allow-replica-migration": "no",
            **(settings or {}),
        }
        count = masters * (1 + replicas)
        self.nodes = [self._stack.enter_context(RedisProcess(own)) for _ in range(count)]
        self.proxies = [self._stack.enter_context(Proxy(node.port)) for node in self.nodes] if behind_proxies else []
        self._settings_of_node = own
        self._ids = [secrets.token_hex(20) for _ in self.nodes]
        self.masters: Sequence[RedisProcess] = self.nodes[:masters]
        """Those that were masters when the cluster was formed."""
        for node, proxy in zip(self.nodes, self.proxies, strict=False):
            node.configure([f"cluster-announce-port {proxy.port}", f"cluster-announce-bus-port {bus_port(node.port)}"])
        self._ports = [known.port for known in self.proxies or self.nodes]
        """The ports that the nodes tell others, in their order."""
        for number, node in enumerate(self.nodes):
            (node.folder / "nodes.conf").write_text("".join(self._known_to(number, masters)))
        for node in self.nodes:
            node.launch()
        self.wait()

    @property
    def url(self) -> str:
        """The URL of the whole cluster, which names all nodes."""
        return f"redis+cluster://{','.join(f'{HOST}:{port}' for port in self._ports)}"

    def client(self) -> redis.RedisCluster:
        """A client for the tests, which answers with bytes. The caller closes it."""
        return redis.RedisCluster(host=HOST, port=self._ports[0])

    @contextmanager
    def replacing(self) -> Iterator[None]:
        """Have a node that is silent replaced at once, for the time of the block."""
        self._set_patience(_HASTY)
        try:
            yield
        finally:
            self._set_patience(_PATIENT)

    def _set_patience(self, milliseconds: int) -> None:
        for node in self.nodes:
            with suppress(redis.ConnectionError):  # the dead one has the patience of its settings when it is back
                node.command("CONFIG", "SET", "cluster-node-timeout", milliseconds)

    def wait(self, within: float = 60) -> None:
        """Wait until every node that runs takes commands, and every replica has its master's data."""
        for node in self.nodes:
            node.wait(within)
            wait_until(partial(_is_well, node), f"the node at {node.port} is not well", within=within)

    def master_of(self, key: bytes) -> RedisProcess:
        """The present owner of a key's slot."""
        return self.master_of_slot(key_slot(key))

    def master_of_slot(self, slot: int) -> RedisProcess:
        """The present owner of a slot."""
        return self._at(self._ranges()[slot][0])

    def replica_of(self, master: RedisProcess) -> RedisProcess:
        """A replica of this master."""
        for node in self.nodes:
            role = node.information("replication")
            if role["role"] == "slave" and self._at(role["master_port"]) is master:
                return node
        raise AssertionError(f"the node at {master.port} has no replica")

    @contextmanager
    def moving(self, slot: int, target: RedisProcess) -> Iterator[RedisProcess]:
        """Within it, a slot is on its way: commands for its keys are redirected. Yields the old owner."""
        source = self.master_of_slot(slot)
        target.command("CLUSTER", "SETSLOT", slot, "IMPORTING", self._id(source))
        source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", self._id(target))
        yield source
        # One that was to prove a change has expired, and counts until the server notices.
        count = partial(source.command, "CLUSTER", "COUNTKEYSINSLOT", slot)
        wait_until(lambda: count() == 0, f"keys of slot {slot} stay at {source.port}")
        for node in (target, source, *(each for each in self.masters if each not in (source, target))):
            node.command("CLUSTER", "SETSLOT", slot, "NODE", self._id(target))

    def migrate(self, keys: Sequence[bytes], source: RedisProcess, target: RedisProcess) -> None:
        """Move keys of a slot that is on its way."""
        source.command("MIGRATE", HOST, target.port, "", 0, 30_000, "KEYS", *keys)

    def join(self) -> RedisProcess:
        """Start a further master, which has no slots yet."""
        node = self._stack.enter_context(RedisProcess(self._settings_of_node)).start()
        known = self.nodes[0]
        node.command("CLUSTER", "MEET", HOST, known.port, bus_port(known.port))
        self.nodes.append(node)
        self.masters = [*self.masters, node]
        self._ports.append(node.port)
        self._ids.append(node.command("CLUSTER", "MYID").decode())
        for each in self.nodes:
            wait_until(partial(_knows, each, len(self.nodes)), f"the node at {each.port} does not know the others")
        self.wait()
        return node

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _known_to(self, number: int, masters: int) -> Iterator[str]:
        """The memory of the node of this number about all."""
        for other, (node, port) in enumerate(zip(self.nodes, self._ports, strict=True)):
            place = f"{self._ids[other]} {HOST}:{port}@{bus_port(node.port)}"
            myself = "myself," if other == number else ""
            if other < masters:
                first, last = other * SLOTS // masters, (other + 1) * SLOTS // masters - 1
                yield f"{place} {myself}master - 0 0 {other + 1} connected {first}-{last}\n"
            else:
                master = self._ids[(other - masters) % masters]
                yield f"{place} {myself}slave {master} 0 0 {(other - masters) % masters + 1} connected\n"
        yield f"vars currentEpoch {masters} lastVoteEpoch 0\n"

    def _ranges(self) -> dict[int, list[int]]:
        """For each slot the ports of its nodes, the master's first, as the first node that answers says."""
        for node in self.nodes:
            try:
                ranges: Any = node.command("CLUSTER", "SLOTS")
            except redis.ConnectionError:
                continue
            found: dict[int, list[int]] = {}
            for first, last, *nodes in ranges:
                found |= {slot: [int(each[1]) for each in nodes] for slot in range(first, last + 1)}
            return found
        raise AssertionError("no node answers")

    def _at(self, port: int) -> RedisProcess:
        return self.nodes[self._ports.index(port)]

    def _id(self, node: RedisProcess) -> str:
        return self._ids[self.nodes.index(node)]


def _knows(node: RedisProcess, count: int) -> bool:
    cluster: Any = node.command("CLUSTER", "INFO")
    return b"cluster_known_nodes:%d\r" % count in cluster


def _is_well(node: RedisProcess) -> bool:
    cluster: Any = node.command("CLUSTER", "INFO")
    replication = node.information("replication")
    is_master = replication["role"] == "master"
    return b"cluster_state:ok" in cluster and (is_master or replication["master_link_status"] == "up")


@functools.cache
def shared() -> RedisCluster:
    """The cluster of all tests that need no separate one; it ends with the process."""
    cluster = RedisCluster()
    atexit.register(cluster.__exit__)
    return cluster
