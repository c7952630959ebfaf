"""Stores search by text: words, their rank, fields, owners and changes, alike on each backend and in both APIs."""

import asyncio
import itertools
import logging
import random
import sqlite3
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import PutOp, SearchItem

from search_backends import BACKENDS, opening
from threadmark import ConfigError, Keyring, Saver
from threadmark.backends import Program, now
from threadmark.memory.saver import MemorySaver
from threadmark.program import play
from threadmark_sqlite import SqliteSaver
from threadmark_store import Store, searching
from threadmark_store.shapes import ItemKey, Scope
from threadmark_store.words.contract import WordRow, WordTotals
from threadmark_store.words.ranking import best, words_in

Ask = Callable[..., Any]


@pytest.fixture(params=[name for name in BACKENDS if name != "redis"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Saver]:
    """A saver on an empty database of each backend."""
    with opening(request.param, tmp_path) as opened:
        yield opened()


@pytest.fixture(params=["blocking", "asyncio"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Calls a method of one of the two APIs."""

    def blocking(store: Store, name: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(store, name)(*args, **kwargs)

    def later(store: Store, name: str, *args: Any, **kwargs: Any) -> Any:
        return asyncio.run(getattr(store, f"a{name}")(*args, **kwargs))

    return blocking if request.param == "blocking" else later


def keys(items: list[SearchItem]) -> list[str]:
    """The keys of a search."""
    return [item.key for item in items]


def test_rare_words_count_more_and_long_texts_less(saver: Saver, ask: Ask) -> None:
    store = Store(saver, text_search=True)
    texts = {
        "both": "a green tree",
        "short": "green",
        "long": "green " + "and many other words " * 5,
        "often": "green green",
        "none": "red",
    }
    for key, text in texts.items():
        ask(store, "put", ("docs",), key, {"text": text})
    ask(store, "put", ("docs", "below"), "below", {"text": "tree"})
    ask(store, "put", ("docs-2",), "outside", {"text": "tree"})
    found = ask(store, "search", ("docs",), query="green tree")
    assert keys(found) == ["both", "below", "often", "short", "long"]
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
    assert keys(ask(store, "search", ("docs",), query="green tree", limit=2, offset=1)) == ["below", "often"]
    assert keys(ask(store, "search", ("docs",), query="green", filter={"text": {"$gt": "green"}})) == ["often", "long"]
    assert keys(ask(store, "search", ("docs",), query="blue")) == []
    assert keys(ask(store, "search", ("docs",), query="?!")) == []
    assert set(keys(ask(store, "search", (), query="tree"))) == {"both", "below", "outside"}
    assert ask(store, "report").text == "words"


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("Straße", "STRASSE", ["1"]),
        ("ﬁne", "fine", ["1"]),
        ("cafe\u0301", "café", ["1"]),
        ("user_id=7", "user_id", ["1"]),
        ("don't", "don", ["1"]),
        ("东京", "东京", ["1"]),
        ("की", "की", ["1"]),
        ("की", "का", []),
        ("राम की किताब", "किताब", ["1"]),
        ("ที่", "ทำ", []),
        ("ที่", "ที่", ["1"]),
        ("தமிழ்", "தமிழ", []),
        ("a love\ufe0f ❤\ufe0f", "\ufe0f ☀\ufe0f", []),
        ("a love\ufe0f ❤\ufe0f", "love", ["1"]),
        ("one \u0301 two", "\u0301", []),
        ("tree", "trees", []),
        ("x" * 100, "x" * 70, ["1"]),
        ("a\x00b", "b", ["1"]),
        ("\ud800 lone", "lone", ["1"]),
    ],
)
def test_words_are_compared_without_case_and_form(saver: Saver, text: str, query: str, found: list[str]) -> None:
    store = Store(saver, text_search=True)
    store.put(("docs",), "1", {"text": text})
    assert keys(store.search(("docs",), query=query)) == found


def test_all_texts_of_a_value_count_and_no_keys(saver: Saver, ask: Ask) -> None:
    store = Store(saver, text_search=True)
    ask(store, "put", ("docs",), "1", {"title": "one", "parts": [{"text": "two"}, "three"], "n": 4})
    for query, found in (("one", ["1"]), ("two", ["1"]), ("three", ["1"]), ("title", []), ("4", [])):
        assert keys(ask(store, "search", ("docs",), query=query)) == found


def test_fields_of_the_store_and_of_a_put(saver: Saver, ask: Ask) -> None:
    store = Store(saver, text_search=["title", "parts[*].text"])
    value = {"title": "one", "parts": [{"text": "two"}], "other": "three"}
    ask(store, "put", ("docs",), "usual", value)
    ask(store, "put", ("docs",), "none", value, index=False)
    ask(store, "put", ("docs",), "other", value, index=["other"])
    for query, found in (("one", ["usual"]), ("two", ["usual"]), ("three", ["other"])):
        assert keys(ask(store, "search", ("docs",), query=query)) == found
    with pytest.raises(ConfigError, match="list of paths"):
        ask(store, "batch", [PutOp(("docs",), "x", value, index=[1])])  # type: ignore[list-item]  # what is tested


def test_words_go_with_what_they_are_of(saver: Saver, ask: Ask) -> None:
    store = Store(saver, text_search=True, ttl={"omit_expired": True})
    for key in "1234":
        ask(store, "put", ("docs",), key, {"text": "old"})
    ask(store, "put", ("docs",), "1", {"text": "new"})
    ask(store, "delete", ("docs",), "2")
    ask(store, "put", ("docs",), "3", {"text": "old"}, ttl=0)
    ask(Store(saver), "put", ("docs",), "4", {"text": "old"})
    assert keys(ask(store, "search", ("docs",), query="old")) == []
    assert keys(ask(store, "search", ("docs",), query="new")) == ["1"]
    assert ask(store, "sweep_ttl") == 1
    assert ask(store, "reindex") == 1
    assert keys(ask(store, "search", ("docs",), query="old")) == ["4"]
    ask(Store(saver), "delete", ("docs",), "4")
    assert keys(ask(store, "search", ("docs",), query="old")) == []


def test_reindex_adds_what_is_missing_and_follows_the_fields(saver: Saver, ask: Ask) -> None:
    puts = [PutOp((f"n{n % 3}",), str(n), {"a": f"word{n}", "b": "every"}) for n in range(1000)]
    ask(Store(saver), "batch", puts)
    store = Store(saver, text_search=["a"])
    ask(store, "put", ("docs",), "chosen", {"a": "one", "b": "two"}, index=["b"])
    ask(store, "put", ("docs",), "none", {"a": "every"}, index=False)
    assert ask(store, "reindex") == 1000
    assert keys(ask(store, "search", (), query="word77")) == ["77"]
    assert keys(ask(store, "search", (), query="every")) == []
    assert ask(store, "reindex") == 0
    other = Store(saver, text_search=True)
    assert ask(other, "reindex") == 1000
    assert len(keys(ask(other, "search", (), query="every", limit=2000))) == 1000
    assert len(keys(ask(other, "search", ("n1",), query="every", limit=2000))) == 333
    assert keys(ask(other, "search", ("docs",), query="one two every")) == ["chosen"]


def test_an_owner_finds_the_own_items_only(saver: Saver, ask: Ask) -> None:
    everything = Store(saver, text_search=True)
    ada, bob = (Store(saver.for_owner(name), text_search=True) for name in ("ada", "bob"))
    ask(ada, "put", ("docs",), "1", {"text": "tree"})
    ask(bob, "put", ("docs",), "2", {"text": "tree"})
    ask(bob, "delete", ("docs",), "1")
    assert keys(ask(ada, "search", ("docs",), query="tree")) == ["1"]
    ask(everything, "put", ("docs",), "1", {"text": "green tree"})
    assert keys(ask(ada, "search", ("docs",), query="green")) == ["1"]
    assert keys(ask(bob, "search", ("docs",), query="green tree")) == ["2"]
    assert keys(ask(everything, "search", ("docs",), query="tree")) == ["2", "1"]


def test_words_of_values_that_changed_without_them_do_not_count(tmp_path: Path, ask: Ask) -> None:
    path = tmp_path / "items.db"
    with SqliteSaver(path) as saver:
        store = Store(saver, text_search=True)
        for key in "123":
            ask(store, "put", ("docs",), key, {"text": "tree"})
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE threadmark_store_word SET checksum = 1 WHERE key = '1'")
        connection.execute("DELETE FROM threadmark_store_item WHERE key = '2'")
    with SqliteSaver(path) as saver:
        store = Store(saver, text_search=True)
        assert keys(ask(store, "search", ("docs",), query="tree")) == ["3"]
        assert ask(store, "reindex") == 1
        assert keys(ask(store, "search", ("docs",), query="tree")) == ["1", "3"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM threadmark_store_word").fetchone() == (4,)


class Rows:
    """Stands for stored words, in some order."""

    def __init__(self, rows: list[WordRow]) -> None:
        self.rows = rows

    def find(self, _: Scope, words: Sequence[str]) -> Program[list[WordRow]]:
        yield from ()
        return [row for row in self.rows if row.word in words]

    def totals(self, _: Scope) -> Program[WordTotals]:
        yield from ()
        return WordTotals(50, 5000)


def test_the_order_of_stored_words_changes_no_score() -> None:
    texts = ["".join(letters) for letters in itertools.permutations("abcde", 3)]
    words = random.Random(1).sample(texts, 12)
    rows = [WordRow(ItemKey("docs", key), word, place + 1, 100, 1) for key in "12" for place, word in enumerate(words)]
    rows += [WordRow(ItemKey("docs", f"{word}{n}"), word, 1, 90 + n, 1) for word in words for n in range(len(word))]
    scores = set()
    for number in range(20):
        stored: Any = Rows(random.Random(number).sample(rows, len(rows)))
        ranking = play(best(stored, Scope(), words, None), lambda _: None)
        scores |= {ranking.scores["docs", key, 1] for key in "12"}
    assert len(scores) == 1


def test_every_mark_belongs_to_the_word_before_it() -> None:
    marks = [each for each in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(each) in ("Mn", "Mc")]
    inside = [mark for mark in marks if "VARIATION SELECTOR" not in unicodedata.name(mark)]
    for mark in inside:
        word = unicodedata.normalize("NFKC", f"ক{mark}ক").casefold()
        assert list(words_in([word])) == [word], ascii(mark)
    for mark in set(marks) - set(inside):
        assert list(words_in([f"a{mark} {mark} b"])) == ["a", "b"]


def test_damaged_counts_have_a_score() -> None:
    rows: Any = Rows([WordRow(ItemKey("docs", str(count)), "tree", count, 300, 1) for count in (-3, 0, 3)])
    assert len(play(best(rows, Scope(), ["tree"], None), lambda _: None).scores) == 3


def test_a_store_from_before_the_table_removes_words_with_their_item(saver: Saver, ask: Ask) -> None:
    before = Store(saver)
    ask(before, "put", ("docs",), "first", {"text": "tree"})  # no table of words yet, but in memory
    store = Store(saver, text_search=True)
    for key in "12":
        ask(store, "put", ("docs",), key, {"text": "a tree"})
    ask(before, "delete", ("docs",), "1")
    assert ask(store, "stats").words == 2


def test_a_sweep_looks_for_words_and_so_does_a_put_after_a_minute(
    saver: Saver, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeping, putting = Store(saver), Store(saver)
    for each in (sweeping, putting):
        ask(each, "put", ("docs",), "first", {"text": "tree"})
    store = Store(saver, text_search=True)
    ask(store, "put", ("docs",), "1", {"text": "a tree"}, ttl=0)
    ask(store, "put", ("docs",), "2", {"text": "a tree"})
    assert ask(sweeping, "sweep_ttl") == 1
    assert ask(store, "stats").words == 2
    later = now() + 61_000_000
    monkeypatch.setattr(searching, "now", lambda: later)
    ask(putting, "put", ("docs",), "2", {"text": "a river"})
    assert ask(store, "stats").words == 0


def test_what_a_text_search_cannot_have(saver: Saver) -> None:
    with pytest.raises(ConfigError, match="not both"):
        Store(saver, text_search=True, index={"dims": 1, "embed": lambda texts: [[1.0] for _ in texts]})
    with pytest.raises(ConfigError, match="list of paths"):
        Store(saver, text_search="title")  # type: ignore[arg-type]  # what is tested
    keyring = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32))
    with MemorySaver(keyring=keyring) as sealed, pytest.raises(ConfigError, match="stored as they are"):
        Store(sealed, text_search=True)


def test_redis_has_no_search_by_text(tmp_path: Path) -> None:
    with opening("redis", tmp_path) as opened, pytest.raises(ConfigError, match="no search by text on redis"):
        Store(opened(), text_search=True)


def test_a_search_by_text_warns_of_nothing(saver: Saver, ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "threadmark.store"):
        assert keys(ask(Store(saver, text_search=True), "search", ("docs",), query="tree")) == []
    assert caplog.records == []
