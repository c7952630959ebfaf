"""A planted fault as data: a text of one file with its replacement, so that it survives when lines move."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent

PYTHON = ".py"


class Fault(NamedTuple):
    """A small and plausible mistake in one file."""

    name: str
    file: str
    """Below `libs/`."""
    old: str
    """Stands once in the file."""
    new: str
    tests: tuple[str, ...]
    """The arguments of pytest that choose the tests which should fail."""
    pure: bool = False
    """Whether the compiled part is left out, because the file has a compiled counterpart."""
    seeds: int = 0
    """How many simulated worlds should be enough, if the tests do not find it."""
    unseen: str = ""
    """Why neither tests nor worlds can find it."""

    @property
    def path(self) -> Path:
        """The file, from the root of the repository."""
        return Path("libs", self.file)

    def planted(self, text: str) -> str:
        """Return the text of the file with the fault. Raises ValueError if it cannot be planted as it is meant."""
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"{self.name}: its old text stands {count} times in {self.path}, and must stand once")
        found = text.replace(self.old, self.new)
        if found == text:
            raise ValueError(f"{self.name}: it changes nothing")
        expect_readable(self.path, found)
        return found


def cases(file: str, topics: str, way: str) -> tuple[str, ...]:
    """Return the arguments for some topics of the conformance suite, on one way to a backend.

    `-k` counts for all files that pytest is called with, so it lets tests of other files through.
    """
    of_suite = "test_behaviour or test_death or test_meeting or test_random"
    return file, "-k", f"(test_behaviour and ({topics}) and ({way})) or not ({of_suite})"


_TEXTS_AND_COMMENTS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|--[^\n]*""")
_PAIRS = {")": "(", "]": "[", "}": "{"}
_SQL_BLOCKS = ("if", "loop", "case", "begin")
_LUA_BLOCKS = ("if", "do", "function")


def expect_readable(path: Path, text: str) -> None:
    """Raise ValueError for text that is not of its language. In SQL and Lua, texts, brackets and blocks must close."""
    if path.suffix == PYTHON:
        try:
            ast.parse(text)
        except SyntaxError as error:
            raise ValueError(f"{path}: {error}") from error
        return
    code = _TEXTS_AND_COMMENTS.sub(" ", text)
    waiting: list[str] = []
    for sign in code:
        if sign in _PAIRS.values():
            waiting.append(sign)
        elif sign in _PAIRS and (not waiting or waiting.pop() != _PAIRS[sign]):
            raise ValueError(f"{path}: {sign!r} closes nothing")
    words = re.findall(r"\w+", code.lower())
    names = _SQL_BLOCKS if path.suffix == ".sql" else _LUA_BLOCKS
    # In SQL an end names what it ends, as END IF does.
    ends_named = len(re.findall(rf"\bend\s+(?:{'|'.join(names)})\b", code.lower())) * (path.suffix == ".sql")
    begun, ended = sum(word in names for word in words) - ends_named, words.count("end")
    if waiting or begun != ended or "'" in code:
        raise ValueError(f"{path}: {begun} blocks begin, {ended} end, and {len(waiting)} brackets are open")
