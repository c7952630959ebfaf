"""Ports for the servers of tests. No two processes get the same one, be they of one test run or of two.

From the moment when a port is chosen until its server listens, the port is free, and another process could take
it. Then one server does not start, and the other is taken for it: nodes of a cluster give up one that is a stranger.
"""

import functools
import itertools
import os
import random
import socket
from collections.abc import Iterator
from contextlib import suppress

_HOST = "127.0.0.1"

BUS = 10_000
"""So far above its port a node of a Redis Cluster listens for the others."""

AT_ONCE = 100
"""A process reserves so many ports at a time."""

_OFTEN = 5
"""So many times it gets some. One that runs for days leaves the rest to others, and gives its own again."""

_RANGES = [range(first, first + AT_ONCE) for first in range(12_000, 22_000, AT_ONCE)]
"""They and their buses are below the ports that the kernel gives to outgoing connections.

A server that is down for a moment would not get its port back otherwise, and a client that looks for it could be
connected with itself.
"""


def free_port() -> int:
    """A port that is free, like that of its bus, and that no other process gets."""
    return next(_ports())


def reserve(ports: range) -> bool:
    """Have these ports to oneself until this process ends. Returns False if another process has them.

    Their owner has bound the UDP port of the first number, which no server here uses: the kernel gives it to one
    process only, of any user, and takes it back when that ends.
    """
    with socket.socket(type=socket.SOCK_DGRAM) as mark, suppress(OSError):
        mark.bind((_HOST, ports.start))
        mark.detach()
        return True
    return False


@functools.cache
def _ports() -> Iterator[int]:
    """The free ones among those of this process. When all are used, they are used again, the oldest first."""
    ranges = filter(reserve, random.SystemRandom().sample(_RANGES, len(_RANGES)))
    own = itertools.chain.from_iterable(itertools.islice(ranges, _OFTEN))
    return filter(_is_free, itertools.cycle(own))


os.register_at_fork(after_in_child=_ports.cache_clear)


def _is_free(port: int) -> bool:
    """Whether a server can listen there. Connections of one that has ended do not matter to it."""
    with socket.socket() as one, socket.socket() as other, suppress(OSError):
        for each, number in ((one, port), (other, port + BUS)):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.bind((_HOST, number))
        return True
    return False
