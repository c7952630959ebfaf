"""The server of each slot: the only server, the one that Sentinels name, or a node of a cluster.

A `Conversation` is a flow that asks for exchanges with servers, and for pauses. Remembered addresses are replaced as a
whole, so that threads and event loops share them without a lock.
"""

import logging
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from redis.crc import key_slot

from threadmark.backends import Flow, Pause
from threadmark_redis.driver.connecting import Address, Servers
from threadmark_redis.driver.facts import Facts
from threadmark_redis.driver.failures import Failure, Lost, Refused
from threadmark_redis.driver.log import log
from threadmark_redis.steps import Command


class Exchange(NamedTuple):
    """Commands to send to a server at once."""

    address: Address
    commands: Sequence[Command]
    change: bytes | None = None
    """A key that the commands change, if any. The exchange then ends with proofs that the change is durable."""
    sentinel: bool = False
    """Whether the server is a Sentinel, which is not greeted."""
    opens: bool = True
    """Whether a connection may be opened for it. If one is needed and may not be opened, the outcome is `UNOPENED`."""


class Answered(NamedTuple):
    """One reply for each command; one that is an error is a `Refused`."""

    replies: Sequence[Any]
    proofs: Sequence[Any] = ()
    facts: Facts | None = None


Outcome = Answered | Failure
"""The outcome of an exchange. It failed as a whole if there was no connection, or the connection was refused."""

ASKING: Command = ("ASKING",)
"""Lets a node execute the next command for a slot that is on its way to it."""

UNOPENED = Refused("UNOPENED", "no connection is open")

Conversation = Flow[Exchange | Pause, Any]


def slot_of(key: bytes) -> int:
    """Return the slot of a key, the same for all keys of a thread."""
    return int(key_slot(key))


class Topology(Protocol):
    """The addresses of slots. Failures are raised as `Unreachable`."""

    def locate(self, slot: int) -> Conversation:
        """Return the address of the server that has a slot."""

    def masters(self) -> Conversation:
        """Return the addresses of all servers that have slots."""

    def exchange(self, asked: Exchange) -> Conversation:
        """Return the outcome of an exchange with a server that was found here."""

    def forget(self, address: Address) -> None:
        """Look up addresses again before the next exchange, because this server failed."""

    def moved(self, slot: int, address: Address) -> None:
        """Remember the new server of a slot, as another server named it."""


class UnreachableError(Exception):
    """No server tells where a slot is. The caller waits and asks again."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


class Single:
    """One server."""

    def __init__(self, servers: Servers) -> None:
        self._address = servers.addresses[0]

    def locate(self, slot: int) -> Conversation:  # noqa: ARG002 - it has all
        """Return the server's address."""
        yield from ()
        return self._address

    def masters(self) -> Conversation:
        """Return the server's address alone."""
        yield from ()
        return [self._address]

    def exchange(self, asked: Exchange) -> Conversation:
        """Return the outcome."""
        return (yield asked)

    def forget(self, address: Address) -> None:
        """Do nothing, because there is only one address."""

    def moved(self, slot: int, address: Address) -> None:
        """Never called: a redirection of a single server is refused earlier."""


class Sentinels:
    """The server that Sentinels say is the master."""

    def __init__(self, servers: Servers) -> None:
        self._sentinels: Sequence[Address] = servers.addresses
        self._service = servers.service
        self._master: Address | None = None

    def locate(self, slot: int) -> Conversation:  # noqa: ARG002 - it has all
        """Return the master's address."""
        if self._master is None:
            self._master = yield from self._ask()
        return self._master

    def masters(self) -> Conversation:
        """Return the master's address alone."""
        return [(yield from self.locate(0))]

    def exchange(self, asked: Exchange) -> Conversation:
        """Return the outcome. Before a connection is opened, a Sentinel must confirm that this is the master.

        A master that was replaced comes back as a master until a Sentinel makes it a replica; changes that it accepts
        are lost.
        """
        outcome = yield asked._replace(opens=False)
        if outcome is not UNOPENED:
            return outcome
        try:
            self._master = master = yield from self._ask()
        except UnreachableError as error:
            return error.failure
        if master != asked.address:
            return Refused("REPLACED", f"{master} is the master, no longer {asked.address}")
        return (yield asked)

    def forget(self, address: Address) -> None:
        """Ask the Sentinels again."""
        if address == self._master:
            self._master = None

    def moved(self, slot: int, address: Address) -> None:
        """Never called: a redirection of a single server is refused earlier."""

    def _ask(self) -> Conversation:
        said: Failure = Lost("no Sentinel answers")
        for sentinel in self._sentinels:
            command = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service)
            outcome = yield Exchange(sentinel, [command], sentinel=True)
            if not isinstance(outcome, Answered):
                said = outcome
                continue
            (reply,) = outcome.replies
            if isinstance(reply, list):
                # The next one to ask.
                self._sentinels = tuple(dict.fromkeys((sentinel, *self._sentinels)))
                return Address(reply[0].decode(), int(reply[1]))
            said = reply if isinstance(reply, Refused) else Refused("REPLICA", f"{sentinel} knows no {self._service!r}")
        raise UnreachableError(said)


