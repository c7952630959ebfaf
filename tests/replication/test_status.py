"""The status of a pair, its closing, and its views."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE
from replication.lines import Database, Opened, config, number_in, put, wait_for
from threadmark import ClosedError, ConfigError, ReplicationError, Serde, replicated
from threadmark.program import Transaction
from threadmark.types import ReplicatedSaver
from threadmark_langgraph import wrap


def test_the_status_of_a_pair_that_is_well(databases: tuple[Database, Database]) -> None:
    with Opened(*databases).saver as saver:
        put(saver, 1)
        status = saver.status()
    assert (status.term, status.active, status.reads_from, status.mode) == (1, "primary", "primary", "sync")
    assert status.complete
    assert (status.branched, status.last_reconcile, status.last_error) == ((), None, None)
    for side in (status.primary, status.secondary):
        assert side.healthy
        assert (side.term, side.waiting, side.lag, side.last_error) == (1, 0, 0.0, None)
        assert side.last_seen is not None
    assert (status.primary.active, status.secondary.active) == (True, False)


def test_the_lag_is_what_waits_and_for_how_long(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases, mode="async", health_interval=3600.0)
    put(pair.saver, 1)
    assert pair.saver.drain() == 0
    pair.secondary.cut = True
    for number in (2, 3, 4):
        put(pair.saver, number)
    status = pair.saver.status()
    assert status.primary.waiting == 3
    assert status.primary.lag is not None
    assert status.primary.lag > 0
    assert pair.saver.drain(within=0.01) == 3
    pair.secondary.cut = False
    assert pair.saver.drain() == 0
    pair.saver.close()


def test_whoever_opens_a_pair_may_begin_by_copying_what_waits(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases, mode="async", health_interval=3600.0)
    put(pair.saver, 1)
    with Opened(*databases, health_interval=3600.0).saver as saver:
        assert saver.drain() == 0
        assert saver.status().primary.waiting == 0
    pair.saver.close()


def test_the_lag_of_a_side_that_is_away_is_counted_from_the_first_change_that_waits(
    databases: tuple[Database, Database],
) -> None:
    pair = Opened(*databases, mode="async", health_interval=3600.0)
    put(pair.saver, 1)
    assert pair.saver.drain() == 0
    pair.secondary.cut = True
    put(pair.saver, 2)
    pair.primary.cut = True
    side = pair.saver.status().primary
    assert side.waiting == 1
    assert side.lag is not None
    assert 0 < side.lag < PATIENCE
    pair.primary.cut = pair.secondary.cut = False
    pair.saver.close()


def test_a_change_that_is_made_while_the_others_are_counted_stays_noted(databases: tuple[Database, Database]) -> None:
    """Or a side that lacks it might take the writes over."""
    pair = Opened(*databases, on_secondary_failure="continue", health_interval=3600.0)
    put(pair.saver, 1)
    counted: list[Transaction[Any]] = []

    def put_meanwhile(transaction: Transaction[Any]) -> None:
        if getattr(transaction.program, "__name__", "") == "waiting" and not counted:
            counted.append(transaction)
            pair.secondary.cut = True
            put(pair.saver, 2)

    pair.primary.after = put_meanwhile
    pair.saver.status()
    assert counted
    pair.primary.after = None
    pair.primary.cut = True
    pair.secondary.cut = False
    with pytest.raises(ReplicationError, match="may lack the last writes"):
        pair.saver.promote("secondary")
    assert [number_in(each.saver()) for each in databases] == [2, 1]
    pair.primary.cut = False
    assert pair.saver.drain() == 0
    pair.saver.close()


def test_a_status_does_not_wait_for_a_database_that_hangs(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases, deadline=PATIENCE)
    put(pair.saver, 1)
    pair.secondary.hang()
    pair.set_deadline(0.05)
    wait_for(lambda: not pair.saver.status().secondary.healthy)
    status = pair.saver.status()
    assert status.secondary.last_error is not None
    assert "0.05 s" in status.secondary.last_error
    assert status.secondary.term == 1
    pair.set_deadline(PATIENCE)
    pair.secondary.resume()
    pair.saver.close()


def _aclose(saver: ReplicatedSaver) -> None:
    asyncio.run(saver.aclose())


@pytest.mark.parametrize("close", [ReplicatedSaver.close, _aclose])
def test_closing_copies_what_waits(
    databases: tuple[Database, Database], close: Callable[[ReplicatedSaver], None]
) -> None:
    pair = Opened(*databases, mode="async", health_interval=3600.0)
    put(pair.saver, 1)
    assert pair.saver.drain() == 0
    pair.secondary.hang()
    put(pair.saver, 2)
    resuming = threading.Timer(0.05, pair.secondary.resume)
    resuming.start()
    close(pair.saver)
    assert number_in(databases[1].saver()) == 2
    with pytest.raises(ClosedError):
        pair.saver.status()
    with pytest.raises(ClosedError):
        put(pair.saver, 5)
    pair.saver.close()


def test_closing_says_what_is_left_and_raises_nothing(
    databases: tuple[Database, Database], caplog: pytest.LogCaptureFixture
) -> None:
    pair = Opened(*databases, mode="async")
    put(pair.saver, 1)
    assert pair.saver.drain() == 0
    pair.secondary.cut = True
    put(pair.saver, 2)
    pair.saver.close()
    assert "1 changes that are not copied yet" in caplog.text
    pair = Opened(*databases, deadline=0.05)
    pair.set_deadline(PATIENCE)
    number_in(pair.saver)
    pair.primary.hang()
    pair.secondary.hang()
    pair.set_deadline(0.05)
    pair.saver.close()
    pair.primary.resume()
    pair.secondary.resume()


def test_all_savers_made_of_one_share_the_pair(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases)
    put(pair.saver, 1)
    pair.saver.promote()
    others = [pair.saver.with_serde(Serde()), pair.saver.without_classes()]
    assert [other.status().term for other in others] == [2, 2]
    view = pair.saver.for_owner("ada")
    put(view, 1, "adas")
    for method in ("status", "reconcile", "promote", "drain"):
        with pytest.raises(ConfigError, match="only the threads of 'ada'"):
            getattr(view, method)()
    checkpointer = wrap(pair.saver).with_allowlist([("decimal", "Decimal")])
    pair.primary.cut = True
    pair.secondary.cut = False
    assert checkpointer.get_tuple(config()) is not None  # type: ignore[arg-type]  # a configuration
    others[0].close()
    with pytest.raises(ClosedError):
        number_in(pair.saver)


def test_a_saver_that_nobody_has_any_more_leaves_no_thread(databases: tuple[Database, Database]) -> None:
    others = {*threading.enumerate()}
    pair = Opened(*databases)
    put(pair.saver, 1)
    (own,) = [each for each in {*threading.enumerate()} - others if each.name == "threadmark-replication"]
    del pair

    def gone() -> bool:
        gc.collect()
        return not own.is_alive()

    wait_for(gone)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_copies_by_itself(tmp_path: Path) -> None:
    code = """
