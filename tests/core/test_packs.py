"""Packs: the row of all that a task wrote to ordinary channels at once."""

from threadmark.digests import check_of, row_check
from threadmark.saver.proving.batches import rows_of_batch
from threadmark.saver.proving.checks import RECORDED, write_row
from threadmark.store import PACK


def test_a_release_that_knows_no_packs_refuses_them() -> None:
    """It knows two checks of a write, and takes a row with another one for a damaged one."""
    written = [(-1, "__error__", b"\0\1m0"), (0, "a", b"\0\1m1"), (1, "b", b"\0\1m2")]
    for some in (written, written[1:]):
        rows = rows_of_batch("thread", "ns", "checkpoint", "task", "path", some)
        (pack,) = [row for row in rows if row.idx == PACK]
        for row in (pack, write_row("thread", *pack[:-1])):
            assert row.check == pack.check
            assert row.check not in (check_of([RECORDED, "thread", *row[:-1]]), row_check("thread", *row[:-1]))
        for row in rows:
            assert row is pack or row.check == check_of([RECORDED, "thread", *row[:-1]])
