"""Adding rows at once has the result and the answers of the program that adds them step by step."""

import sqlite3
from functools import partial
from typing import Any, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from length import times
from threadmark.format.packs import FIRST_RECORD, PACK
from threadmark.program import Program, Step, play
from threadmark.store.contract import ANYONE, Added, Change, CheckpointRow, Follows, Outline, WriteRow
from threadmark.store.threads import beginning
from threadmark_sqlite.driver.playing import execute, played
from threadmark_sqlite.migrations import ddl
from threadmark_sqlite.steps import Direct
from threadmark_sqlite.store import SqliteStore

BEGUN = 4
"""When every change is made, so that it is the first epoch of its thread."""

MADE = Added(BEGUN, replaced_writes=[])
EARLY, LATE = "1ef00000-0000-6000-8000-000000000001", "1ef00000-0000-6000-8000-00000000000a"
LATER, LATEST = "1ef00000-0000-6000-8000-00000000000b", "1ef00000-0000-6000-8000-00000000000c"
TABLES = "thread", "head", "checkpoint", "segment", "write", "batch", "outbox"

texts = st.text(st.characters(codec=None, exclude_categories=[]), max_size=40)
uuids = st.uuids().map(str)
ids = st.one_of(texts, uuids, uuids.map(str.upper), uuids.map(lambda text: text.replace("-", "")))
near_ids = st.builds(lambda text, at, other: text[:at] + other + text[at + 1 :], uuids, st.integers(0, 35), texts)
blobs = st.binary(max_size=40)
outlines = st.builds(Outline, texts, texts, ids, ids, st.none() | ids, st.integers(0, 2**62), texts)
checkpoints = st.builds(CheckpointRow, outlines, blobs, blobs, st.none())
indexes = st.integers(-4, 2**31) | st.just(PACK)
writes = st.builds(WriteRow, texts, ids | near_ids, ids | near_ids, indexes, texts, texts, blobs, blobs)


class Pair:
    """Two databases with the same calls: one that adds rows at once, one that never does."""

    def __init__(self) -> None:
        self.at_once, self.in_steps = (sqlite3.connect(":memory:", isolation_level=None) for _ in range(2))
        self.store = SqliteStore()
        self.directly = 0
        for connection in (self.at_once, self.in_steps):
            connection.executescript(ddl())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.at_once.close()
        self.in_steps.close()

    def tell(self, program: partial[Program[Any]]) -> Any:
        """Play it on both. Returns the result, which must be the same."""
        statements: list[str] = []
        self.at_once.set_trace_callback(statements.append)
        outcomes = [_outcome(partial(played, self.at_once), program())]
        self.at_once.set_trace_callback(None)
        self.directly = len(statements)
        outcomes.append(_outcome(lambda each: play(each, self._in_steps), program()))
        assert outcomes[0] == outcomes[1]
        assert _content(self.at_once) == _content(self.in_steps)
        return outcomes[0]

    def _in_steps(self, step: Step) -> Any:
        return None if isinstance(step, Direct) else execute(self.in_steps, step)

    def add(self, change: Change) -> Any:
        return self.tell(partial(self.store.add, change))

    def change(self, statement: str, params: tuple[Any, ...] = ()) -> None:
        for connection in (self.at_once, self.in_steps):
            connection.execute(statement, params)


def test_a_run_is_stored_the_same() -> None:
    with Pair() as pair:
        assert pair.add(_change([_checkpoint(EARLY)], segments={b"k": b"v"})) == MADE
        assert pair.add(_change([], [_write(0), _write(1), _write(FIRST_RECORD)], epoch=BEGUN)) == MADE
        assert pair.directly == 3  # it was done at once
        assert pair.add(_change([], [_write(-1), _write(FIRST_RECORD)], epoch=BEGUN)) == MADE
        replaced = pair.add(_change([], [_write(-1, value=b"other")], epoch=BEGUN)).replaced_writes
        assert replaced == [_write(-1)._replace(value=b"value")]
        assert pair.add(_change([_checkpoint(LATE)], epoch=BEGUN, touches=True, now=9)) == MADE
        assert pair.directly == 3
        assert pair.add(_change([_checkpoint(LATE)], epoch=BEGUN)) == Added(BEGUN, exists=True)
        assert pair.add(_change([], [_write(FIRST_RECORD), _write(2)])) == MADE


