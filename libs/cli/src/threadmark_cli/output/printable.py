"""Text that a terminal can be given: what is stored may hold escape sequences, and none of them reaches it raw."""

import re
import unicodedata

_ALLOWED = {"\n", "\u200c", "\u200d"}
"""Line ends, and the two joiners without which some scripts and many emoji are not written right."""

_SUSPICIOUS = re.compile(r"[^\x20-\x7e\n]")
"""Whatever has to be looked at: plain ASCII is most of all text, and passes at once."""


def printable(text: str) -> str:
    r"""Return the text with control characters, and those that hide or turn others, as their escapes: `\x1b`."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return _SUSPICIOUS.sub(_shown, text)


def one_line(text: str) -> str:
    """Like `printable`, in one line: an end of a line is shown as its escape, too."""
    return printable(text).replace("\n", "\\n")


def _shown(match: re.Match[str]) -> str:
    character = match[0]
    if character.isprintable() or character in _ALLOWED or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode("ascii")
