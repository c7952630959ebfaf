"""Words of texts, and the order of items by the words of a query: BM25, which counts rare words more than others.

A word is a run of letters, digits and underscores, without regard to case and to the form in which Unicode writes it.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from operator import attrgetter

from threadmark.backends import Program
from threadmark_store.ranking import Columns, Ranking
from threadmark_store.shapes import Scope
from threadmark_store.words.contract import WordStore

_WORD = re.compile(r"\w+")
_WORD_OF = attrgetter("word")
_LONGEST = 64
"""Characters of a word that count."""
_SATURATION, _LENGTH_SHARE = 1.2, 0.75
"""The usual parameters of BM25: how soon a repeated word counts no more, and how much long texts are discounted."""


def words_in(texts: Iterable[str]) -> Counter[str]:
    """Return the words of texts, and how often each is there."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word[:_LONGEST] for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()))
    return counts


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
