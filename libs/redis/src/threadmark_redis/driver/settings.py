"""The settings of a Redis saver: which servers it uses, and how."""

import math
import re
from typing import NamedTuple

from threadmark.backends import ConfigError, short_repr
from threadmark_redis.driver.connecting import Servers


class Durability(NamedTuple):
    """The places that a change must have reached when it is acknowledged."""

    disk: bool
    replicas: int = 0


_REPLICAS = re.compile(r"replicas:([1-9]\d{0,2})")


def durability_of(text: object) -> Durability:
    """Return the durability for an option's value. Raises ConfigError if the value is unknown."""
    if text == "full":
        return Durability(disk=True)
    if text == "memory":
        return Durability(disk=False)
    found = _REPLICAS.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ConfigError(
            f"durability must be 'full', 'memory' or 'replicas:1' (or another number), not {short_repr(text)}"
        )
    return Durability(disk=False, replicas=int(found[1]))


class Settings(NamedTuple):
    """The options of one saver that concern its servers."""

    servers: Servers
    durability: Durability
    pool_size: int
    timeout: float
    """Seconds for which an operation is tried again while a server cannot be reached, or refuses for now."""
    prefix: str = ""
    """The beginning of every key."""
    grace: int = 0
    """For how many milliseconds a thread that has expired stays."""
    expires: bool = False
    """Whether the saver's threads have an expiry."""
    may_be_evicted: bool = False
    """Whether the server may evict stored data without a loss, as in a cache."""
    slow: float = math.inf
    """Seconds from which a transaction is logged as slow."""

    def __str__(self) -> str:
        return str(self.servers)

    @property
    def proof_milliseconds(self) -> int:
        """How long a server may take to bring a change to its disk or to replicas, before it is asked again."""
        longest = float(self.servers.connecting.parameters.get("socket_timeout") or 10.0)
        return max(int(500 * min(longest, max(self.timeout, 0.01), 10.0)), 1)
