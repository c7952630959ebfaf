"""Text that is safe for a terminal: stored text may hold escape sequences, and none of them reaches it raw."""

import re
import unicodedata
from collections.abc import Callable
from typing import Any

_ALLOWED = {"\n", "\u200c", "\u200d"}
"""Line ends, and the two joiners without which some scripts and many emoji are not written right."""

_SUSPICIOUS = re.compile(r"[^\x20-\x7e\n]")
"""Whatever has to be looked at: plain ASCII is most of all text, and passes at once."""


def printable(text: str) -> str:
    r"""Return the text with control characters, and those that hide or turn others, as their escapes: `\x1b`."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return escaped(text, lambda character: character.encode("unicode_escape").decode("ascii"))


def escaped(text: str, escape: Callable[[str], str]) -> str:
    """Return the text with those characters escaped that a terminal should not get."""
    return _SUSPICIOUS.sub(lambda match: match[0] if _is_harmless(match[0]) else escape(match[0]), text)


def text_of(value: Any, write: Callable[[Any], str] = str) -> str:
    """Return a value as text. Python writes no integer of more than 4,300 digits, which may be inside of it."""
    try:
        return write(value)
    except ValueError:
        return "<too many digits to write>"


def one_line(text: str) -> str:
    """Like `printable`, in one line: an end of a line becomes its escape, too."""
    return printable(text).replace("\n", "\\n")


def _is_harmless(character: str) -> bool:
    return character.isprintable() or character in _ALLOWED or unicodedata.category(character) == "Zs"