class _Slots(NamedTuple):
    """Ranges of slots, in ascending order: the first slot, the last one, and the node of each."""

    begins: Sequence[int]
    ends: Sequence[int]
    owners: Sequence[Address]
    replicas: Sequence[Address]
    """The replicas of all slots. They know the new owner when no owner answers."""

    def owner(self, slot: int) -> Address | None:
        at = bisect_right(self.begins, slot) - 1
        return self.owners[at] if at >= 0 and slot <= self.ends[at] else None


class Cluster:
    """The nodes of a cluster."""

    def __init__(self, servers: Servers) -> None:
        self._seeds = servers.addresses
        self._slots: _Slots | None = None
        self._strays: dict[int, Address] = {}
        """Slots that have moved to another node since the nodes were asked."""
        self._stale = True
        self._failed: Address | None = None
        """The node that failed last, which is asked last: it may take long to be silent."""

    def locate(self, slot: int) -> Conversation:
        """Return the address of the node that has a slot."""
        found = self._strays.get(slot)
        if found is None or self._stale:
            slots = yield from self._current()
            found = self._strays.get(slot) or slots.owner(slot)
        if found is None:
            self._stale = True
            raise UnreachableError(Refused("CLUSTERDOWN", f"no node has slot {slot}"))
        return found

    def masters(self) -> Conversation:
        """Return the addresses of all nodes that have slots, as they are now: one may have joined without a failure."""
        self._stale = True
        slots = yield from self._current()
        return sorted(set(slots.owners))

    def exchange(self, asked: Exchange) -> Conversation:
        """Return the outcome. A node that was replaced refuses commands until it knows the others."""
        return (yield asked)

    def forget(self, address: Address) -> None:
        """Ask the nodes again: another may have taken over from any."""
        self._stale = True
        self._failed = address

    def moved(self, slot: int, address: Address) -> None:
        """Remember one slot. Only a failure makes all nodes be asked: while slots move, every step would ask them."""
        if len(self._strays) >= _MANY_STRAYS:
            self._stale = True
        self._strays = {**self._strays, slot: address}

    def _current(self) -> Conversation:
        if self._slots is not None and not self._stale:
            return self._slots
        known = (self._slots.owners, self._slots.replicas) if self._slots else ((), ())
        said: Failure = Lost("no node answers")
        nodes = dict.fromkeys([*known[0], *self._seeds, *known[1]])
        for address in sorted(nodes, key=lambda node: node == self._failed):
            outcome = yield Exchange(address, [("CLUSTER", "SLOTS")])
            if not isinstance(outcome, Answered):
                said = outcome
                continue
            (reply,) = outcome.replies
            if isinstance(reply, Refused):
                said = reply
                continue
            if not reply:  # it came back without its files, or was taken out of the cluster
                said = Refused("CLUSTERDOWN", f"{address} knows no slots")
                continue
            self._slots, self._strays, self._stale = _slots(reply, address), {}, False
            log.note(logging.DEBUG, "asked %s for the cluster's slots", str(address))
            return self._slots
        raise UnreachableError(said)


_MANY_STRAYS = 64


def _slots(reply: Sequence[Any], asked: Address) -> _Slots:
    """Return the slots in a node's answer. A node that does not know its own name is at the address that was asked."""
    rows = sorted((each for each in reply), key=lambda row: int(row[0]))
    nodes = [[Address((host or b"").decode() or asked.host, int(port)) for host, port, *_ in row[2:]] for row in rows]
    replicas = [each for owner_first in nodes for each in owner_first[1:]]
    return _Slots(
        [int(row[0]) for row in rows], [int(row[1]) for row in rows], [owner for owner, *_ in nodes], replicas
    )


def topology_of(servers: Servers) -> Topology:
    """Return the topology for these servers."""
    kinds: dict[str, type[Single | Sentinels | Cluster]] = {
        "single": Single,
        "sentinel": Sentinels,
        "cluster": Cluster,
    }
    return kinds[servers.layout](servers)