def test_what_becomes_of_a_pack_is_told_the_same() -> None:
    record, left_out = _write(FIRST_RECORD), MADE._replace(pack_left_out=True)
    with Pair() as pair:
        pair.add(_change([_checkpoint(EARLY)]))
        assert pair.add(_change([], [_write(PACK), record])) == MADE
        assert pair.directly == 3
        assert pair.add(_change([], [_write(PACK, value=b"other"), record])) == left_out
        assert pair.directly == 4  # the first of them counted on the thread as it was, and added nothing
        assert pair.add(_change([], [_write(1), _write(PACK), record])) == left_out  # as a copy adds them
        assert pair.add(_change([], [_write(1), record])) == MADE
        assert pair.add(_change([], [_write(-1), _write(PACK), record])) == left_out
        other = _write(PACK)._replace(task_id="another")
        assert pair.add(_change([], [other, record])) == MADE
        assert pair.add(_change([], [other, other._replace(task_id="third")])) == left_out


def test_what_becomes_of_several_packs_is_told_the_same() -> None:
    record, left_out = _write(FIRST_RECORD), MADE._replace(pack_left_out=True)
    packs = [_write(PACK + number) for number in range(3)]
    with Pair() as pair:
        pair.add(_change([_checkpoint(EARLY)]))
        assert pair.add(_change([], [*packs[:2], record])) == MADE
        assert pair.directly == 3
        assert pair.add(_change([], [*packs[:2], record])) == left_out
        assert pair.directly == 3
        assert pair.add(_change([], [*packs, record])) == left_out  # the third is added
        assert pair.add(_change([], [_write(0), *packs, record])) == left_out
        assert pair.add(_change([], [packs[2], packs[1]])) == MADE
        others = [pack._replace(task_id="another") for pack in packs]
        assert pair.add(_change([], [*packs, *others])) == left_out


def test_a_pack_for_a_thread_that_is_as_it_was_takes_no_look_at_it() -> None:
    with Pair() as pair:
        pair.add(_change([_checkpoint(EARLY)]))
        assert pair.add(_pack("first")) == MADE
        assert pair.directly == 3
        assert pair.add(_pack("second")) == MADE
        assert pair.directly == 2
        assert pair.add(_pack("third", epoch=BEGUN, segments={b"k": b"v"})) == MADE
        assert pair.directly == 3
        assert pair.add(_pack("third")) == MADE._replace(pack_left_out=True)
        assert pair.add(_pack("fourth", epoch=BEGUN + 1)) == Added(BEGUN)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE threadmark_thread SET epoch = 7",
        "UPDATE threadmark_thread SET expires_at = 8",
        "UPDATE threadmark_thread SET lease_ends = 1, lease_ttl = 9",
        f"UPDATE threadmark_thread SET lease_ends = {2**62}, lease_ttl = 9",
        "UPDATE threadmark_thread SET deleted_up_to = ''",
        f"UPDATE threadmark_thread SET deleted_up_to = '{LATE}'",
        "UPDATE threadmark_thread SET live = 0",
        "UPDATE threadmark_thread SET thread = 20",
        "UPDATE threadmark_thread SET thread_id = 'other'",
        "DELETE FROM threadmark_thread",
    ],
)
@pytest.mark.parametrize("epoch", [None, BEGUN])
def test_what_was_found_of_a_thread_is_proven_before_it_counts(statement: str, epoch: int | None) -> None:
    with Pair() as pair:
        pair.add(_change([_checkpoint(EARLY)]))
        pair.add(_pack("first"))
        pair.change(statement)
        pair.add(_pack("second", epoch=epoch, segments={b"k": b"v"}, continues=EARLY))
        pair.add(_pack("third", epoch=epoch, only_owner=True, beginning=beginning("t", "Ann", None)))


def test_many_threads_are_known_and_forgotten() -> None:
    with Pair() as pair:
        for task_id in ("first", "second", "third"):
            for number in range(300):
                change = _pack(task_id, thread_id=f"thread {number}")
                assert played(pair.at_once, pair.store.add(change)) == MADE
        for table in ("write", "batch"):
            rows = pair.at_once.execute(f"SELECT count(DISTINCT thread), count(*) FROM threadmark_{table}").fetchall()
            assert rows == [(300, 900)]


def test_many_rows_take_more_than_one_statement() -> None:
    with Pair() as pair:
        pair.add(_change([_checkpoint(EARLY)]))
        segments = {b"%d" % number: b"data" for number in range(70)}
        assert pair.add(_change([_checkpoint(LATE)], [_write(number) for number in range(65)], segments=segments))
        assert pair.directly == 1 + 3 + 2 + 3


