"""Pages and docstrings are plain: habits found in every paragraph are counted, so that they do not come back."""

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
GUIDES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
PAGES = [*GUIDES, *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "decisions")]
AVOIDED = ["anew", "beside", "meanwhile", "nobody", "somebody", "whoever"]
"""Words that stood on every page in place of a plainer one."""
FOLDERS = ["libs", "tests", "benchmarks", "scripts", "examples"]
"""The folders of code, whose docstrings are held to the same measures."""


class Prose(NamedTuple):
    """A page without code, tables of code and addresses, as sentences."""

    sentences: list[str]

    @property
    def words(self) -> int:
        """How many words there are."""
        return sum(len(re.findall(r"[\w']+", sentence)) for sentence in self.sentences)

    def count(self, pattern: str) -> int:
        """How often the pattern occurs."""
        return sum(len(re.findall(pattern, sentence, re.IGNORECASE)) for sentence in self.sentences)

    def per_thousand(self, count: int) -> float:
        """A count for each 1,000 words."""
        return round(1000 * count / self.words, 2)

    @property
    def you(self) -> float:
        """How often the reader is addressed: "you" and "your", and sentences in the imperative are not counted."""
        return self.per_thousand(self.count(r"\b(you|your|yours|yourself)\b"))

    @property
    def headless(self) -> float:
        """Clauses that begin with "what" and stand for a noun. Questions are left out."""
        return self.per_thousand(Prose([each for each in self.sentences if not each.endswith("?")]).count(r"\bwhat\b"))

    @property
    def fronted(self) -> float:
        """Sentences that begin with Where, What, Who or Of. Questions are left out."""
        found = [each for each in self.sentences if re.match(r"(Where|What|Who|Of)\b", each) and not each.endswith("?")]
        return self.per_thousand(len(found))


def prose(pages: Iterable[Path]) -> Prose:
    """The sentences of these pages."""
    return prose_of(page.read_text(encoding="utf-8") for page in pages)


def prose_of(texts: Iterable[str]) -> Prose:
    """The sentences of Markdown, or of docstrings."""
    sentences: list[str] = []
    for each in texts:
        text = re.sub(r"^ *```.*?^ *```$", "\n\n", each, flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"^\s*#.*$", "\n", text, flags=re.MULTILINE)
        text = re.sub(r"`[^`]*`", "CODE", text)
        text = re.sub(r"\]\([^)]*\)", "]", text)
        text = re.sub(r"^\s*(?:[*-]|\d+\.) ", "\n\n", text, flags=re.MULTILINE)
        text = re.sub(r"\|", "\n\n", text)
        for block in re.split(r"\n\s*\n", text):
            sentences += [one for one in re.split(r"(?<=[.!?:])\s+", " ".join(block.split())) if one]
    return Prose([re.sub(r"^[\W_]+", "", each) for each in sentences])


def docstrings(module: Path) -> Iterator[str]:
    """The docstrings of a module and of all in it, private ones and those of attributes too."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else []:
            match each:
                case ast.Expr(ast.Constant(str() as text)):
                    yield inspect.cleandoc(text)


@cache
def code(folder: str) -> Prose:
    """The docstrings of the modules in a folder."""
    return prose_of(text for module in sorted((ROOT / folder).rglob("*.py")) for text in docstrings(module))


def test_the_reader_is_addressed() -> None:
    assert prose(PAGES).you >= 8


def test_a_noun_stands_where_there_is_one() -> None:
    assert prose(PAGES).headless <= 1


def test_sentences_begin_with_their_subject() -> None:
    assert prose(PAGES).fronted <= 0.5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_none_of_the_avoided_words(page: Path) -> None:
    found = [word for word in AVOIDED if prose([page]).count(rf"\b{word}\b")]
    assert not found, f"{page.relative_to(ROOT)} says {', '.join(found)}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_are_written_like_the_pages(folder: str) -> None:
    assert code(folder).headless <= 0.5
    assert code(folder).fronted <= 0.5


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_have_none_of_the_avoided_words(folder: str) -> None:
    found = [each for each in code(folder).sentences if Prose([each]).count(rf"\b({'|'.join(AVOIDED)})\b")]
    assert not found


if __name__ == "__main__":
    for path in [Path(each) for each in sys.argv[1:]] or PAGES:
        one = prose([path])
        words = ", ".join(word for word in AVOIDED if one.count(rf"\b{word}\b"))
        figures = f"you {one.you}, what {one.headless}, fronted {one.fronted}; {one.words} words; {words}"
        sys.stdout.write(f"{path}: {figures}\n")
    for folder in FOLDERS:
        one = code(folder)
        sys.stdout.write(f"{folder}/: what {one.headless}, fronted {one.fronted}; {one.words} words\n")
    everything = prose(PAGES)
    sys.stdout.write(f"all: you {everything.you}, what {everything.headless}, fronted {everything.fronted}\n")
