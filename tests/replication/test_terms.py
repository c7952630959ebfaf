"""Two databases that belong together, and two that do not."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from replication.lines import Database, Opened, number_in, put, wait_for
from threadmark import ConfigError, CorruptDataError, Keyring, MemorySaver, ReplicationError, Saver, replicated
from threadmark.memory.driver import MemoryDriver
from threadmark.program import Transaction
from threadmark.replication.terms import Agreement, next_term
from threadmark.store.replica import Replica
from threadmark.types import Progress
from threadmark_sqlite import SqliteSaver


def _replica(database: Database) -> Replica:
    return database.driver.run(Transaction(database.store.replica, writes=False))


def _use(*databases: Database) -> None:
    with Opened(*databases).saver as saver:
        put(saver, 1)


def test_the_first_use_makes_a_pair(databases: tuple[Database, Database]) -> None:
    _use(*databases)
    primary, secondary = (Agreement.from_json(_replica(each).body) for each in databases)
    assert primary._replace(name="secondary") == secondary
    assert (primary.name, primary.active, primary.complete) == ("primary", "primary", True)
    _use(*databases)
    assert Agreement.from_json(_replica(databases[0]).body) == primary


def test_many_who_are_first_agree(databases: tuple[Database, Database]) -> None:
    pairs = [Opened(*databases) for _ in range(6)]
    threads = [
        threading.Thread(target=put, args=(pair.saver, number, f"thread {number}")) for number, pair in enumerate(pairs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {len(each.saver().list_threads().threads) for each in databases} == {6}
    primary, secondary = (Agreement.from_json(_replica(each).body) for each in databases)
    assert primary.pair == secondary.pair
    for pair in pairs:
        pair.saver.close()


def test_swapped_databases_are_noticed(databases: tuple[Database, Database]) -> None:
    _use(*databases)
    with pytest.raises(ConfigError, match="swapped"), Opened(*reversed(databases)).saver as saver:
        put(saver, 2)
    assert [number_in(each.saver()) for each in databases] == [1, 1]


def test_a_database_of_another_pair_is_noticed(databases: tuple[Database, Database]) -> None:
    foreign = Database(), Database()
    _use(*databases)
    _use(*foreign)
    with pytest.raises(ConfigError, match="different pairs"), Opened(databases[0], foreign[1]).saver as saver:
        put(saver, 2)
    assert number_in(databases[0].saver()) == 1


def test_one_database_twice_is_refused(databases: tuple[Database, Database], tmp_path: Path) -> None:
    saver = MemorySaver()
    with pytest.raises(ConfigError, match="are one saver"):
        replicated(saver, saver)
    savers = SqliteSaver(tmp_path / "same.db"), SqliteSaver(tmp_path / "same.db")
    with pytest.raises(ConfigError, match="same database"), replicated(*savers) as pair:
        put(pair, 1)
    with Opened(databases[0], databases[0]).saver as pair, pytest.raises(ConfigError, match="same database"):
        put(pair, 1)
    _use(*databases)  # nothing was left behind


def test_the_first_use_needs_both(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases)
    pair.secondary.cut = True
    with pytest.raises(ReplicationError, match="for the first time both have to be there"):
        put(pair.saver, 1)
    pair.secondary.cut = False
    put(pair.saver, 1)
    pair.saver.close()


def test_a_known_pair_is_opened_with_one_side_away(databases: tuple[Database, Database]) -> None:
    _use(*databases)
    pair = Opened(*databases)
    pair.primary.cut = True
    assert number_in(pair.saver) == 1
    pair.saver.close()


def test_a_new_database_takes_the_place_of_a_lost_standby(databases: tuple[Database, Database]) -> None:
    _use(*databases)
    new = Database()
    pair = Opened(databases[0], new)
    put(pair.saver, 2, "another thread")
    assert number_in(new.saver()) is None
    assert not pair.saver.status().complete
    pair.primary.cut = True
    with pytest.raises(ReplicationError, match="force=True"):
        pair.saver.promote()
    pair.primary.cut = False
    assert pair.saver.reconcile().different == 1
    assert number_in(new.saver()) == 1
    assert pair.saver.status().complete
    pair.saver.close()


def test_a_database_that_never_had_everything_does_not_take_over_by_itself(
    databases: tuple[Database, Database],
) -> None:
    _use(*databases)
    pair = Opened(databases[0], Database(), failover="automatic")
    put(pair.saver, 2, "another thread")
    pair.primary.cut = True
    with pytest.raises(ReplicationError, match="has never had everything"):
        put(pair.saver, 3, "another thread")
    assert pair.saver.status().active == "primary"
    pair.primary.cut = False
    pair.saver.close()


@pytest.mark.parametrize("term", [1, 2, 7])
def test_no_two_sides_take_the_writes_under_one_term(term: int) -> None:
    primary, secondary = (next_term(term, cast("Any", SimpleNamespace(number=number))) for number in (0, 1))
    assert {primary, secondary} == {term + 1, term + 2}


def test_a_database_that_was_replaced_is_no_longer_one_of_the_pair(databases: tuple[Database, Database]) -> None:
    """It lacks the later writes, and would show old threads after a failover."""
    before = Opened(*databases, health_interval=3600.0)
    put(before.saver, 1)
    new = Database()
    with Opened(databases[0], new).saver as saver:
        put(saver, 2)
        saver.reconcile()
    with pytest.raises(ConfigError, match="different pairs"):
        put(before.saver, 3)
    before.saver.close()
    again = Opened(*databases)
    with pytest.raises(ConfigError, match="different pairs"):
        number_in(again.saver)
    again.saver.close()
    with Opened(databases[0], new).saver as saver:
        assert number_in(saver) == 2
        assert saver.status().complete


def test_a_new_database_in_the_place_of_a_lost_active_side_is_not_taken_for_it(
    databases: tuple[Database, Database],
) -> None:
    """Otherwise all that the other side has would count as deleted."""
    _use(*databases)
    new = Database()
    pair = Opened(new, databases[1])
    with pytest.raises(ConfigError, match=r"promote\('secondary', force=True\)"):
        put(pair.saver, 2)
    assert pair.saver.promote("secondary", force=True).active == "secondary"
    pair.saver.reconcile()
    assert number_in(new.saver()) == number_in(pair.saver) == 1
    assert pair.saver.promote("primary").active == "primary"
    assert number_in(new.saver()) == 1
    pair.saver.close()


def test_a_pair_whose_active_side_lost_everything_meanwhile_does_not_go_on_there(
    databases: tuple[Database, Database],
) -> None:
    pair = Opened(*databases, failover="automatic", on_secondary_failure="continue")
    put(pair.saver, 1)
    pair.primary.driver = MemoryDriver()
    wait_for(lambda: pair.saver.status().active == "secondary")
    put(pair.saver, 2)
    assert number_in(pair.saver) == 2
    assert len(list(pair.saver.list({"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}))) == 2
    pair.saver.close()


def test_a_database_with_threads_becomes_whole_by_reconciling(databases: tuple[Database, Database]) -> None:
    put(databases[0].saver(), 1)
    pair = Opened(*databases)
    assert number_in(pair.saver) == 1
    assert not pair.saver.status().complete
    pair.saver.reconcile()
    assert pair.saver.status().complete
    assert number_in(databases[1].saver()) == 1
    pair.saver.close()


def test_after_a_promotion_the_old_side_lacks_what_only_the_new_one_ever_had(
    databases: tuple[Database, Database],
) -> None:
    """As after a backup of the active side was restored: it must not take over as if it had everything."""
    _use(*databases)
    put(databases[1].saver(), 1, "only there")
    pair = Opened(*databases)
    status = pair.saver.promote()
    assert (status.active, status.complete) == ("secondary", False)
    assert status.last_reconcile is not None
    assert status.last_reconcile.only_there == ["only there"]
    pair.secondary.cut = True
    with pytest.raises(ReplicationError, match="force=True"):
        pair.saver.promote()
    pair.secondary.cut = False
    pair.saver.reconcile()
    assert pair.saver.status().complete
    assert number_in(databases[0].saver(), "only there") == 1
    pair.saver.close()


def test_half_a_promotion_is_finished_by_whoever_comes_next(databases: tuple[Database, Database]) -> None:
    """The one who promoted died after the old side had begun to refuse writes."""
    _use(*databases)
    primary = databases[0]
    agreement = Agreement.from_json(_replica(primary).body)._replace(active="secondary")
    replica = Replica(2, agreement.to_json())
    primary.driver.run(Transaction(lambda: primary.store.set_replica(replica), writes=True))
    pair = Opened(*databases)
    put(pair.saver, 2)
    assert pair.saver.status().active == "secondary"
    assert [_replica(each).term for each in databases] == [2, 2]
    pair.saver.close()


def test_a_promotion_that_cannot_be_finished_is_taken_back(databases: tuple[Database, Database]) -> None:
    pair = Opened(*databases, health_interval=3600.0)
    put(pair.saver, 1)

    def cut(_: Transaction[object]) -> None:
        if _replica(databases[0]).term == 2:
            pair.secondary.cut = True

    pair.primary.after = cut
    with pytest.raises(ReplicationError, match="secondary"):
        pair.saver.promote()
    pair.secondary.cut = False
    assert pair.saver.drain() == 0
    assert pair.saver.status().active == "primary"
    put(pair.saver, 2)
    assert [number_in(each.saver()) for each in databases] == [2, 2]
    pair.saver.close()


def test_a_comparison_ends_where_somebody_else_moves_the_writes(databases: tuple[Database, Database]) -> None:
    for name in ("one", "two"):
        put(databases[0].saver(), 1, name)
    pair, other = Opened(*databases, health_interval=3600.0), Opened(*databases, health_interval=3600.0)

    def move(_: Progress) -> None:
        other.saver.promote("secondary")
        put(databases[0].saver(), 2, "two")

    with pytest.raises(ReplicationError, match="another process has moved the writes to the secondary"):
        pair.saver.reconcile(progress=move)
    report = pair.saver.reconcile()
    assert (report.threads, report.different) == (2, 1)
    assert pair.saver.status().active == "secondary"
    pair.saver.close()
    other.saver.close()


@pytest.mark.parametrize("text", ["", "[]", '{"pair": "x"}', '{"pair": "x", "name": "third", "active": "primary"}'])
def test_what_is_noted_of_a_pair_is_checked(text: str) -> None:
    with pytest.raises(Exception, match="damaged"):
        Agreement.from_json(text)


def _other_savers() -> Iterator[tuple[str, object]]:
    keyring, another = (Keyring({"k": bytes(32)}, "k", digest_secret=bytes([n]) * 32) for n in (1, 2))
    yield "keyrings", (MemorySaver(keyring=keyring), MemorySaver(keyring=another))
    yield "keyrings", (MemorySaver(keyring=keyring), MemorySaver())
    yield "itself made of others", (MemorySaver(), replicated(MemorySaver(), MemorySaver()))
    yield "the threads of one owner", (MemorySaver().for_owner("ada"), MemorySaver())
    yield "not a dict", (MemorySaver(), {})


@pytest.mark.parametrize(("problem", "sides"), list(_other_savers()))
def test_savers_that_are_no_sides_are_refused(problem: str, sides: tuple[Saver, Saver]) -> None:
    with pytest.raises(ConfigError, match=problem):
        replicated(*sides)


def test_the_options_of_the_savers_are_those_of_the_pair(databases: tuple[Database, Database]) -> None:
    keyring = Keyring({"k": bytes(32)}, "k", digest_secret=bytes(32))
    with replicated(*(Saver(each.store, each.line(), keyring=keyring) for each in databases)) as pair:
        put(pair, 1)
    for each in databases:
        assert number_in(Saver(each.store, each.driver, keyring=keyring)) == 1
        with pytest.raises(CorruptDataError, match="sealed"):
            number_in(each.saver())


def test_arguments_of_what_is_done_to_a_pair_are_checked(databases: tuple[Database, Database]) -> None:
    """Comparing nothing, because of an `after` that no thread follows, must not count as having compared everything."""
    put(databases[0].saver(), 1)
    pair = Opened(*databases)
    saver: Any = pair.saver  # the wrong arguments are the point
    number_in(saver)
    calls: dict[str, Callable[[], object]] = {
        "after must be": lambda: saver.reconcile(after=None),
        "progress must be": lambda: saver.reconcile(progress=1),
        "both_ways must be": lambda: saver.reconcile(both_ways="no"),
        "dry_run must be": lambda: saver.reconcile(dry_run="no"),
        "force must be": lambda: saver.promote(force="no"),
        "within must be": lambda: saver.drain("long"),
    }
    for problem, call in calls.items():
        with pytest.raises(ConfigError, match=problem):
            call()
    assert not saver.status().complete
    saver.close()