def test_what_is_refused_is_refused_the_same() -> None:
    with Pair() as pair:
        assert pair.add(_change([_checkpoint(EARLY)], beginning=beginning("t", "Ann", 10**18))).expires_at == 10**18
        late = _change([_checkpoint(LATE)])
        assert pair.add(late._replace(epoch=5)) == Added(BEGUN)
        assert pair.add(late._replace(only_owner=True)).refused == "owner"
        assert pair.add(late._replace(only_owner=True, beginning=beginning("t", "Bob", None))).refused == "owner"
        assert pair.add(late._replace(expects="other")).refused == "conflict"
        assert pair.add(late._replace(term=0, copied=Follows(3, 4, 0))).refused == "behind"
        pair.change("UPDATE threadmark_replica SET term = 7")
        assert pair.add(late._replace(term=6, entry=b"entry")).refused == "term"
        pair.change("UPDATE threadmark_thread SET token = 5, lease_ends = ?, lease_ttl = 7", (2**62,))
        assert pair.add(late).refused == "busy"
        assert pair.add(late._replace(token=4)).refused == "lost"
        assert (
            pair.add(late._replace(token=ANYONE, only_owner=True, beginning=beginning("t", "Ann", None))).epoch == BEGUN
        )


def test_a_thread_that_was_deleted_is_begun_anew_the_same() -> None:
    with Pair() as pair:
        pair.add(_change([_checkpoint(EARLY)]))
        pair.tell(partial(pair.store.drop, "t", 3))
        assert pair.add(_change([], [_write(0)], continues=EARLY)).too_late
        assert pair.add(_change([_checkpoint(LATE)])) == MADE._replace(epoch=BEGUN + 1)
        assert pair.add(_change([], [_write(0, checkpoint_id=LATE)], continues=LATE)) == MADE._replace(epoch=BEGUN + 1)


MEANWHILE = {
    "nothing": (),
    "epoch": ("UPDATE threadmark_thread SET epoch = epoch + 1",),
    "lease": (f"UPDATE threadmark_thread SET token = 5, lease_ends = {2**62}, lease_ttl = 7",),
    "ended lease": ("UPDATE threadmark_thread SET token = 5, lease_ends = 1, lease_ttl = 7",),
    "owner": ("UPDATE threadmark_thread SET owner = 'Bob'",),
    "expiry": (f"UPDATE threadmark_thread SET expires_at = {10**18}",),
    "expired": ("UPDATE threadmark_thread SET expires_at = 1",),
    "dead": ("UPDATE threadmark_thread SET live = 0, minute = NULL",),
    "deleted before": (f"UPDATE threadmark_thread SET deleted_up_to = '{LATER}'",),
    "deleted after": ("UPDATE threadmark_thread SET deleted_up_to = '9'",),
    "gone": tuple(f"DELETE FROM threadmark_{table}" for table in ("thread", "head", "checkpoint")),
    "another thread's number": ("UPDATE threadmark_thread SET thread_id = 'other'",),
    "another number": ("UPDATE threadmark_thread SET thread = 7", "UPDATE threadmark_checkpoint SET thread = 7"),
    "minute": ("UPDATE threadmark_thread SET minute = 3",),
    "no head": ("DELETE FROM threadmark_head",),
    "newer": ("UPDATE threadmark_head SET newest = '9'",),
    "updated later": ("UPDATE threadmark_head SET updated_at = 9",),
    "empty": ("UPDATE threadmark_head SET checkpoints = 0",),
    "there": (f"UPDATE threadmark_checkpoint SET rank = '{LATEST}' WHERE rank = '{EARLY}'",),
    "there under another rank": (f"UPDATE threadmark_checkpoint SET id = '{LATEST}' WHERE rank = '{EARLY}'",),
}
"""The possible changes of another process since this one added something."""


@pytest.mark.parametrize("what", MEANWHILE)
def test_what_is_remembered_of_a_thread_is_not_trusted(what: str) -> None:
    latest = _change([_checkpoint(LATEST)], [_write(0), _write(FIRST_RECORD)], segments={b"k": b"v"}, continues=LATER)
    for change in (
        latest,
        latest._replace(epoch=BEGUN),
        latest._replace(epoch=BEGUN + 1),
        latest._replace(only_owner=True),
        latest._replace(only_owner=True, beginning=beginning("t", "Bob", None)),
        latest._replace(expects=LATER),
        latest._replace(token=5),
        latest._replace(touches=True, now=60_000_000),
    ):
        with _remembering() as pair:
            for statement in MEANWHILE[what]:
                pair.change(statement)
            pair.add(change)
            pair.add(change)
            pair.add(latest)


