"""The function for one checkpoint or one task has the effect of the one for any change, or none."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psycopg
import pytest

from postgres.test_leases import MINUTE, commit, lease, play
from postgres.test_order import change_of, checkpoint
from threadmark.format.packs import FIRST_RECORD, PACK
from threadmark.program import Program
from threadmark.store.contract import ANYONE, Added, Change, CheckpointRow, WriteRow, was_added
from threadmark.store.threads import beginning
from threadmark_postgres import adding
from threadmark_postgres.store import PostgresStore

THREAD, OTHER = "5", "6"
_FUNCTIONS = ("add_one_1", "add_1")
TABLES = ("thread", "segment", "checkpoint", "head", "write")


def _row(number: int, **others: Any) -> CheckpointRow:
    row = checkpoint(5, 5, number)
    return row._replace(outline=row.outline._replace(thread_id=THREAD, ns="", **others))


def _change(row: CheckpointRow, **others: Any) -> Change:
    change = change_of(THREAD, checkpoints=[row], segments={b"k" * 12: b"segment"})
    return change._replace(now=77, needs=lambda: [b"k" * 12], **{"continues": FIRST.outline.id, **others})


FIRST, SECOND = _row(1), _row(2)


def _write(idx: int, path: str = "path", task_id: str = "task") -> WriteRow:
    return WriteRow("", FIRST.outline.id, task_id, idx, path, "channel" if idx < PACK else "", b"value", bytes(12))


RECORD = _write(FIRST_RECORD, "")
TASKS = [_write(PACK), RECORD]
"""A task's writes, and the record of them."""
OTHER_PACK = _write(PACK)._replace(value=b"other", check=b"other check!")


def _writes(rows: Sequence[WriteRow] = TASKS, **others: Any) -> Change:
    return change_of(THREAD, writes=rows)._replace(now=77, **{"continues": FIRST.outline.id, **others})


ADA = beginning(THREAD, "ada", None)
Act = Callable[[PostgresStore], Program[Any]]


def _nothing(_: PostgresStore) -> Program[None]:
    yield from ()


def _first(store: PostgresStore) -> Program[Added]:
    return store.add(_change(FIRST, continues=None, beginning=ADA))


def _leased(_: PostgresStore) -> Program[Any]:
    return lease(THREAD, MINUTE)


def _leased_once(_: PostgresStore) -> Program[Any]:
    return lease(THREAD, 1)


def _adds(change: Change) -> Act:
    return lambda store: store.add(change)


def _dropped(store: PostgresStore) -> Program[None]:
    yield from store.lock(THREAD)
    yield from store.drop(THREAD, 78)


def _revived(store: PostgresStore) -> Program[Any]:
    yield from _dropped(store)
    return (yield from store.add(_change(_row(9), continues=None)))


TAKEN: Mapping[str, tuple[Act, Change]] = {
    "a checkpoint": (_nothing, _change(SECOND)),
    "a checkpoint without segments": (_nothing, _change(SECOND, segments={})),
    "one with a token that is always good": (_leased, _change(SECOND, token=ANYONE)),
    "one without a token where a lease has ended": (_leased_once, _change(SECOND)),
    "one of another namespace": (_nothing, _change(SECOND._replace(outline=SECOND.outline._replace(ns="child")))),
    "writes": (_nothing, _writes()),
    "writes with segments and a token": (_leased, _writes(token=ANYONE, segments={b"w" * 12: b"segment"})),
    "writes that are there": (_adds(_writes()), _writes()),
    "others that are there": (_adds(_writes([OTHER_PACK, RECORD])), _writes()),
    "the record of which is there": (_adds(_writes([_write(0), RECORD])), _writes()),
    "the owner's": (_nothing, _change(SECOND, only_owner=True, beginning=ADA)),
    "one after a deletion": (_revived, _change(_row(91), continues=_row(9).outline.id)),
}
"""Earlier changes, and a change that its own function takes."""

