"""A master with replicas, and three Sentinels that watch it: the tests' own, and acquainted before they start."""

import atexit
import functools
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Self

import redis

from patience import wait_until
from redis_backend.processes import HOST, RedisProcess

NAME = "mymaster"
"""The name of the master among Sentinels."""

_SENTINELS, _QUORUM = 3, 2
_PATIENT = 60_000
"""Milliseconds of silence after which a master is taken for dead: a busy machine is no failure."""
_HASTY = 500
"""The same, while a test waits for a dead one to be replaced."""


class Watched:
    """The servers, the first of which is the master at the start, and their Sentinels."""

    def __init__(self, replicas: int = 1, *, settings: Mapping[str, str] | None = None) -> None:
        self._stack = ExitStack()
        master = self._stack.enter_context(RedisProcess(settings or {}))
        following = {**(settings or {}), "replicaof": f"{HOST} {master.port}"}
        self.servers = [master, *(self._stack.enter_context(RedisProcess(following)) for _ in range(replicas))]
        self.sentinels = [self._stack.enter_context(RedisProcess({}, sentinel=True)) for _ in range(_SENTINELS)]
        ids = [secrets.token_hex(20) for _ in self.sentinels]
        for number, sentinel in enumerate(self.sentinels):
            sentinel.configure(self._known_to(number, ids))
        for process in (*self.servers, *self.sentinels):
            process.launch()
        self.wait()

    @property
    def url(self) -> str:
        """The URL of the master, by its Sentinels."""
        places = ",".join(f"{HOST}:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{places}/{NAME}"

    @property
    def master(self) -> RedisProcess:
        """Whom the Sentinels call the master now."""
        return self._named_by(self.sentinels[0])

    def replace(self, dead: RedisProcess) -> None:
        """Have a dead master replaced at once. Every Sentinel names another one then, and goes on to."""
        with self.replacing():
            wait_until(lambda: dead not in map(self._named_by, self.sentinels), "a Sentinel has done nothing")

    def _named_by(self, sentinel: RedisProcess) -> RedisProcess:
        address: Any = sentinel.command("SENTINEL GET-MASTER-ADDR-BY-NAME", NAME)
        (found,) = (server for server in self.servers if server.port == int(address[1]))
        return found

    def wait(self, within: float = 60) -> None:
        """Wait until everybody answers and the replicas have the master's data."""
        for process in (*self.servers, *self.sentinels):
            process.wait(within)
        for server in self.servers:
            wait_until(partial(_is_well, server), f"the server at {server.port} is not well", within=within)

    @contextmanager
    def replacing(self) -> Iterator[None]:
        """Have a master that is silent replaced at once, for the time of the block."""
        self._set_patience(_HASTY)
        try:
            yield
        finally:
            self._set_patience(_PATIENT)

    def _set_patience(self, milliseconds: int) -> None:
        for sentinel in self.sentinels:
            sentinel.command("SENTINEL", "SET", NAME, "down-after-milliseconds", milliseconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _known_to(self, number: int, ids: Sequence[str]) -> list[str]:
        """The memory of the Sentinel of this number about everybody."""
        master, *replicas = self.servers
        others = [other for other in range(_SENTINELS) if other != number]
        return [
            f"sentinel myid {ids[number]}",
            f"sentinel monitor {NAME} {HOST} {master.port} {_QUORUM}",
            f"sentinel down-after-milliseconds {NAME} {_PATIENT}",
            f"sentinel failover-timeout {NAME} 10000",
            *(f"sentinel known-replica {NAME} {HOST} {replica.port}" for replica in replicas),
            *(f"sentinel known-sentinel {NAME} {HOST} {self.sentinels[each].port} {ids[each]}" for each in others),
        ]


def _is_well(server: RedisProcess) -> bool:
    try:
        replication = server.information("replication")
    except redis.ConnectionError:
        return False
    return bool(replication["role"] == "master" or replication["master_link_status"] == "up")


@functools.cache
def shared() -> Watched:
    """The servers of all tests that need no separate ones; they end with the process."""
    watched = Watched()
    atexit.register(watched.__exit__)
    return watched