import os, sys, threadmark
from threadmark_sqlite import SqliteSaver
primary, secondary = (SqliteSaver(f"{sys.argv[1]}/{name}.db", durability="normal") for name in ("a", "b"))
saver = threadmark.replicated(primary, secondary, mode="async")
def put(number):
    config = {"configurable": {"thread_id": str(number), "checkpoint_ns": ""}}
    saver.put(config, {"id": f"{number:032x}", "channel_values": {}, "channel_versions": {}}, {}, {})
put(1)
child = os.fork()
put(2 if child else 3)
assert saver.drain() == 0
if child:
    assert os.waitpid(child, 0)[1] == 0
saver.close()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, tmp_path], check=True, timeout=120)
    with replicated(f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db") as saver:
        assert len(saver.list_threads().threads) == 3
        assert saver.reconcile(dry_run=True).different == 0


def test_a_program_that_ends_without_closing_copies_first(tmp_path: Path) -> None:
    code = """
import sys, threadmark
saver = threadmark.replicated(f"sqlite:///{sys.argv[1]}/a.db", f"sqlite:///{sys.argv[1]}/b.db", mode="async")
for number in range(20):
    config = {"configurable": {"thread_id": str(number), "checkpoint_ns": ""}}
    saver.put(config, {"id": f"{number:032x}", "channel_values": {}, "channel_versions": {}}, {}, {})
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], check=False, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    with replicated(f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db", health_interval=3600.0) as saver:
        assert saver.status().primary.waiting == 0
