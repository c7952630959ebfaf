"""The pages address the reader: habits found in every paragraph are counted, so that they do not come back."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
GUIDES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
PAGES = [*GUIDES, *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "decisions")]
AVOIDED = ["anew", "beside", "meanwhile", "nobody", "somebody", "whoever"]
"""Words that stood on every page in place of a plainer one."""


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
    sentences: list[str] = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"^ *```.*?^ *```$", "\n\n", text, flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"^\s*#.*$", "\n", text, flags=re.MULTILINE)
        text = re.sub(r"`[^`]*`", "CODE", text)
        text = re.sub(r"\]\([^)]*\)", "]", text)
        text = re.sub(r"^\s*(?:[*-]|\d+\.) ", "\n\n", text, flags=re.MULTILINE)
        text = re.sub(r"\|", "\n\n", text)
        for block in re.split(r"\n\s*\n", text):
            sentences += [each for each in re.split(r"(?<=[.!?:])\s+", " ".join(block.split())) if each]
    return Prose([re.sub(r"^[\W_]+", "", each) for each in sentences])


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


if __name__ == "__main__":
    for path in [Path(each) for each in sys.argv[1:]] or PAGES:
        one = prose([path])
        words = ", ".join(word for word in AVOIDED if one.count(rf"\b{word}\b"))
        figures = f"you {one.you}, what {one.headless}, fronted {one.fronted}; {one.words} words; {words}"
        sys.stdout.write(f"{path}: {figures}\n")
    everything = prose(PAGES)
    sys.stdout.write(f"all: you {everything.you}, what {everything.headless}, fronted {everything.fronted}\n")
