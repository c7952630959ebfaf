"""Reading page by page: a row that comes twice or out of order is damage, because another one may be hidden"""

import pytest

from threadmark import CorruptDataError
from threadmark.saver.paging import Pages
from threadmark.store.contract import Outline, Scope
from threadmark_conformance.engine import early_id


def _outline(number: int) -> Outline:
    return Outline("thread", "", early_id(number), early_id(number), None, 1, "{}")


def test_pages_follow_each_other_newest_first() -> None:
    pages = Pages(Scope("thread"), 2)
    assert pages.read([_outline(5), _outline(4)]) == [_outline(5), _outline(4)]
    assert pages.more
    assert pages.request.after == _outline(4)
    assert pages.read([_outline(3)]) == [_outline(3)]
    assert not pages.more


@pytest.mark.parametrize("page", [[5, 5], [4, 5], [7, 6], [6, 5]])
def test_a_row_that_comes_twice_or_out_of_order_is_damage(page: list[int]) -> None:
    pages = Pages(Scope("thread"), 2)
    pages.read([_outline(8), _outline(6)])
    with pytest.raises(CorruptDataError, match="found twice, or out of order"):
        pages.read([_outline(number) for number in page])
    assert not pages.more
