"""Which changes have parameters for the statement that adds one checkpoint, or what one task wrote."""

import pytest

from threadmark.format.packs import FIRST_RECORD, PACK
from threadmark.store.contract import Change, CheckpointRow, Outline, WriteRow
from threadmark_postgres import columns

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
def test_other_changes_are_left_to_the_statement_for_several(change: Change) -> None:
    assert columns.checkpoint_alone(change) is None
    assert columns.writes_alone(change) is None


def test_one_checkpoint_and_what_one_task_wrote_have_some() -> None:
    assert columns.checkpoint_alone(NOTHING._replace(checkpoints=[FIRST])) is not None
    assert columns.writes_alone(NOTHING._replace(writes=OF_TASK)) is not None