RANKED: Mapping[str, tuple[Act, Change]] = {
    "one that is older than the newest": (_adds(_change(_row(7))), _change(SECOND)),
    "one that is there": (_adds(_change(SECOND)), _change(SECOND)),
    "one that is there under another rank": (_adds(_change(_row(2, rank="zz"))), _change(SECOND)),
}
"""Earlier changes, and a checkpoint that is not the newest then: it is left to the function for any change."""

LEFT: Mapping[str, tuple[Act, Change]] = {
    "another epoch": (_nothing, _change(SECOND, epoch=1)),
    "somebody's lease": (_leased, _change(SECOND)),
    "a token that is not the last": (_leased, _writes(token=3)),
    "another owner's": (_nothing, _change(SECOND, only_owner=True, beginning=beginning(THREAD, "eve", None))),
    "a deleted thread": (_dropped, _change(SECOND)),
    "what went with a deleted thread": (_revived, _writes()),
    "no thread": (_dropped, _change(SECOND)._replace(thread_id=OTHER)),
}
"""Earlier changes, and a change that is refused, or left to the function for any change."""

OTHERS: Mapping[str, Sequence[WriteRow]] = {
    "that have rows of their own": [_write(0), RECORD],
    "of two tasks": [_write(PACK), RECORD._replace(task_id="another")],
    "one of which is special": [_write(-1), *TASKS],
    "without a record": [_write(PACK), _write(0)],
    "that are a pack alone": [_write(PACK)],
}
"""Writes that only the function for any change adds."""


def _outcome(session: psycopg.Connection, before: Act, change: Change) -> tuple[Any, ...]:
    """Do it in empty tables. Returns the outcome of the change, the rows then, and the functions called."""
    asked: list[str] = []
    store = PostgresStore(None)
    session.execute("TRUNCATE threadmark_thread, threadmark_segment, threadmark_checkpoint, threadmark_head")
    session.execute("TRUNCATE threadmark_write, threadmark_outbox, threadmark_position")
    commit(session, _first(store))
    commit(session, before(store))
    added = play(session, store.add(change), asked.append)
    session.commit()
    rows = [
        session.execute(f"SELECT * FROM threadmark_{table} ORDER BY 1, 2, 3".encode()).fetchall() for table in TABLES
    ]
    return added, rows, [name for statement in asked for name in _FUNCTIONS if f"threadmark_{name}(" in statement]


def _relative(added: Added, rows: list[list[tuple[Any, ...]]]) -> tuple[Any, ...]:
    """Epochs and tokens come from a clock: mark those that are the same."""
    clocks = sorted({value for row in rows[0] for value in row if isinstance(value, int) and value > 10**12})
    table = [tuple(clocks.index(value) if value in clocks else value for value in row) for row in rows[0]]
    return added._replace(epoch=clocks.index(added.epoch) if added.epoch in clocks else 0), table, rows[1:]


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", [*TAKEN, *RANKED, *LEFT])
def test_both_functions_do_the_same(
    session: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, name: str, *, recorded: bool
) -> None:
    before, change = {**TAKEN, **RANKED, **LEFT}[name]
    if recorded:
        change = change._replace(entry=b"entry", term=1)
    outcomes = []
    for by_arrays in (False, True):
        if by_arrays:
            monkeypatch.setattr(adding, "one_row", lambda _: None)
        added, rows, called = _outcome(session, before, change)
        entries = session.execute("SELECT thread_id, position, body FROM threadmark_outbox").fetchall()
        is_entered = recorded and was_added(change, added)
        assert entries == ([(change.thread_id, added.position, b"entry")] if is_entered else [])
        assert added.previous == 0
        outcomes.append(_relative(added._replace(position=0), rows))
        if by_arrays:
            assert {*called} == {"add_1"}
        else:
            assert ("add_1" in called) == (name not in TAKEN)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("name", OTHERS)
def test_other_writes_go_by_the_other_function(session: psycopg.Connection, name: str) -> None:
    change = _writes(OTHERS[name])
    _, rows, called = _outcome(session, _nothing, change)
    assert called == ["add_1"]
    stored = {(row[4], row[5]) for row in rows[TABLES.index("write")]}
    assert stored == {(write.idx, write.task_path) for write in OTHERS[name]}
