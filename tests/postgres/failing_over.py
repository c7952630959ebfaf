"""A failover under load: the primary is killed, paused or cut off while several clients store, each by another route.

Each client stores one thread, step after step, and notes which steps were acknowledged, and when.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from patience import wait_until
from postgres.patroni import Node, Topology
from postgres.steps import step, thread
from threadmark_postgres import PostgresSaver

FAULTS: dict[str, tuple[Callable[[Node], None], Callable[[Node], None]]] = {
    "killed": (Node.kill, Node.start),
    "paused": (Node.pause, Node.resume),
    "cut off": (Node.cut_off, Node.reconnect),
}
"""The accidents of the primary, and the ends of them."""

_NOTICED_LATER = {("paused", "libpq")}
"""Nothing tells a client that is connected to a server directly that it stands still: it waits until that goes on."""

_STEPS = 20
"""So many steps each client stores before the fault, after the failover, and when the node is back."""


@dataclass
class Outcome:
    """The effects of a failover on the stored checkpoints."""

    acknowledged: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    """Steps that were acknowledged and are not there, for each route to the primary."""
    lost_later: dict[str, int] = field(default_factory=dict)
    """Those of them that were acknowledged after the longest wait, so after the failover."""
    damaged: int = 0
    """The findings of `verify`."""
    errors: list[str] = field(default_factory=list)
    """The errors that clients got."""
    waited: dict[str, float] = field(default_factory=dict)
    """The longest time between two acknowledged steps, in seconds, for each route to the primary."""


class _Client:
    """Stores one conversation in the background."""

    def __init__(self, route: str, url: str) -> None:
        self.route = route
        self.ids: list[str] = []
        self.times: list[float] = []
        self.errors: list[str] = []
        self._url = url
        self._ends = threading.Event()
        self._runs = threading.Thread(target=self._store)
        self._runs.start()

    def end(self) -> None:
        self._ends.set()
        self._runs.join()

    def _store(self) -> None:
        config = thread(self.route)
        with PostgresSaver(self._url, timeout=90, prepare=self.route != "PgBouncer") as saver:
            while not self._ends.is_set():
                try:
                    config = saver.put(config, *step(len(self.ids) % 7))
                except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
                    self.errors.append(f"{self.route}: {error!r}")
                    return
                self.ids.append(config["configurable"]["checkpoint_id"])
                self.times.append(time.monotonic())


def fail_over(topology: Topology, fault: str) -> Outcome:
    """Let it happen to the primary. Returns when both nodes are there again, and the clients have ended."""
    happens, is_over = FAULTS[fault]
    with PostgresSaver(topology.urls["HAProxy"], timeout=90) as saver:
        for route in topology.urls:
            saver.delete_thread(route)
    clients = [_Client(route, url) for route, url in topology.urls.items()]
    try:
        _wait_for(clients)
        primary = topology.primary()
        assert primary is not None
        happens(primary)
        try:
            _wait_for([client for client in clients if (fault, client.route) not in _NOTICED_LATER])
        finally:
            is_over(primary)
        topology.wait_until_whole()
        _wait_for(clients)
    finally:
        for client in clients:
            client.end()
    return _outcome(topology, clients)


def _wait_for(clients: list[_Client]) -> None:
    """Wait until each of them has stored a few more steps, or has failed."""
    wanted = [len(client.ids) + _STEPS for client in clients]

    def have_got_on() -> bool:
        return all(client.errors or len(client.ids) >= number for client, number in zip(clients, wanted, strict=True))

    wait_until(have_got_on, "the clients do not get on", within=120)


def _outcome(topology: Topology, clients: list[_Client]) -> Outcome:
    outcome = Outcome()
    with PostgresSaver(topology.urls["HAProxy"], timeout=90) as saver:
        for client in clients:
            there = {item.config["configurable"]["checkpoint_id"] for item in saver.list(thread(client.route))}
            lost = [number for number, each in enumerate(client.ids) if each not in there]
            waits = [after - before for before, after in pairwise(client.times)]
            outcome.acknowledged += len(client.ids)
            outcome.errors += client.errors
            outcome.waited[client.route] = max(waits)
            outcome.lost[client.route] = len(lost)
            outcome.lost_later[client.route] = sum(number > waits.index(max(waits)) for number in lost)
        outcome.damaged = len(saver.verify().problems)
    return outcome
