"""Pairs of which one side is on Citus: its coordinator or a worker is killed, hangs or is cut off under load."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from citus.nodes import Nodes, skip_without_citus
from length import ALL
from replication.chaos import Chaos
from replication.checker import Mode
from replication.rounds import Plan, all_plans
from replication.servers import FilePlace, PostgresPlace, Server
from replication.workers import Workers

skip_without_citus()

BRIEF: dict[tuple[str, str, Mode], list[Plan]] = {
    ("coordinator", "sqlite", "sync"): [
        Plan("kill", "active", "manual"),
        Plan("silent", "active", "automatic"),
        Plan("kill", "standby", "manual"),
        Plan("none", "active", "automatic"),
    ],
    ("worker", "sqlite", "sync"): [Plan("kill", "active", "manual"), Plan("kill", "standby", "manual")],
    ("postgres", "coordinator", "async"): [
        Plan("kill", "active", "automatic"),
        Plan("restart", "standby", "manual"),
        Plan("move", "active", "manual"),
        Plan("lag", "active", "manual"),
    ],
}
"""The rounds of the usual run; the long one plays every kind of round on each pair."""

_numbers = count()


class CitusPlace:
    """A side on Citus, of which one node is killed. Clients come to its coordinator."""

    def __init__(self, nodes: Nodes, killed: PostgresPlace) -> None:
        self.port = nodes.coordinator.port
        self._nodes = nodes
        self.kill, self.start, self.restart = killed.kill, killed.start, killed.restart
        self.suspend, self.resume = killed.suspend, killed.resume

    def new(self, _: Path) -> Callable[[int], str]:
        """Make an empty database on all nodes."""
        name = f"chaos_{os.getpid()}_{next(_numbers)}"
        self._nodes.database(name)
        return lambda port: f"postgresql://postgres@127.0.0.1:{port}/{name}"


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """Nodes of these tests' own, which are killed."""
    with Nodes(durable=True) as made:
        yield made


@pytest.mark.parametrize(("primary", "secondary", "mode"), BRIEF)
def test_nothing_that_was_acknowledged_is_lost_on_citus(
    primary: str, secondary: str, mode: Mode, nodes: Nodes, tmp_path: Path
) -> None:
    with ExitStack() as closing:
        places: dict[str, Callable[[], Server]] = {
            "coordinator": lambda: CitusPlace(nodes, nodes.coordinator),
            "worker": lambda: CitusPlace(nodes, nodes.workers[0]),
            "postgres": lambda: closing.enter_context(PostgresPlace()),
            "sqlite": FilePlace,
        }
        workers = closing.enter_context(Workers())
        chaos = closing.enter_context(Chaos((places[primary](), places[secondary]()), mode, tmp_path, workers))
        for seed, plan in enumerate(all_plans() if ALL else BRIEF[primary, secondary, mode]):
            outcome = chaos.round(plan, seed)
            assert outcome.objections == [], plan
            assert outcome.acknowledged > 0, plan
