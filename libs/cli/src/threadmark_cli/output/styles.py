"""Colours: the few styles that the commands use, as the escape sequences of a terminal."""

from functools import cache
from typing import Final, Literal

from rich.color import ColorSystem
from rich.style import Style

StyleName = Literal[
    "heading", "dim", "id", "name", "number", "text", "good", "warning", "bad", "added", "removed", "head"
]

_STYLES: Final[dict[str, str]] = {
    "heading": "bold",
    "dim": "bright_black",
    "id": "yellow",
    "name": "cyan",
    "number": "blue",
    "text": "default",
    "good": "green",
    "warning": "yellow",
    "bad": "bold red",
    "added": "green",
    "removed": "red",
    "head": "bold green",
}

Part = str | tuple[str, StyleName]
"""A piece of a line, with a style or plain."""


def styled(text: str, style: StyleName) -> str:
    """The text between escape sequences. It uses the 16 colours that every theme of a terminal defines."""
    before, after = _around(style)
    return f"{before}{text}{after}"


@cache
def _around(style: StyleName) -> tuple[str, str]:
    before, _, after = Style.parse(_STYLES[style]).render("|", color_system=ColorSystem.STANDARD).partition("|")
    return before, after


def plain(part: Part) -> str:
    """The text of a piece."""
    return part if isinstance(part, str) else part[0]
