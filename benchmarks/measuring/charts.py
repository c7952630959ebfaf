"""Charts of ratios as SVG: bars to the right of a line are faster (or smaller) than the peer, to the left slower.

The scale is logarithmic, so that twice as fast and half as fast are equally long. The background is transparent, and
the colours are of a middle brightness, so that the chart can be read on a light page and on a dark one.
"""

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

_TEXT, _LINE, _BETTER, _WORSE = "#7d8590", "#8b949e", "#3b82f6", "#e0752d"
_WIDTH, _LEFT, _RIGHT = 760, 250, 70
_TOP, _ROW, _GAP = 58, 18, 12
_BAR = 12
_NARROWEST = 2.0
"""The scale reaches at least from half to twice, or a chart of ratios near 1 would exaggerate them."""


class Group(NamedTuple):
    """Bars that belong together, each with its label and ratio."""

    title: str
    bars: Sequence[tuple[str, float]]


def ratios(title: str, subtitle: str, groups: Sequence[Group]) -> str:
    """A chart as the text of an SVG file."""
    values = [ratio for group in groups for _, ratio in group.bars]
    scale = _Scale(min([1 / _NARROWEST, *values]), max([_NARROWEST, *values]))
    body, bottom = list[str](), _TOP
    for group in groups:
        body.append(_text(12, bottom + _BAR - 2, group.title, weight="600"))
        for label, ratio in group.bars:
            body += _bar(scale, bottom, label, ratio)
            bottom += _ROW
        bottom += _GAP
    one = scale.at(1)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom}" width="{_WIDTH}"',
            f'  height="{bottom}" role="img" aria-label="{escape(title)}"',
            '  font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="12">',
            _text(12, 20, title, weight="600", size=15),
            _text(12, 38, subtitle),
            f'<line x1="{one:.1f}" x2="{one:.1f}" y1="{_TOP - 6}" y2="{bottom - _GAP}" stroke="{_LINE}"/>',
            *body,
            "</svg>\n",
        ]
    )


class _Scale:
    """The place of a ratio on the chart."""

    def __init__(self, least: float, most: float) -> None:
        self._least = math.log(least)
        self._share = (_WIDTH - _LEFT - 2 * _RIGHT) / (math.log(most) - self._least)

    def at(self, ratio: float) -> float:
        return _LEFT + _RIGHT + (math.log(ratio) - self._least) * self._share


def _bar(scale: _Scale, top: int, label: str, ratio: float) -> Iterator[str]:
    start, end = sorted((scale.at(1), scale.at(ratio)))
    yield _text(_LEFT, top + _BAR - 2, label, anchor="end")
    yield (
        f'<rect x="{start:.1f}" y="{top}" width="{max(end - start, 1):.1f}" height="{_BAR}" rx="2" '
        f'fill="{_BETTER if ratio >= 1 else _WORSE}"/>'
    )
    if ratio >= 1:
        yield _text(end + 5, top + _BAR - 2, times(ratio))
    else:
        yield _text(start - 5, top + _BAR - 2, times(ratio), anchor="end")


def times(ratio: float) -> str:
    """A ratio as it is written: two digits, and no fraction from 10."""
    return f"{ratio:.0f}x" if ratio >= 9.95 else f"{ratio:.1f}x" if ratio >= 0.95 else f"{ratio:.2f}x"


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "400", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" font-size="{size}" '
        f'fill="{_TEXT}">{escape(text)}</text>'
    )
