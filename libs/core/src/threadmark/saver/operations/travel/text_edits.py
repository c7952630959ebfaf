"""How one text became another, as pieces: by lines where one of them has several, else by words."""

import re
from collections.abc import Callable, Iterator

from threadmark.saver.operations.travel.aligning import aligned
from threadmark.travel import Edit, EditKind

_MOST = 100_000
"""Of texts with more pieces only what they begin and end with is told from what is between."""

_WORD = re.compile(r"\w+|\s+|[^\w\s]")


def text_edits(before: str, after: str) -> list[Edit]:
    """Return the pieces in order. Those that are equal or removed are the one text, equal or added the other."""
    lines = "\n" in before.rstrip("\n") or "\n" in after.rstrip("\n")
    ours, theirs = (_lines(text) if lines else _WORD.findall(text) for text in (before, after))
    if len(ours) + len(theirs) > _MOST:
        return list(_outer(before, after))
    edits: list[Edit] = []
    for start, stop, other_start, other_stop, same in aligned(ours, theirs):
        removed, added = "".join(ours[start:stop]), "".join(theirs[other_start:other_stop])
        edits += _pieces(removed, added, same=same)
    return edits


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _pieces(removed: str, added: str, *, same: bool) -> Iterator[Edit]:
    pieces: tuple[tuple[EditKind, str], ...] = (
        (("equal", removed),) if same else (("removed", removed), ("added", added))
    )
    for kind, text in pieces:
        if text:
            yield Edit(kind, text)


def _outer(before: str, after: str) -> Iterator[Edit]:
    """Yield what both texts begin with, what is between, and what both end with."""
    shorter = min(len(before), len(after))
    start = _common(lambda length: before[:length] == after[:length], shorter)
    end = _common(lambda length: before[len(before) - length :] == after[len(after) - length :], shorter - start)
    yield from _pieces(before[:start], "", same=True)
    yield from _pieces(before[start : len(before) - end], after[start : len(after) - end], same=False)
    yield from _pieces(before[len(before) - end :], "", same=True)


def _common(agree: Callable[[int], bool], most: int) -> int:
    """Return the greatest length at which two texts agree."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if agree(middle) else (least, middle - 1)
    return least
