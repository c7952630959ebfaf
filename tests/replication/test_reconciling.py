"""Two databases are compared thread by thread: only threads that differ are read, and then both have the same."""

from typing import Any

import pytest

from replication.histories import history, put
from replication.sides import (
    TERM,
    assert_equal,
    copied_both_ways,
    in_store,
    pair_in_memory,
    rows,
    side,
    summaries,
)
from threadmark.memory import MemorySaver
from threadmark.model import Progress
from threadmark.replication import reconciling
from threadmark.replication.model import Reconciled
from threadmark.replication.playing import play_exchange
from threadmark.replication.reconciling import reconcile
from threadmark.saver import Saver
from threadmark_conformance.engine import at


def _reconcile(one: Saver, other: Saver, **options: Any) -> Reconciled:
    return play_exchange(reconcile(side(one), side(other, "secondary"), TERM, **options))


def _unrecorded(saver: Saver) -> Saver:
    """Another saver on the same database, whose changes nobody is told of."""
    plain = MemorySaver()
    plain._driver = saver._driver
    return plain


def _differing(threads: int = 30) -> tuple[Saver, Saver]:
    """Two databases of many threads, which differ in some of them without an entry that says so."""
    one, other = pair_in_memory()
    for number in range(threads):
        history(one, f"t{number:02d}", steps=2)
    copied_both_ways(side(one), side(other, "secondary"))
    here, there = _unrecorded(one), _unrecorded(other)
    put(here, "t03", 9, "0002")
    here.delete_checkpoint(at("t07", "", "0001"))
    here.delete_thread("t11")
    there.delete_thread("t12")
    here.update_thread("t13", title="another")
    put(there, "t14", 9, "0002")
    put(here, "new", 1)
    put(there, "theirs", 1)
    return one, other


def test_only_what_differs_is_read_and_both_are_the_same_afterwards() -> None:
    one, other = _differing()
    before = rows(side(one)), rows(side(other))
    planned = _reconcile(one, other, dry_run=True)
    assert (rows(side(one)), rows(side(other))) == before
    done = _reconcile(one, other)
    assert (planned.dry_run, done.dry_run) == (True, False)
    assert (done.threads, done.different) == (planned.threads, planned.different) == (32, 8)
    assert (done.deleted, done.only_there) == (planned.deleted, planned.only_there) == (["t11"], ["theirs"])
    assert done.removed == planned.removed == 1
    assert done.rows_read < 300
    assert "theirs" not in rows(side(one))
    assert {each.metadata["step"] for each in one.list(at("t14"))} == {1, 2, 9}, "a row of the other side is lost"
    here, there = rows(side(one)), rows(side(other))
    assert {**here, "theirs": there["theirs"]} == there
    both = _reconcile(one, other, both_ways=True)
    assert both.only_there == ["theirs"]
    assert_equal(one, other)
    again = _reconcile(one, other, both_ways=True)
    assert (again.different, again.checkpoints, again.rows_read) == (0, 0, 2 * 31)


def test_it_goes_on_where_it_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciling, "_PAGE", 4)
    one, other = _differing()
    reached: list[Progress] = []

    def stop(progress: Progress) -> None:
        reached.append(progress)
        if len(reached) % 3 == 0:
            raise KeyboardInterrupt

    for _ in range(20):
        try:
            _reconcile(one, other, both_ways=True, after=reached[-1].thread_id if reached else "", progress=stop)
            break
        except KeyboardInterrupt:
            continue
    assert [each.thread_id for each in reached] == sorted({each.thread_id for each in reached})
    assert len(reached) >= 8
    assert_equal(one, other)


def test_a_database_that_lost_everything_takes_nothing_from_the_other_one() -> None:
    one, other = pair_in_memory()
    history(one, "thread")
    copied_both_ways(side(one), side(other, "secondary"))
    empty = MemorySaver()
    found = _reconcile(empty, other)
    assert (found.deleted, found.only_there) == ([], ["thread"])
    assert set(rows(side(other))) == {"thread"}
    _reconcile(empty, other, both_ways=True)
    assert_equal(empty, other)


def test_databases_that_were_never_a_pair_become_one() -> None:
    one, other = MemorySaver(), MemorySaver()
    history(one, "first")
    history(other, "second")
    history(one, "both", steps=2)
    history(other, "both", steps=2, first=2)
    found = _reconcile(one, other, both_ways=True)
    assert found.only_there == ["second"]
    assert found.branched == ["both"]
    assert_equal(one, other)
    assert len(summaries(side(one))) == 3
    assert in_store(side(one), side(one).store.outbox, None, 10) == []
