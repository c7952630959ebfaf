"""A copied thread is the same in the other database, byte for byte, after any change."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postgres.cluster import shared
from replication.histories import LONG, history, put, write
from replication.sides import (
    TERM,
    RecordingStore,
    assert_equal,
    assert_sound,
    copied_both_ways,
    in_store,
    pair_in_memory,
    recorded,
    rows,
    side,
)
from threadmark.errors import CorruptDataError
from threadmark.replication import applying
from threadmark.replication.copying import copy_all, copy_change, copy_thread
from threadmark.replication.playing import play_flow
from threadmark.replication.side_store import Journal, active_store
from threadmark.replication.steps import On
from threadmark.saver import Saver
from threadmark.sealing import Keyring
from threadmark.store.contract import Change, now
from threadmark.store.replica import Replica, StaleTermError
from threadmark_conformance.engine import at
from threadmark_postgres import PostgresSaver
from threadmark_sqlite import SqliteSaver

_KEY = b"k" * 32


def _sqlite(folder: Path, **options: Any) -> tuple[Saver, Saver]:
    savers = SqliteSaver(folder / "one.sqlite", **options), SqliteSaver(folder / "other.sqlite", **options)
    for saver in savers:
        recorded(saver)
    return savers


def _copy(one: Saver, other: Saver) -> Any:
    return play_flow(copy_all(side(one), side(other, "secondary"), TERM))


def _across(folder: Path) -> tuple[Saver, Saver]:
    server, name = shared(), f"copying_{os.getpid()}_{next(_NUMBERS)}"
    savers = PostgresSaver(server.database(name)), SqliteSaver(folder / "other.sqlite")
    for saver in savers:
        recorded(saver)
    return savers


_NUMBERS = count()


@pytest.fixture(params=["memory", "SQLite", "sealed", "Postgres to SQLite", "SQLite to Postgres"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Saver, Saver]]:
    if request.param == "SQLite":
        one, other = _sqlite(tmp_path)
    elif request.param == "Postgres to SQLite":
        one, other = _across(tmp_path)
    elif request.param == "SQLite to Postgres":
        other, one = _across(tmp_path)
    else:
        one, other = pair_in_memory(
            **({"keyring": Keyring({"k": _KEY}, "k", digest_secret=_KEY)} if request.param == "sealed" else {})
        )
    with closing(one), closing(other):
        yield one, other


def test_everything_that_is_done_to_a_thread_is_copied(pair: tuple[Saver, Saver]) -> None:
    one, other = pair
    deeds: list[Callable[[], Any]] = [
        lambda: history(one, "thread"),
        lambda: put(one, "thread", 4, "0003"),
        lambda: write(one, "thread", "0004", "first"),
        lambda: write(one, "thread", "0004", "another"),
        lambda: put(one, "thread", 4, "0003", again=True),
        lambda: put(one, "thread", 2, "0001", branch=True),
        lambda: one.update_thread("thread", title="a title", metadata={"a": 1}, owner="ada"),
        lambda: one.delete_checkpoint(at("thread", "", "0001")),
        lambda: write(one, "thread", "0009", "before its checkpoint"),
        lambda: one.copy_thread("thread", "a copy"),
        lambda: one.create_thread("empty", title="nothing yet"),
        lambda: one.rename_thread("a copy", "renamed"),
        lambda: one.prune(["thread"]),
        lambda: one.delete_thread("thread"),
        lambda: history(one, "thread", steps=2),
        lambda: one.delete_for_runs(["r1"]),
    ]
    for deed in deeds:
        deed()
        assert _copy(one, other)
        assert _copy(one, other) == {}
        assert_equal(one, other)


def test_rows_that_were_sealed_again_are_copied(tmp_path: Path) -> None:
    one, other = _sqlite(tmp_path, keyring=Keyring({"k": _KEY}, "k", digest_secret=_KEY))
    with closing(one), closing(other):
        history(one, "thread")
        _copy(one, other)
        keyring = Keyring({"new": b"n" * 32, "k": _KEY}, "new", digest_secret=_KEY)
        again = SqliteSaver(tmp_path / "one.sqlite", keyring=keyring)
        recorded(again)
        with closing(again):
            assert again.reencrypt()
            _copy(again, other)
            assert rows(side(again)) == rows(side(other))


def test_a_change_is_copied_by_one_transaction_where_the_target_has_what_came_before() -> None:
    one, other = pair_in_memory()
    first, second, store = side(one), side(other, "secondary"), one._store
    assert isinstance(store, RecordingStore)
    for deed in (
        lambda: put(one, "thread", 1),
        lambda: put(one, "thread", 2, "0001"),
        lambda: write(one, "thread", "0002", "x"),
        lambda: write(one, "thread", "0002", "y"),
    ):
        deed()
        asked = []
        flow = copy_change(first, second, *store.made[-1], TERM)
        step = next(flow)
        with pytest.raises(StopIteration) as end:  # noqa: PT012 - the end of the flow
            while isinstance(step, On):
                asked.append(step.side.name)
                step = flow.send(step.side.driver.run(step.transaction))
        assert end.value.value is True
        assert asked == ["secondary", "primary"]
        assert_equal(one, other)
    assert _copy(one, other) == {}


def test_a_change_whose_predecessor_is_missing_is_not_copied_by_itself() -> None:
    one, other = pair_in_memory()
    store = one._store
    assert isinstance(store, RecordingStore)
    put(one, "thread", 1)
    put(one, "thread", 2, "0001")
    assert not play_flow(copy_change(side(one), side(other, "secondary"), *store.made[-1], TERM))
    assert rows(side(other)) == {}
    _copy(one, other)
    put(other, "thread", 3, "0002")  # the other side has an entry itself
    put(one, "thread", 4, "0002")
    assert not play_flow(copy_change(side(one), side(other, "secondary"), *store.made[-1], TERM))
    copied_both_ways(side(one), side(other, "secondary"))
    assert_equal(one, other)


def test_a_change_that_the_target_has_already_is_not_taken_for_copied() -> None:
    one, other = pair_in_memory()
    assert isinstance(one._store, RecordingStore)
    put(one, "thread", 1)
    change, added = one._store.made[-1]
    in_store(side(other), side(other).store.add, change._replace(entry=None, term=None))
    assert not play_flow(copy_change(side(one), side(other, "secondary"), change, added, TERM))
    assert in_store(side(other), side(other).store.copied, ["thread"]) == {}


def test_an_epoch_of_the_other_database_is_none_of_this_one() -> None:
    one, other = pair_in_memory()
    put(one, "thread", 1)
    _copy(one, other)
    epoch = in_store(side(other), side(other).store.epoch, "thread")
    assert epoch is not None
    change = Change("thread", 2 * epoch, now(), {}, (), (), None, touches=True)
    of_secondary = side(other, "secondary")
    outcomes = [
        in_store(of_secondary, active_store(of_secondary, TERM, Journal()).add, each)
        for each in (change, change._replace(epoch=2 * epoch + 1))
    ]
    assert [outcome.position > 0 for outcome in outcomes] == [False, True]
    assert {outcome.epoch for outcome in outcomes} == {2 * epoch + 1}


def test_a_side_with_a_greater_term_takes_nothing() -> None:
    one, other = pair_in_memory()
    first, second = side(one), side(other, "secondary")
    history(one, "thread")
    store = one._store
    assert isinstance(store, RecordingStore)
    in_store(second, second.store.set_replica, Replica(TERM + 1, ""))
    for flow in (
        copy_all(first, second, TERM),
        copy_thread(first, second, "thread", TERM, everything=True),
        copy_change(first, second, *store.made[0], TERM),
    ):
        with pytest.raises(StaleTermError):
            play_flow(flow)
    assert rows(second) == {}
    assert play_flow(copy_all(first, second, TERM + 1))


def test_a_thread_that_cannot_be_copied_stops_no_other() -> None:
    one, other = pair_in_memory()
    history(one, "damaged")
    _copy(one, other)
    history(one, "whole")
    first = side(one)
    in_store(first, first.store.record, "damaged", b"no entry", TERM)
    with pytest.raises(CorruptDataError):
        _copy(one, other)
    assert set(rows(side(other))) == {"damaged", "whole"}


def test_a_large_thread_is_copied_in_parts_that_show_what_it_was_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "MOST_ROWS", 16)
    monkeypatch.setattr(applying, "MOST_BYTES", 4096)
    one, other = pair_in_memory()
    history(one, "thread", steps=300)
    largest = 0
    seen: list[int] = []
    flow = copy_all(side(one), side(other, "secondary"), TERM)
    step = next(flow)
    try:
        while isinstance(step, On):
            before = len(in_store(side(other), side(other).store.marks, "thread").checkpoints)
            answer = step.side.driver.run(step.transaction)
            ids = [item.checkpoint["id"] for item in other.list(at("thread"))]
            assert ids == [f"{number:04d}" for number in range(len(ids), 0, -1)], "a child is there before its parent"
            largest = max(largest, len(ids) - before)
            if ids and (not seen or seen[-1] != len(ids)):
                put(one, "thread", 1000 + len(seen), "0001")  # the source goes on
                seen.append(len(ids))
                assert_sound(other)
            step = flow.send(answer)
    except StopIteration:
        pass
    assert largest <= 16 < len(seen)
    copied_both_ways(side(one), side(other, "secondary"))
    assert_equal(one, other)


def test_of_what_both_sides_wrote_for_a_task_one_sides_row_is_taken_whole(pair: tuple[Saver, Saver]) -> None:
    """The task ran twice, and no state has a part of one run and the rest of another one."""
    one, other = pair
    put(one, "thread", 1)
    copied_both_ways(side(one), side(other, "secondary"))
    ours = {task: [(task, "a", f"one {task}"), (task, "b", 1)] for task in "abcdef"}
    theirs = {task: [(task, "a", f"other {task}"), (task, "b", 2), (task, "c", LONG)] for task in "abcdef"}
    for saver, written in ((one, ours), (other, theirs)):
        for task, writes in written.items():
            saver.put_writes(at("thread", "", "0001"), [write[1:] for write in writes], task)
    one.put_writes(at("thread", "", "0001"), [("a", 1)], "only here")
    other.put_writes(at("thread", "", "0001"), [("a", 2)], "only there")
    copied_both_ways(side(one), side(other, "secondary"))
    assert_equal(one, other)
    (found,) = one.list(at("thread"))
    for task in "abcdef":
        writes = [write for write in found.pending_writes or [] if write[0] == task]
        assert writes in (ours[task], theirs[task])
    alone = [write for write in found.pending_writes or [] if write[0].startswith("only")]
    assert alone == [("only here", "a", 1), ("only there", "a", 2)]


_DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["put", "write", "another", "again", "delete", "prune", "drop", "title", "copy", "die"]),
        st.integers(0, 1),
        st.integers(1, 6),
    ),
    max_size=14,
)


@settings(max_examples=60)
@given(_DEEDS)
def test_whatever_both_sides_do_they_have_the_same_in_the_end(deeds: list[tuple[str, int, int]]) -> None:
    savers = pair_in_memory()
    first, second = side(savers[0]), side(savers[1], "secondary")
    for deed, who, number in deeds:
        _do(deed, savers[who], number, *((first, second) if who == 0 else (second, first)))
    for saver in savers:
        assert_sound(saver)
    copied_both_ways(first, second)
    assert_equal(*savers)


def _do(deed: str, saver: Saver, number: int, here: Any, there: Any) -> None:
    name = f"{number:04d}"
    deeds: dict[str, Callable[[], Any]] = {
        "put": lambda: put(saver, "thread", number),
        "write": lambda: _write(saver, name),
        "another": lambda: _write_another(saver, name, number + (here.name == "primary")),
        "again": lambda: put(saver, "thread", number, again=True),
        "delete": lambda: saver.delete_checkpoint(at("thread", "", name)),
        "prune": lambda: saver.prune(["thread"]),
        "drop": lambda: saver.delete_thread("thread"),
        "title": lambda: saver.get_thread("thread") and saver.update_thread("thread", title=name),
        "copy": lambda: play_flow(copy_all(here, there, TERM)),
        "die": lambda: list(islice(_steps(copy_all(here, there, TERM)), number)),
    }
    deeds[deed]()


def _write(saver: Saver, name: str) -> None:
    if list(saver.list(at("thread", "", name))):
        write(saver, "thread", name, LONG)


def _write_another(saver: Saver, name: str, count: int) -> None:
    """Write for a task of a checkpoint, in each database other values and another number of them."""
    if list(saver.list(at("thread", "", name))):
        saver.put_writes(at("thread", "", name), [("a", f"{count} {LONG}")] * count + [("__error__", count)], "task")


def _steps(flow: Any) -> Iterator[On]:
    """Play a flow, and yield each transaction that was run."""
    try:
        step = next(flow)
        while True:
            answer = step.side.driver.run(step.transaction) if isinstance(step, On) else None
            yield step
            step = flow.send(answer)
    except StopIteration:
        return


def test_what_was_half_copied_is_compared_whole_whatever_its_entries_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "MOST_ROWS", 2)
    one, other = pair_in_memory()
    first, second = side(one), side(other, "secondary")
    history(one, "thread", steps=9)
    last = in_store(first, first.store.positions, ["thread"])["thread"]
    in_store(first, first.store.settle, "thread", last)  # as if it had been there before the pair
    dying = _steps(copy_thread(first, second, "thread", TERM, everything=True))
    while not rows(second):
        next(dying)
    put(one, "thread", 10, "0009")
    play_flow(copy_thread(first, second, "thread", TERM))
    assert_equal(one, other)
