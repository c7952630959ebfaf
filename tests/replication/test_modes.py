"""The moment of the acknowledgement, the fate of a write that only one side has, and the arrival of all."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from patience import wait_until
from replication.lines import Database, Opened, checkpoint, config, number_in, put, wait_for
from threadmark import ConflictError, Keyring, ReplicationError, Saver, ThreadDeletedError
from threadmark.program import Transaction
from threadmark.replication.playing import play_flow
from threadmark.replication.reconciling import reconcile
from threadmark.replication.steps import Side


def _differences(one: Database, other: Database) -> int:
    """How many threads differ between two databases."""
    sides = Side("primary", one.store, one.driver), Side("secondary", other.store, other.driver)
    report = play_flow(reconcile(*sides, term=99, dry_run=True))
    return report.different + len(report.only_there)


def test_in_sync_mode_both_have_a_write_when_it_is_acknowledged(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases)
    for number in (1, 2, 3):
        put(pair.saver, number)
        assert [number_in(each.saver()) for each in databases] == [number, number]
    assert pair.saver.status().primary.waiting == 0
    pair.saver.close()


def test_in_sync_mode_asyncio_does_the_same(databases: tuple[Database, Database]) -> None:
    async def use() -> None:
        pair = Opened(*databases)
        async with pair.saver as saver:
            await saver.aput(config(), checkpoint(1), {}, {"n": 1, "text": 1})
            assert [number_in(each.saver()) for each in databases] == [1, 1]
            pair.secondary.cut = True
            with pytest.raises(ReplicationError, match=r"the primary .* has what was written to 'thread'"):
                await saver.aput(config(), checkpoint(2), {}, {"n": 2, "text": 1})
            pair.secondary.cut = False
            assert await saver.adrain() == 0
            assert number_in(databases[1].saver()) == 2
            assert (await saver.astatus()).secondary.healthy

    asyncio.run(use())


def test_a_write_that_only_the_active_side_has_is_an_error_and_is_copied_later(
    databases: tuple[Database, Database],
) -> None:
    pair = Opened(*databases)
    put(pair.saver, 1)
    pair.secondary.cut = True
    with pytest.raises(ReplicationError, match="does not have it yet"):
        put(pair.saver, 2)
    assert [number_in(each.saver()) for each in databases] == [2, 1]
    pair.secondary.cut = False
    wait_for(lambda: number_in(databases[1].saver()) == 2)
    pair.saver.close()


def test_with_continue_it_is_acknowledged_and_logged(
    databases: tuple[Database, Database], caplog: pytest.LogCaptureFixture
) -> None:
    pair = Opened(*databases, on_secondary_failure="continue")
    put(pair.saver, 1)
    pair.secondary.cut = True
    put(pair.saver, 2)
    assert "which does not have it yet" in caplog.text
    pair.secondary.cut = False
    wait_for(lambda: number_in(databases[1].saver()) == 2)
    pair.saver.close()


def test_a_deletion_is_not_acknowledged_by_being_asked_for_twice(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases, health_interval=3600.0)
    put(pair.saver, 1)
    pair.secondary.cut = True
    for _ in range(2):
        with pytest.raises(ReplicationError):
            pair.saver.delete_thread("thread")
    pair.secondary.cut = False
    assert pair.saver.drain() == 0
    assert number_in(databases[1].saver()) is None
    pair.saver.close()


def test_a_known_outage_of_the_standby_costs_nobody_a_question(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases, health_interval=3600.0)
    put(pair.saver, 1)
    pair.secondary.cut = True
    with pytest.raises(ReplicationError):
        put(pair.saver, 2)
    asked = pair.secondary.asked
    for number in (3, 4, 5):
        with pytest.raises(ReplicationError):
            put(pair.saver, number)
    assert pair.secondary.asked == asked
    pair.saver.close()


def test_in_async_mode_the_standby_follows(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases, mode="async", health_interval=3600.0)
    for number in (1, 2, 3):
        put(pair.saver, number)
    wait_for(lambda: number_in(databases[1].saver()) == 3)
    pair.saver.close()


def test_what_an_async_pair_did_not_copy_the_next_one_does(databases: tuple[Database, Database]) -> None:
    dead = Opened(*databases, mode="async", health_interval=3600.0)
    put(dead.saver, 1)
    dead.saver.drain()
    dead.secondary.cut = True
    put(dead.saver, 2)
    assert number_in(databases[1].saver()) == 1
    heir = Opened(*databases, mode="async")
    number_in(heir.saver)  # the first use of it
    wait_for(lambda: number_in(databases[1].saver()) == 2)
    heir.saver.close()


def test_puts_wait_while_too_much_is_to_be_copied(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases, mode="async", max_lag=3, health_interval=0.01)
    put(pair.saver, 1)
    assert pair.saver.drain() == 0
    pair.secondary.hang()
    threads = [threading.Thread(target=put, args=(pair.saver, number, f"thread {number}")) for number in range(6)]
    for number in range(3):
        put(pair.saver, number, f"room {number}")
    for thread in threads:
        thread.start()
    assert len([1 for n in range(6) if number_in(databases[0].saver(), f"thread {n}") is not None]) <= 3
    pair.secondary.resume()
    for thread in threads:
        thread.join()
    assert pair.saver.drain() == 0
    assert _differences(*databases) == 0
    pair.saver.close()


def test_with_the_standby_away_a_full_outbox_is_an_error(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases, mode="async", max_lag=2)
    put(pair.saver, 1)
    assert pair.saver.drain() == 0
    pair.secondary.cut = True
    wait_for(lambda: not pair.saver.status().secondary.healthy)
    put(pair.saver, 2)
    put(pair.saver, 3)
    with pytest.raises(ReplicationError, match="max_lag"):
        put(pair.saver, 4)
    assert number_in(databases[0].saver()) == 3
    lag = pair.saver.status().primary
    assert lag.waiting == 2
    assert lag.lag is not None
    pair.secondary.cut = False
    wait_for(lambda: pair.saver.status().primary.waiting == 0)
    put(pair.saver, 4)
    pair.saver.close()


def test_everything_that_changes_a_thread_arrives(databases: tuple[Database, Database]) -> None:
    """After each of them the databases are compared row for row."""
    pair = Opened(*databases)
    saver: Any = pair.saver
    last: dict[str, Any] = {}

    def many() -> None:
        for number in range(1, 6):
            nonlocal last
            last = put(saver, number)

    steps: list[Any] = [
        many,
        lambda: saver.put_writes(last, [("n", 1), ("__interrupt__", "a")], "task"),
        lambda: saver.put_writes(last, [("__interrupt__", "b")], "task"),
        lambda: saver.put(config(), checkpoint(5) | {"channel_values": {"n": 9}}, {}, {"n": 9}),
        lambda: saver.update_thread("thread", title="a title", metadata={"a": 1}),
        lambda: saver.copy_thread("thread", "copy"),
        lambda: saver.rename_thread("copy", "renamed"),
        lambda: saver.delete_checkpoint(
            config() | {"configurable": {"thread_id": "thread", "checkpoint_id": f"{1:032x}"}}
        ),
        lambda: saver.prune(["thread"], keep_last=2),
        lambda: saver.apply_retention(keep_last=1),
        lambda: saver.delete_for_runs(["no such run"]),
        lambda: saver.delete_thread("renamed"),
        many,
    ]
    for step in steps:
        step()
        assert _differences(*databases) == 0, step
        # A background thread that copied the same entry at the same moment settles it a little later.
        wait_until(lambda: saver.status().primary.waiting == 0, "every entry to be settled")
    saver.close()


def test_what_was_sealed_again_arrives(databases: tuple[Database, Database]) -> None:
    keys = {"old": bytes(32), "new": bytes([1]) * 32}
    with Opened(*databases, keyring=Keyring({"old": bytes(32)}, "old", digest_secret=bytes(32))).saver as saver:
        put(saver, 1)
    with Opened(*databases, keyring=Keyring(keys, "new", digest_secret=bytes(32))).saver as saver:
        assert saver.reencrypt() > 0
        assert _differences(*databases) == 0
    new = Keyring({"new": keys["new"]}, "new", digest_secret=bytes(32))
    for each in databases:
        assert number_in(Saver(each.store, each.driver, keyring=new)) == 1


def test_a_refused_change_records_nothing(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases, mode="async", health_interval=3600.0)
    put(pair.saver, 1)
    assert pair.saver.drain() == 0
    pair.secondary.cut = True
    with pytest.raises(ConflictError):
        pair.saver.put(config(), checkpoint(2), {}, {"n": 2}, expect_newest=True)
    assert pair.saver.delete_thread("no such thread") is False
    assert pair.saver.delete_thread("thread") is True
    assert pair.saver.status().primary.waiting == 1
    with pytest.raises(ThreadDeletedError):
        pair.saver.put_writes(
            config() | {"configurable": {"thread_id": "thread", "checkpoint_id": f"{1:032x}"}}, [("n", 1)], "t"
        )
    assert pair.saver.status().primary.waiting == 1
    pair.saver.close()


def test_a_write_whose_copy_was_not_confirmed_is_copied_by_the_next_attempt(
    databases: tuple[Database, Database],
) -> None:
    """A driver that tries again after a lost reply finds the checkpoint there: it is not acknowledged for that."""
    pair = Opened(*databases, health_interval=3600.0)
    put(pair.saver, 1)
    lost: list[Transaction[Any]] = []

    def twice(transaction: Transaction[Any]) -> None:
        if transaction.writes and not lost:
            lost.append(transaction)
            pair.primary.driver.run(transaction)

    pair.primary.before = twice
    pair.saver.delete_thread("thread")
    assert lost
    assert number_in(databases[1].saver()) is None
    pair.saver.close()


def test_a_thread_that_is_to_live_on_is_read_from_the_standby_all_the_same(
    databases: tuple[Database, Database],
) -> None:
    with Opened(*databases, ttl=timedelta(hours=1)).saver as saver:
        put(saver, 1)
    pair = Opened(*databases, ttl=timedelta(days=1), refresh_on_read=True)
    pair.saver.status()
    pair.primary.cut = True
    assert number_in(pair.saver) == 1
    pair.saver.close()