def test_a_thread_that_was_deleted_is_not_what_is_remembered() -> None:
    with _remembering() as pair:
        pair.tell(partial(pair.store.drop, "t", 3))
        assert pair.add(_change([_checkpoint(LATEST)], continues=LATER)).too_late
        assert pair.add(_change([_checkpoint(LATEST)], epoch=BEGUN)) == Added(BEGUN + 1)
        assert pair.add(_change([_checkpoint(LATEST)])) == MADE._replace(epoch=BEGUN + 1)


def test_a_thread_that_is_as_it_was_is_not_looked_at_by_itself() -> None:
    with _remembering() as pair:
        assert pair.add(_change([_checkpoint(LATEST)])) == MADE
        assert pair.directly == 2
        next_minute = _checkpoint("2")._replace(outline=_checkpoint("2").outline._replace(created_at=60_000_000))
        assert pair.add(_change([next_minute])) == MADE
        assert pair.directly == 3
        in_it = _checkpoint("3")._replace(outline=_checkpoint("3").outline._replace(created_at=60_000_001))
        assert pair.add(_change([in_it])) == MADE
        assert pair.directly == 2
        of_another = _checkpoint("4")._replace(outline=_checkpoint("4").outline._replace(ns="child", parent=None))
        assert pair.add(_change([of_another])) == MADE
        assert pair.directly == 3
        assert pair.add(_change([of_another])) == Added(BEGUN, exists=True)


def test_many_threads_are_not_all_remembered() -> None:
    with Pair() as pair:
        for number in range(300):
            for checkpoint_id in (EARLY, LATE):
                pair.add(_change([_checkpoint(checkpoint_id)])._replace(thread_id=str(number)))
        assert pair.add(_change([_checkpoint(LATER)])._replace(thread_id="299")) == MADE
        assert pair.directly == 2
        assert pair.add(_change([_checkpoint(LATER)])._replace(thread_id="3")) == MADE
        assert pair.directly == 3


def test_text_that_is_damaged_is_met_the_same() -> None:
    with Pair() as pair:
        pair.add(_change([_checkpoint(EARLY)], beginning=beginning("t", "Ann", None)))
        pair.change("UPDATE threadmark_thread SET owner = CAST(x'ff41' AS TEXT)")
        assert pair.add(_change([_checkpoint(LATE)])) == MADE


@settings(max_examples=times(30, at_length=2000), deadline=None)
@given(st.lists(st.tuples(st.lists(checkpoints, max_size=1), st.lists(writes, max_size=4), st.booleans()), max_size=5))
def test_anything_is_stored_the_same(told: list[tuple[list[CheckpointRow], list[WriteRow], bool]]) -> None:
    with Pair() as pair:
        for of_checkpoints, of_writes, touches in told:
            pair.add(_change(of_checkpoints, of_writes, touches=touches))


def _remembering() -> Pair:
    """Two databases with a thread that is remembered."""
    pair = Pair()
    for checkpoint_id in (EARLY, LATE, LATER):
        assert pair.add(_change([_checkpoint(checkpoint_id)])) == MADE
    assert pair.directly == 2
    return pair


def _checkpoint(checkpoint_id: str) -> CheckpointRow:
    parent = None if checkpoint_id == EARLY else EARLY
    return CheckpointRow(Outline("t", "", checkpoint_id, checkpoint_id, parent, 5, "{}"), b"header", b"check", None)


def _write(idx: int, *, checkpoint_id: str = EARLY, value: bytes = b"value") -> WriteRow:
    return WriteRow("", checkpoint_id, LATE, idx, "", "channel", value, b"check")


def _change(of_checkpoints: list[CheckpointRow], of_writes: list[WriteRow] | None = None, **fields: Any) -> Change:
    return Change("t", None, BEGUN, {}, of_checkpoints, of_writes or [], None)._replace(**fields)


def _pack(task_id: str, **fields: Any) -> Change:
    rows = [_write(idx)._replace(task_id=task_id) for idx in (PACK, FIRST_RECORD)]
    return _change([], rows, **fields)


def _outcome(action: Any, program: Program[Any]) -> Any:
    try:
        return action(program)
    except sqlite3.Error as error:
        return str(error)


def _content(connection: sqlite3.Connection) -> list[Any]:
    connection.text_factory = bytes
    found = [connection.execute(f"SELECT * FROM threadmark_{table}").fetchall() for table in TABLES]
    connection.text_factory = str
    return found
