"""High availability as it is run: Patroni, etcd, HAProxy and PgBouncer. The primary is lost while clients store.

A failover takes as long as Patroni's lease, 20 seconds, so one is usual: of the primary of a synchronous pair, which is
killed. `THREADMARK_TESTS=all` tries every fault with both kinds of replication.
"""

from collections.abc import Iterator

import pytest

from length import ALL
from patience import wait_until
from postgres.failing_over import FAULTS, fail_over
from postgres.patroni import Topology, expect_programs
from postgres.steps import play, thread
from threadmark_postgres import PostgresSaver


@pytest.fixture(scope="module", params=["synchronous", *(["asynchronous"] if ALL else [])])
def topology(request: pytest.FixtureRequest) -> Iterator[Topology]:
    """Two nodes. Both have each acknowledged put, or with asynchronous replication the primary."""
    expect_programs()
    with Topology(synchronous=request.param == "synchronous") as made:
        yield made


def test_a_replica_is_read_through_haproxy(topology: Topology) -> None:
    with (
        PostgresSaver(topology.urls["HAProxy"], timeout=90) as writer,
        PostgresSaver(topology.for_reading, read_from="replica", max_staleness=60, timeout=90) as reader,
    ):
        play(writer, "read", 3)
        wait_until(lambda: len(list(reader.list(thread("read")))) == 3, "the standby does not get it")
        assert reader.report().in_recovery


@pytest.mark.parametrize("fault", FAULTS if ALL else ["killed"])
def test_a_failover_loses_nothing_that_both_had_acknowledged(topology: Topology, fault: str) -> None:
    outcome = fail_over(topology, fault)
    assert not outcome.errors
    assert not outcome.damaged
    assert outcome.acknowledged
    if topology.synchronous:
        assert outcome.lost == dict.fromkeys(topology.urls, 0)
        return
    # The last steps before a failover may be lost, and none after it: docs/explanation/postgres.md.
    later = outcome.lost_later
    if fault == "paused":  # it takes writes when it goes on, and Patroni may even leave it the primary
        assert later["libpq"] == 0 or later["HAProxy"] == later["PgBouncer"] == 0
    else:
        assert later == dict.fromkeys(topology.urls, 0)
