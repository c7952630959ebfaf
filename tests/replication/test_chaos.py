"""Pairs of real databases under chaos, briefly; benchmarks/replication_rounds.py plays 200 rounds."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from length import ALL
from replication.chaos import Chaos
from replication.checker import Mode
from replication.rounds import Plan, all_plans
from replication.servers import FilePlace, PostgresPlace, RedisPlace, Server
from replication.workers import Workers

BRIEF: dict[tuple[str, str, Mode], list[Plan]] = {
    ("postgres", "redis", "sync"): [Plan("kill", "active", "manual"), Plan("deaf", "active", "automatic")],
    ("postgres", "redis", "async"): [
        Plan("pause", "active", "manual"),
        Plan("split", "active", "automatic"),
        Plan("lag", "active", "manual"),
    ],
    ("redis", "postgres", "sync"): [Plan("silent", "standby", "manual"), Plan("none", "active", "automatic")],
    ("redis", "postgres", "async"): [Plan("kill", "active", "automatic"), Plan("restart", "standby", "manual")],
    ("postgres", "sqlite", "async"): [Plan("closed", "active", "manual"), Plan("move", "active", "manual")],
    ("sqlite", "sqlite", "sync"): [Plan("workers", "active", "manual")],
}
"""The rounds of the usual run; the long one plays every kind of round on each pair."""


class Places(NamedTuple):
    """Servers of these tests' own, which are killed."""

    servers: dict[str, Server]
    workers: Workers


@pytest.fixture(scope="module")
def places() -> Iterator[Places]:
    with ExitStack() as closing:
        servers: dict[str, Server] = {
            "postgres": closing.enter_context(PostgresPlace()),
            "redis": closing.enter_context(RedisPlace()),
            "sqlite": FilePlace(),
        }
        yield Places(servers, closing.enter_context(Workers()))


@pytest.mark.parametrize(("primary", "secondary", "mode"), BRIEF)
def test_nothing_that_was_acknowledged_is_lost(
    primary: str, secondary: str, mode: Mode, places: Places, tmp_path: Path
) -> None:
    pair = places.servers[primary], places.servers[secondary]
    plans = all_plans() if ALL else BRIEF[primary, secondary, mode]
    with Chaos(pair, mode, tmp_path, places.workers) as chaos:
        for seed, plan in enumerate(plans):
            outcome = chaos.round(plan, seed)
            assert outcome.objections == [], plan
            assert outcome.acknowledged > 0, plan
