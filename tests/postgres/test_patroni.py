"""High availability as it is run: Patroni, etcd, HAProxy and PgBouncer. The primary is lost while clients store.

A failover takes as long as Patroni's lease, 20 seconds, so one is usual; `THREADMARK_TESTS=all` tries every fault.
"""

from collections.abc import Iterator

import pytest

from length import ALL
from patience import wait_until
from postgres.failing_over import FAULTS, fail_over
from postgres.patroni import Topology, expect_programs
from postgres.steps import play, thread
from threadmark_postgres import PostgresSaver


@pytest.fixture(scope="module")
def synchronous() -> Iterator[Topology]:
    """Two nodes: what is acknowledged, both have."""
    expect_programs()
    with Topology(synchronous=True) as topology:
        yield topology


@pytest.fixture(scope="module")
def asynchronous() -> Iterator[Topology]:
    """Two nodes: what is acknowledged, the primary has."""
    expect_programs()
    with Topology(synchronous=False) as topology:
        yield topology


def test_a_replica_is_read_through_haproxy(synchronous: Topology) -> None:
    with (
        PostgresSaver(synchronous.urls["HAProxy"], timeout=90) as writer,
        PostgresSaver(synchronous.for_reading, read_from="replica", max_staleness=60, timeout=90) as reader,
    ):
        play(writer, "read", 3)
        wait_until(lambda: len(list(reader.list(thread("read")))) == 3, "the standby does not get it")
        assert reader.report().in_recovery


@pytest.mark.parametrize("fault", FAULTS if ALL else ["killed"])
def test_synchronous_replication_loses_nothing_that_was_acknowledged(synchronous: Topology, fault: str) -> None:
    outcome = fail_over(synchronous, fault, synchronous=True)
    assert not outcome.errors
    assert outcome.acknowledged
    assert outcome.lost == dict.fromkeys(synchronous.urls, 0)
    assert not outcome.damaged


@pytest.mark.skipif(not ALL, reason="each takes a minute: THREADMARK_TESTS=all runs them")
@pytest.mark.parametrize("fault", FAULTS)
def test_asynchronous_replication_loses_only_the_last_steps_before_a_failover(
    asynchronous: Topology, fault: str
) -> None:
    outcome = fail_over(asynchronous, fault, synchronous=False)
    assert not outcome.errors
    assert not outcome.damaged
    assert outcome.lost_later["HAProxy"] == outcome.lost_later["PgBouncer"] == 0
    if fault != "paused":  # a primary that goes on takes writes until Patroni stops it: docs/postgres.md
        assert outcome.lost_later["libpq"] == 0
