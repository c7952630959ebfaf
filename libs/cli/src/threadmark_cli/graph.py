"""The lines that `log --graph` draws next to checkpoints: their order, and the beginnings of branches."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

_MOST_LANES = 24
"""Lanes that are drawn. A thread that calls a thousand subgraphs at once has more."""


class Symbols(NamedTuple):
    """The characters of the drawing."""

    node: str
    line: str
    across: str
    crossing: str
    into: str
    corner: str
    meeting: str
    more: str


LINES = Symbols("●", "│", "─", "│", "├", "╯", "┴", "…")
ASCII = Symbols("*", "|", "-", "|", "|", "'", "'", ">")


class Graph:
    """Takes checkpoints newest first, each with the one that it follows, and gives the drawing before each of them."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._lanes: list[Hashable | None] = []
        """The checkpoint that each lane leads down to, None for a free one."""

    def add(self, key: Hashable, parent: Hashable | None) -> tuple[str | None, str]:
        """Return a line to draw before the checkpoint's, None for none, and the beginning of its own line."""
        waiting = [lane for lane, expected in enumerate(self._lanes) if expected == key]
        joins = self._joined(waiting) if len(waiting) > 1 else None
        lane = waiting[0] if waiting else self._free_lane()
        for other in waiting[1:]:
            self._lanes[other] = None
        self._lanes[lane] = key
        self._trim()
        drawn = self._drawn(lane)
        self._lanes[lane] = parent
        self._trim()
        return joins, drawn

    def _trim(self) -> None:
        while self._lanes and self._lanes[-1] is None:
            self._lanes.pop()

    def _free_lane(self) -> int:
        for lane, expected in enumerate(self._lanes):
            if expected is None:
                return lane
        self._lanes.append(None)
        return len(self._lanes) - 1

    def _drawn(self, own: int) -> str:
        symbols = self._symbols
        cells = [symbols.line if expected is not None else " " for expected in self._lanes]
        cells[own] = symbols.node
        return self._cut(cells)

    def _joined(self, waiting: Sequence[int]) -> str:
        """The line on which lanes meet in the first of them."""
        first, last, symbols = waiting[0], waiting[-1], self._symbols
        cells: list[str] = []
        for lane, expected in enumerate(self._lanes):
            if lane == first:
                cells.append(symbols.into)
            elif lane in waiting:
                cells.append(symbols.corner if lane == last else symbols.meeting)
            elif expected is not None:
                cells.append(symbols.crossing)
            else:
                cells.append(symbols.across if first < lane < last else " ")
        gaps = [symbols.across if first <= lane < last else " " for lane in range(len(cells))]
        drawn = "".join(cell + gap for cell, gap in zip(cells, gaps, strict=True))
        return drawn[: 2 * _MOST_LANES].rstrip()

    def _cut(self, cells: Sequence[str]) -> str:
        more = f" {self._symbols.more}" if len(cells) > _MOST_LANES else ""
        return " ".join(cells[:_MOST_LANES]) + more
