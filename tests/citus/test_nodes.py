"""Nodes that come, fail and come back while clients put: nothing acknowledged is lost, and nothing fails."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from citus.nodes import Nodes, skip_without_citus
from patience import wait_until
from postgres.cluster import Cluster
from postgres.steps import step, thread
from threadmark_postgres import PostgresSaver

skip_without_citus()

_CLIENTS = 4


class Load:
    """The puts of some clients, each to its own threads."""

    def __init__(self, saver: PostgresSaver) -> None:
        self._saver = saver
        self._stop = threading.Event()
        self.stored: list[dict[str, str]] = []
        """The server that has the acknowledged puts."""
        self.failures: list[Exception] = []

    def put(self, client: int) -> None:
        """Put to four threads in turn until the end."""
        places = [thread(f"{client} {number}") for number in range(4)]
        number = 0
        while not self._stop.is_set():
            place = number % len(places)
            try:
                places[place] = self._saver.put(places[place], *step(number // len(places)))
            except Exception as error:  # noqa: BLE001 - a failure is reported
                self.failures.append(error)
                return
            self.stored.append(places[place]["configurable"])
            number += 1

    def more(self) -> None:
        """Wait until clients have put more."""
        before = len(self.stored)
        wait_until(lambda: len(self.stored) > before + 40 or self.failures, "nothing more was stored")

    def end(self) -> None:
        """Let the clients stop."""
        self._stop.set()


@contextmanager
def load(nodes: Nodes) -> Iterator[Load]:
    """Clients that put while the block runs; afterwards everything must be there."""
    with PostgresSaver(nodes.url, pool_size=_CLIENTS) as saver:
        saver.setup(distribute="citus")
        made = Load(saver)
        clients = [threading.Thread(target=made.put, args=(client,)) for client in range(_CLIENTS)]
        for client in clients:
            client.start()
        try:
            made.more()
            yield made
            made.more()
        finally:
            made.end()
            for client in clients:
                client.join()
        assert made.failures == []
        assert saver.verify(decode=True).problems == []
        for place in made.stored:
            assert saver.get({"configurable": place}), place


def _kill_and_start(node: Cluster) -> None:
    node.kill()

    def starts() -> bool:
        with suppress(AssertionError):  # a process of it has not ended yet
            node.start()
            return True
        return False

    wait_until(starts, "the node did not start")


def test_a_worker_is_added_and_shards_move_to_it() -> None:
    with Nodes() as nodes, load(nodes) as running:
        worker = nodes.add_worker()
        nodes.execute("SELECT rebalance_table_shards()")
        ((moved,),) = nodes.execute(f"SELECT count(*) FROM citus_shards WHERE nodeport = {worker.port}")
        assert isinstance(moved, int)
        assert moved > 0
        running.more()


def test_a_worker_that_is_killed_comes_back() -> None:
    with Nodes(durable=True) as nodes, load(nodes):
        _kill_and_start(nodes.workers[0])


def test_a_coordinator_that_is_killed_comes_back() -> None:
    with Nodes(durable=True) as nodes, load(nodes):
        _kill_and_start(nodes.coordinator)
