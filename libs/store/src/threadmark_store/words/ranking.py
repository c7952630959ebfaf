"""Words of texts, and the order of items by the words of a query: BM25, which counts rare words more than others.

A word is a run of letters, digits and underscores with their marks, such as vowels in Hindi and tones in Thai, without
regard to case and to the form in which Unicode writes it. Languages that write no spaces have long words.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import groupby
from operator import attrgetter

from threadmark.backends import Program
from threadmark_store.ranking import Columns, Ranking
from threadmark_store.shapes import Scope
from threadmark_store.words.contract import WordStore

_ASCII_WORD = re.compile(r"\w+")
_MARKS = 0x300, 0x20000
"""The first mark, and the end of the last one but for the variation selectors at the end of Unicode."""
_WORD_OF = attrgetter("word")
_LONGEST = 64
"""Characters of a word that count."""
_SATURATION, _LENGTH_SHARE = 1.2, 0.75
"""The usual parameters of BM25: how soon a repeated word counts no more, and how much long texts are discounted."""


def words_in(texts: Iterable[str]) -> Counter[str]:
    """Return the words of texts, and how often each is there."""
    counts: Counter[str] = Counter()
    for text in texts:
        if text.isascii():
            found = _ASCII_WORD.findall(text.lower())
        else:
            found = _word().findall(unicodedata.normalize("NFKC", text).casefold())
        counts.update(word[:_LONGEST] for word in found)
    return counts


@cache
def _word() -> re.Pattern[str]:
    """Return the pattern of a word with marks, without which different words of many languages are the same.

    Variation selectors only choose the picture of a sign, so they stay outside.
    """
    marks = [code for code in range(*_MARKS) if unicodedata.category(chr(code)) in ("Mn", "Mc")]
    some = [code for code in marks if "VARIATION SELECTOR" not in unicodedata.name(chr(code))]
    # Ranges, and a look at whether a sign may be one, so that a text takes hardly longer than without marks.
    ranges = [[code for _, code in run] for _, run in groupby(enumerate(some), lambda each: each[1] - each[0])]
    mark = "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in ranges)
    return re.compile(rf"\w+(?:(?=[^\0-{chr(_MARKS[0] - 1)}])[{mark}]+\w*)*")


def best(words: WordStore, scope: Scope, query: Iterable[str], wanted: int | None) -> Program[Ranking]:  # noqa: ARG001 - all are compared anyway
    """Return all items of a scope that have one of the words, however many are wanted."""
    asked = sorted(set(query))
    rows = (yield from words.find(scope, asked)) if asked else []
    if not rows:
        return Ranking({})
    totals = yield from words.totals(scope)
    having = Counter(row.word for row in rows)
    rarity = {
        word: math.log1p((max(totals.items, number) - number + 0.5) / (number + 0.5)) for word, number in having.items()
    }
    usual_length = max(totals.words, 1) / max(totals.items, 1)
    scores: dict[Columns, float] = {}
    for (namespace, key), word, count, length, check, _ in sorted(rows, key=_WORD_OF):  # as sums depend on the order
        times, words_there = max(count, 1), max(length, 1)  # damaged rows may have less, and the sum below be 0
        discount = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * words_there / usual_length)
        item = namespace, key, check
        scores[item] = scores.get(item, 0.0) + rarity[word] * times * (_SATURATION + 1) / (times + discount)
    return Ranking(scores)
