"""Rows as columns of text: as wide as their contents, and on a terminal no wider than that."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Generic, NamedTuple, TypeVar

from rich.cells import cell_len, set_cell_size

from threadmark_cli.output.printable import one_line
from threadmark_cli.output.styles import Part, plain

Item = TypeVar("Item")

_MEASURED = 500
"""Rows after which the widths of columns stay as they are, so that rows appear while they are being read."""

_GAP = "  "
_LEAST = 8
"""Cells that a column keeps if it is cut."""


class Column(NamedTuple, Generic[Item]):
    """A column: its heading, and its text for an item."""

    heading: str
    cell: Callable[[Item], Part]
    right: bool = False
    """Whether it is aligned to the right, as numbers are."""
    cut: bool = False
    """Whether it may be cut if the terminal is too narrow."""


def laid_out(columns: Sequence[Column[Item]], items: Iterable[Item], width: int | None) -> Iterator[list[Part]]:
    """Yield lines as pieces, the headings first. Yields nothing but None if there are no items."""
    rows = ([_cell(column.cell(item)) for column in columns] for item in items)
    first = list(islice(rows, _MEASURED))
    if not first:
        return
    headings: list[Part] = [(column.heading, "heading") for column in columns]
    widths = _widths(columns, [headings, *first], width)
    for row in chain([headings], first, rows):
        yield list(_line(columns, row, widths))


def fitted(text: str, width: int) -> str:
    """The text, cut to a number of cells with an ellipsis if it is longer."""
    return text if cell_len(text) <= width else set_cell_size(text, max(width - 1, 0)).rstrip() + "…"


def _cell(part: Part) -> Part:
    return one_line(part) if isinstance(part, str) else (one_line(part[0]), part[1])


def _widths(columns: Sequence[Column[Item]], rows: Sequence[Sequence[Part]], width: int | None) -> list[int]:
    widths = [max(cell_len(plain(row[index])) for row in rows) for index in range(len(columns))]
    if width is None:
        return widths
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    while over > 0:
        may = [index for index, column in enumerate(columns) if column.cut and widths[index] > _LEAST]
        if not may:
            return widths
        widest = max(may, key=lambda index: widths[index])
        widths[widest] -= 1
        over -= 1
    return widths


def _line(columns: Sequence[Column[Item]], row: Sequence[Part], widths: Sequence[int]) -> Iterator[Part]:
    last = len(columns) - 1
    for index, (column, part, width) in enumerate(zip(columns, row, widths, strict=True)):
        text = fitted(plain(part), width) if column.cut else plain(part)
        space = " " * (width - cell_len(text))
        if column.right:
            yield space
        yield text if isinstance(part, str) else (text, part[1])
        if index < last:
            yield _GAP if column.right else space + _GAP
