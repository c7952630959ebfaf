"""Two databases are compared thread by thread: only threads that differ are read, and then both have the same."""

from collections.abc import Iterator
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
from threadmark.errors import CorruptDataError
from threadmark.memory import MemorySaver
from threadmark.model import Progress
from threadmark.replication import ReplicatedSaver, reconciling, replicated
from threadmark.replication.copying import copy_thread
from threadmark.replication.model import ReconcileReport
from threadmark.replication.playing import play_flow
from threadmark.replication.reconciling import reconcile
from threadmark.replication.steps import Side
from threadmark.saver import Saver
from threadmark_conformance.engine import at


def _reconcile(one: Saver, other: Saver, **options: Any) -> ReconcileReport:
    return play_flow(reconcile(side(one), side(other, "secondary"), TERM, **options))


def _unrecorded(saver: Saver) -> Saver:
    """Another saver on the same database, whose changes are not recorded."""
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


@pytest.fixture
def grown(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReplicatedSaver]:
    """A pair of a database that was in use before and a new one."""
    monkeypatch.setattr(reconciling, "_PAGE", 4)
    one, other = MemorySaver(), MemorySaver()
    for number in range(10):
        history(one, f"t{number:02d}", steps=1)
    with replicated(one, other, health_interval=3600.0) as pair:
        yield pair


def _stopped(pair: ReplicatedSaver, at_thread: str, after: str = "") -> str:
    """Compare up to a thread. Returns the last progress."""

    def stop(progress: Progress) -> None:
        if progress.thread_id == at_thread:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pair.reconcile(after=after, progress=stop)
    return at_thread


def test_who_continues_one_that_was_stopped_is_told_when_all_was_compared(grown: ReplicatedSaver) -> None:
    reached = _stopped(grown, "t08", after=_stopped(grown, "t05"))
    assert not grown.status().complete
    report = grown.reconcile(after=reached)
    assert (report.after, report.complete) == ("t07", True), "it begins where the earlier one had noted that it was"
    assert (report.threads, report.different) == (2, 1)
    assert grown.status().complete
    report = grown.reconcile(after="t05")
    assert (report.after, report.complete, report.threads) == ("t05", False, 4)
    assert grown.status().complete


def test_what_nobody_has_compared_is_not_called_complete(grown: ReplicatedSaver) -> None:
    report = grown.reconcile(after="t05")
    assert (report.after, report.complete, report.threads) == ("t05", False, 4)
    assert not grown.reconcile(after="t07", dry_run=True).complete
    assert grown.reconcile(dry_run=True).complete
    assert not grown.status().complete
    report = grown.reconcile(after="t08")
    assert (report.after, report.complete) == ("t08", False)
    assert not grown.status().complete


def test_what_could_not_be_copied_is_not_passed_over(grown: ReplicatedSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: Side, target: Side, thread_id: str, *args: Any, **options: Any) -> Any:
        if thread_id == "t05":
            raise CorruptDataError("a row is damaged")
        return copy_thread(source, target, thread_id, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(reconciling, "copy_thread", fail)
        reached = _stopped(grown, "t08")
    report = grown.reconcile(after=reached)
    assert (report.after, report.complete, report.threads) == ("t03", True, 6)
    assert grown.status().complete


def test_a_promotion_begins_anew(grown: ReplicatedSaver) -> None:
    """A comparison under another term knows nothing of later writes."""
    reached = _stopped(grown, "t08")
    grown.promote("secondary")
    report = grown.reconcile(after=reached)
    assert (report.after, report.complete, report.threads) == ("t08", False, 1)


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
