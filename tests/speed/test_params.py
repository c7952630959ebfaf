"""The parameters of Postgres' statements are the same from the compiled part as from the reference."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as some

from threadmark.ids import new_id
from threadmark.store import FIRST_RECORD, PACK, Change, CheckpointRow, Outline, WriteRow
from threadmark.thread_store import beginning
from threadmark_postgres import arrays, columns
from threadmark_postgres.arrays import BatchParams, Blobs, ChangeNumbers, Numbers, Texts

TEXT = some.text(some.characters(codec=None, exclude_categories=[]), max_size=12)
ENCODABLE = some.text(max_size=12)
ID = some.builds(new_id) | some.builds(lambda: new_id().upper()) | some.text(max_size=40)
NUMBER = some.integers(-(2**63), 2**63 - 1)
SEGMENTS = some.dictionaries(some.binary(min_size=12, max_size=12), some.binary(max_size=9), max_size=3)


def _both(function: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    compiled = function(*args)
    with mock.patch.object(arrays, "IN_USE", new=False), mock.patch.object(columns, "IN_USE", new=False):
        return compiled, function(*args)


def _same(function: Callable[..., Any], *args: Any) -> Any:
    compiled, expected = _both(function, *args)
    assert compiled == expected
    if isinstance(expected, tuple | list):
        assert [type(each) for each in compiled] == [type(each) for each in expected]
    return compiled


CHANGE = some.builds(
    Change,
    thread_id=TEXT,
    epoch=some.none() | NUMBER,
    now=NUMBER,
    segments=SEGMENTS,
    checkpoints=some.just(()),
    writes=some.just(()),
    continues=some.none() | TEXT,
    needs=some.builds(lambda keys: lambda: keys, some.lists(some.binary(), max_size=3)),
    token=some.none() | NUMBER,
    beginning=some.builds(beginning, TEXT, some.none() | TEXT, some.none()),
    only_owner=some.booleans(),
)
ROW = some.builds(
    lambda ns, rank, parent, run: CheckpointRow(
        Outline("thread", ns, rank, rank, parent, 7, '{"key": "ä"}'), b"header", b"check", run
    ),
    TEXT,
    TEXT,
    some.none() | TEXT,
    some.none() | TEXT,
)


@given(CHANGE, ROW)
def test_one_checkpoint_has_the_same_parameters(change: Change, row: CheckpointRow) -> None:
    assert _same(columns.checkpoint_alone, change._replace(checkpoints=[row])) is not None


@given(CHANGE, TEXT, ID, ID, some.integers(FIRST_RECORD, FIRST_RECORD + 9))
def test_what_a_task_wrote_has_the_same_parameters(change: Change, ns: str, at: str, task: str, number: int) -> None:
    pack = WriteRow(ns, at, task, PACK, "path \0", "", b"value", b"check")
    record = WriteRow(ns, at, task, number, "", "", b"listed", b"other")
    assert _same(columns.writes_alone, change._replace(continues=at, writes=[pack, record])) is not None


FIRST = CheckpointRow(Outline("thread", "", "1", "1", None, 7, "{}"), b"", b"", None)
PACKED = WriteRow("", "1", "task", PACK, "path", "", b"", b"")
OF_TASK = PACKED, PACKED._replace(idx=FIRST_RECORD, task_path="")
NOTHING = Change("thread", None, 7, {}, (), (), "1")


@pytest.mark.parametrize(
    "change",
    [
        NOTHING,
        NOTHING._replace(checkpoints=[FIRST, FIRST]),
        NOTHING._replace(checkpoints=[FIRST], writes=OF_TASK),
        NOTHING._replace(checkpoints=[FIRST._replace(outline=FIRST.outline._replace(rank="2"))]),
        NOTHING._replace(writes=OF_TASK[:1]),
        NOTHING._replace(writes=[*OF_TASK, OF_TASK[0]]),
        NOTHING._replace(writes=OF_TASK, continues="2"),
        *(
            NOTHING._replace(writes=[OF_TASK[0]._replace(**other), OF_TASK[1]])
            for other in ({"ns": "a"}, {"checkpoint_id": "2"}, {"task_id": "b"}, {"idx": 0}, {"channel": "a"})
        ),
        *(
            NOTHING._replace(writes=[OF_TASK[0], OF_TASK[1]._replace(**other)])
            for other in ({"idx": PACK}, {"task_path": "path"}, {"channel": "a"})
        ),
    ],
)
def test_other_changes_have_none(change: Change) -> None:
    function = columns.writes_alone if change.writes else columns.checkpoint_alone
    assert _same(function, change) is None


class Name(StrEnum):
    """Text of a class of its user's."""

    FIRST = "the first"


PARAM: some.SearchStrategy[Any] = (
    some.none()
    | some.binary(max_size=9)
    | some.builds(bytearray, some.binary(max_size=9))
    | some.just(memoryview(b"a view"))
    | ENCODABLE
    | NUMBER
    | some.booleans()
    | some.just(Name.FIRST)
    | some.builds(Texts, some.lists(some.none() | ENCODABLE, max_size=4))
    | some.builds(Blobs, some.lists(some.none() | some.binary(max_size=9), max_size=4))
    | some.builds(Numbers, some.lists(some.none() | NUMBER | some.booleans(), max_size=4))
    | some.builds(ChangeNumbers, some.lists(NUMBER, max_size=4))
)


@given(some.lists(PARAM))
def test_parameters_are_packed_alike(params: list[Any]) -> None:
    _same(arrays.packed, params)
    _same(arrays.size_of, params)


def test_items_of_unusual_classes_are_packed_alike() -> None:
    _same(arrays.packed, BatchParams([Blobs([bytearray(b"a"), memoryview(b"b")]), Texts([Name.FIRST])]))


@pytest.mark.parametrize("param", [2**63, Numbers([-(2**63) - 1]), "\ud800", Texts(["\ud800"]), 1.5, Numbers(["1"])])
def test_what_cannot_be_packed_is_refused_alike(param: Any) -> None:
    with pytest.raises(Exception) as found:  # noqa: PT011 - whatever the reference raises
        arrays.packed([param])
    with mock.patch.object(arrays, "IN_USE", new=False), pytest.raises(type(found.value)):
        arrays.packed([param])
