"""Stores search by vectors: order and scores, fields, models, owners and seals, alike on each backend and API."""

import asyncio
import logging
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import GetOp, PutOp, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore

from search_backends import BACKENDS, opening
from threadmark import ConfigError, CorruptDataError, Keyring, Saver
from threadmark.backends import Program, now
from threadmark.program import run, write
from threadmark_sqlite import SqliteSaver
from threadmark_store import Store, searching
from threadmark_store.backends import rows_over
from threadmark_store.shapes import ItemKey
from threadmark_store.vectors.contract import CHOICE, Vector, VectorStore

LETTERS = "abcdefgh"
DIMS = len(LETTERS)

Ask = Callable[..., Any]


def letters(texts: Sequence[str]) -> list[list[float]]:
    """Count letters."""
    return [[float(text.count(letter)) for letter in LETTERS] for text in texts]


async def letters_later(texts: Sequence[str]) -> list[list[float]]:
    """Count letters, for asyncio."""
    await asyncio.sleep(0)
    return letters(texts)


class Counting:
    """Embeddings that note what they were asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.append(list(texts))
        return letters(texts)


class Model(Embeddings):
    """LangChain's class, with another vector for a query than for a document."""

    model = "letters-1"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return letters(texts)

    def embed_query(self, text: str) -> list[float]:
        return letters([text[::-1].partition(":")[0]])[0]


def index(embed: Any = letters, **others: Any) -> Any:
    """A configuration."""
    return {"dims": DIMS, "embed": embed, "fields": ["text"], **others}


@pytest.fixture(params=BACKENDS)
def open_saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Saver]]:
    """Opens a saver on an empty database of each backend."""
    with opening(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def saver(open_saver: Callable[..., Saver]) -> Saver:
    return open_saver()


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """What compares vectors on the backend of the test."""
    return "pgvector" if request.node.callspec.params["open_saver"] == "pgvector" else "numpy"


@pytest.fixture(params=["blocking", "asyncio"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Calls a method of one of the two APIs."""

    def blocking(store: Store, name: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(store, name)(*args, **kwargs)

    def later(store: Store, name: str, *args: Any, **kwargs: Any) -> Any:
        return asyncio.run(getattr(store, f"a{name}")(*args, **kwargs))

    return blocking if request.param == "blocking" else later


def found(items: list[SearchItem]) -> list[tuple[str, float | None]]:
    """The keys and scores of a search."""
    return [(item.key, None if item.score is None else round(item.score, 4)) for item in items]


def test_the_nearest_come_first_and_those_without_vectors_last(saver: Saver, ask: Ask) -> None:
    store = Store(saver, index=index())
    ask(store, "put", ("docs",), "b", {"text": "b"})
    ask(store, "put", ("docs", "more"), "ab", {"text": "ab"})
    ask(store, "put", ("docs",), "other", {"title": "a"})
    ask(store, "put", ("docs",), "a", {"text": "aaa"})
    ask(store, "put", ("docs-2",), "outside", {"text": "a"})
    expected = [("a", 1.0), ("ab", 0.7071), ("b", 0.0), ("other", None)]
    assert found(ask(store, "search", ("docs",), query="a")) == expected
    assert found(ask(store, "search", ("docs",), query="a", limit=2)) == expected[:2]
    assert found(ask(store, "search", ("docs",), query="a", limit=2, offset=2)) == expected[2:]
    assert found(ask(store, "search", ("docs",), query="a", limit=0)) == []
    assert ("outside", 1.0) in found(ask(store, "search", (), query="a"))
    assert found(ask(store, "search", ("docs", "more"), query="b")) == [("ab", 0.7071)]


def test_scores_are_those_of_langgraph(saver: Saver, ask: Ask) -> None:
    chance = random.Random(1)
    words = ["".join(chance.choices(LETTERS, k=chance.randint(1, 9))) for _ in range(300)]
    ops = [
        PutOp(("docs", str(number % 7)), str(number), {"text": word, "size": len(word)})
        for number, word in enumerate(words)
    ]
    ours, theirs = Store(saver, index=index()), InMemoryStore(index=index())
    ask(ours, "batch", ops)
    for op in ops:  # a batch of theirs fails if two items have the same text
        theirs.batch([op])
    for query in ("abc", "h", "gggb"):
        for condition in (None, {"size": {"$gte": 5}}, {"size": 1}):
            for limit, offset in ((10, 0), (7, 20), (1000, 0)):
                asked: dict[str, Any] = {"query": query, "filter": condition, "limit": limit, "offset": offset}
                mine = ask(ours, "search", ("docs",), **asked)
                other = theirs.search(("docs",), **asked)
                assert [item.score for item in mine] == pytest.approx([item.score for item in other], abs=1e-6)
                assert {item.key for item in mine if limit == 1000} == {item.key for item in other if limit == 1000}


def test_the_best_field_counts(saver: Saver, ask: Ask) -> None:
    store = Store(saver, index=index(fields=["title", "parts[*].text"]))
    ask(store, "put", ("docs",), "1", {"title": "h", "parts": [{"text": "b"}, {"text": "a"}]})
    ask(store, "put", ("docs",), "2", {"title": "ab", "parts": []})
    assert found(ask(store, "search", ("docs",), query="a")) == [("1", 1.0), ("2", 0.7071)]
    assert found(ask(store, "search", ("docs",), query="h")) == [("1", 1.0), ("2", 0.0)]
    assert ask(store, "report").vectors_of_model == 4


def test_a_put_chooses_its_fields(saver: Saver, ask: Ask) -> None:
    store = Store(saver, index=index())
    value = {"text": "a", "title": {"long": "b"}}
    ask(store, "put", ("docs",), "usual", value)
    ask(store, "put", ("docs",), "none", value, index=False)
    ask(store, "put", ("docs",), "title", value, index=["title.long"])
    assert found(ask(store, "search", ("docs",), query="a")) == [("usual", 1.0), ("title", 0.0), ("none", None)]
    assert found(ask(store, "search", ("docs",), query="b", limit=1)) == [("title", 1.0)]
    with pytest.raises(ConfigError, match="list of paths"):
        ask(store, "batch", [PutOp(("docs",), "x", value, index=[1])])  # type: ignore[list-item]  # what is tested


def test_the_whole_value_is_the_field_of_no_fields(saver: Saver, ask: Ask) -> None:
    embed = Counting()
    store = Store(saver, index={"dims": DIMS, "embed": embed})
    ask(store, "put", ("docs",), "1", {"text": "ä", "a": [1]})
    ask(store, "put", ("docs",), "2", {"day": date(2026, 1, 2)})
    assert embed.asked == [['{"a": [1], "text": "ä"}'], ['{"day": "2026-01-02"}']]


def test_a_filter_and_a_query_together(saver: Saver, ask: Ask) -> None:
    store = Store(saver, index=index())
    ops = [PutOp(("docs",), f"{n:03}", {"text": "a" * n + "b", "n": n}) for n in range(200)]
    ask(store, "batch", [*ops, PutOp(("docs",), "plain", {"n": 7})])
    assert found(ask(store, "search", ("docs",), query="b", filter={"n": {"$gt": 150}}, limit=2)) == [
        ("151", 0.0066),
        ("152", 0.0066),
    ]
    assert found(ask(store, "search", ("docs",), query="b", filter={"n": 7})) == [("007", 0.1414), ("plain", None)]


def test_a_replaced_or_removed_item_is_not_found_by_its_old_text(saver: Saver, ask: Ask) -> None:
    store = Store(saver, index=index())
    ask(store, "put", ("docs",), "1", {"text": "a"})
    ask(store, "put", ("docs",), "2", {"text": "a"})
    ask(store, "put", ("docs",), "1", {"text": "b"})
    assert found(ask(store, "search", ("docs",), query="a")) == [("2", 1.0), ("1", 0.0)]
    ask(store, "delete", ("docs",), "2")
    assert ask(store, "report").vectors_of_model == 1
    ask(Store(saver), "put", ("docs",), "1", {"text": "c"})
    assert found(ask(store, "search", ("docs",), query="b")) == [("1", None)]
    assert ask(store, "report").vectors_of_model == 0


def test_vectors_go_with_expired_items(saver: Saver, ask: Ask, engine: str) -> None:
    store = Store(saver, index=index(), ttl={"omit_expired": True})
    ask(store, "put", ("docs",), "1", {"text": "a"}, ttl=0)
    ask(store, "put", ("docs",), "2", {"text": "a"})
    assert found(ask(store, "search", ("docs",), query="a")) == [("2", 1.0)]
    assert ask(store, "sweep_ttl") == 1
    assert ask(store, "report")[1:] == (engine, 1, 0, None)
    assert (ask(store, "stats").items, ask(store, "stats").bytes) == (1, 17)


def test_a_store_from_before_the_table_removes_vectors_with_their_items(
    saver: Saver, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleting, sweeping, putting = Store(saver), Store(saver), Store(saver)
    for each in (deleting, sweeping, putting):
        ask(each, "put", ("docs",), "first", {"text": "a"})  # no table of vectors yet, but in memory
    store = Store(saver, index=index())
    for key, ttl in (("1", None), ("2", 0), ("3", None)):
        ask(store, "put", ("docs",), key, {"text": "a"}, ttl=ttl)
    ask(deleting, "delete", ("docs",), "1")
    assert ask(sweeping, "sweep_ttl") == 1
    assert ask(store, "stats").vectors == 1
    later = now() + 61_000_000
    monkeypatch.setattr(searching, "now", lambda: later)
    ask(putting, "put", ("docs",), "3", {"text": "b"})
    assert ask(store, "stats").vectors == 0


def test_a_batch_embeds_each_text_once_between_transactions(saver: Saver, ask: Ask) -> None:
    embed = Counting()

    def reading(texts: Sequence[str]) -> list[list[float]]:
        assert plain.get(("docs",), "0") is not None  # within a transaction that writes it would wait for itself
        return embed(texts)

    plain = Store(saver)
    plain.put(("docs",), "0", {})
    store = Store(saver, index=index(reading))
    puts = [PutOp(("docs",), key, {"text": text}) for key, text in zip("12341", "abaac", strict=True)]
    results = ask(store, "batch", [*puts, SearchOp(("docs",), query="b"), GetOp(("docs",), "1")])
    assert embed.asked == [["c", "b", "a"], ["b"]]
    assert [item.key for item in results[5]] == ["0"]
    assert results[6] is None
    embed.asked.clear()
    assert len(ask(store, "batch", [SearchOp(("docs",), query="b"), SearchOp(("docs",), query="b")])[1]) == 5
    assert embed.asked == [["b"]]
    ask(store, "batch", [GetOp(("docs",), "1"), PutOp(("docs",), "1", None)])
    assert embed.asked == [["b"]]


def test_embeddings_of_each_kind(saver: Saver) -> None:
    store = Store(saver, index=index(letters_later))

    async def use() -> list[tuple[str, float | None]]:
        await store.aput(("docs",), "1", {"text": "a"})
        return found(await store.asearch(("docs",), query="a"))

    assert asyncio.run(use()) == [("1", 1.0)]
    with pytest.raises(ValueError, match="async function"):
        store.put(("docs",), "2", {"text": "a"})
    assert store.get(("docs",), "2") is None
    theirs = Store(saver, index=index(Model()))
    assert isinstance(theirs.embeddings, Model)
    theirs.put(("docs",), "1", {"text": "b"})
    assert found(theirs.search(("docs",), query="a:b")) == [("1", 1.0)]


@pytest.mark.parametrize(
    ("embed", "message"),
    [
        (lambda texts: [[1.0] * 3 for _ in texts], "field 'text' of item '1' has 3 dimensions"),
        (lambda texts: [[float("nan")] * DIMS for _ in texts], "field 'text' of item '1' is no vector"),
        (lambda texts: [["a"] * DIMS for _ in texts], "field 'text' of item '1' is no vector"),
        (lambda texts: [None for _ in texts], "field 'text' of item '1' is no vector"),
        (lambda _: [], "0 vectors for 1 texts"),
    ],
)
def test_what_is_no_embedding_is_refused(saver: Saver, ask: Ask, embed: Any, message: str) -> None:
    store = Store(saver, index=index(embed))
    with pytest.raises(ConfigError, match=message):
        ask(store, "put", ("docs",), "1", {"text": "a"})
    assert ask(store, "get", ("docs",), "1") is None


@pytest.mark.parametrize(
    ("wrong", "message"), [({"dims": 0}, "dims"), ({"dims": "8"}, "dims"), ({"fields": "text"}, "list of paths")]
)
def test_what_is_no_index_is_refused(saver: Saver, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Store(saver, index=index(**wrong))
    with pytest.raises(TypeError, match="query"):
        Store(saver, index=index()).search(("docs",), query=1)  # type: ignore[arg-type]  # what is tested


def test_very_large_small_and_empty_vectors(saver: Saver, ask: Ask) -> None:
    sizes = {"large": 1e200, "small": 1e-200, "zero": 0.0}
    store = Store(saver, index=index(lambda texts: [[sizes.get(text, 1.0), *[0.0] * 7] for text in texts]))
    for key in sizes:
        ask(store, "put", ("docs",), key, {"text": key})
    assert found(ask(store, "search", ("docs",), query="x")) == [("large", 1.0), ("small", 1.0), ("zero", 0.0)]


def test_another_model_is_compared_after_reindex_only(
    saver: Saver, ask: Ask, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    ask(Store(saver), "put", ("docs",), "before", {"text": "ab"})
    first = Store(saver, index=index())
    for key, chosen in (("usual", None), ("none", False), ("title", ["title"])):
        ask(first, "put", ("docs",), key, {"text": "a", "title": "b"}, index=chosen)
    embed = Counting()
    second = Store(saver, index=index(embed, model="letters-2"))
    with caplog.at_level(logging.WARNING, "threadmark.store"):
        for _ in range(2):
            assert {score for _, score in found(ask(second, "search", ("docs",), query="a"))} == {None}
    assert [record.message for record in caplog.records if record.name == "threadmark.store"] == [
        "2 vectors are not of the model letters-2 (8) and are not compared: store.reindex() computes them again"
    ]
    assert ask(second, "report")[1:4] == (engine, 0, 2)
    embed.asked.clear()
    assert ask(second, "reindex") == 3
    assert embed.asked == [["ab", "b", "a"]]
    assert ask(second, "report")[1:4] == (engine, 3, 0)
    expected = [("usual", 1.0), ("before", 0.7071), ("title", 0.0), ("none", None)]
    assert found(ask(second, "search", ("docs",), query="a")) == expected
    assert ask(second, "reindex") == 0
    assert embed.asked[1:] == [["a"]]
    with pytest.raises(ConfigError, match="neither `index`"):
        ask(Store(saver), "reindex")


def test_reindex_follows_the_fields_of_the_store(saver: Saver, ask: Ask) -> None:
    ask(Store(saver, index=index()), "put", ("docs",), "1", {"text": "a", "title": "b"})
    store = Store(saver, index=index(fields=["title"]))
    assert ask(store, "reindex") == 1
    assert found(ask(store, "search", ("docs",), query="b")) == [("1", 1.0)]
    assert ask(store, "report").vectors_of_model == 1


def test_reindex_leaves_an_item_alone_that_changes_in_between(saver: Saver, ask: Ask) -> None:
    def changing(texts: Sequence[str]) -> list[list[float]]:
        Store(saver, index=index(model="new")).put(("docs",), "1", {"text": "b"})
        return letters(texts)

    ask(Store(saver), "put", ("docs",), "1", {"text": "a"})
    ask(Store(saver), "put", ("docs",), "2", {"text": "a"})
    store = Store(saver, index=index(changing, model="new"))
    assert ask(store, "reindex") == 1
    assert found(ask(Store(saver, index=index(model="new")), "search", ("docs",), query="b")) == [
        ("1", 1.0),
        ("2", 0.0),
    ]


def test_reindex_keeps_the_fields_of_a_put_of_the_same_value_in_between(saver: Saver, ask: Ask) -> None:
    def putting(texts: Sequence[str]) -> list[list[float]]:
        Store(saver, index=index(model="new")).put(("docs",), "1", {"text": "a"}, index=False)
        return letters(texts)

    for key in ("1", "2"):
        ask(Store(saver), "put", ("docs",), key, {"text": "a"})
    assert ask(Store(saver, index=index(putting, model="new")), "reindex") == 1
    store = Store(saver, index=index(model="new"))
    assert found(ask(store, "search", ("docs",), query="a")) == [("2", 1.0), ("1", None)]
    assert ask(store, "reindex") == 0


def test_equal_vectors_have_equal_scores(saver: Saver, ask: Ask) -> None:
    def scattered(texts: Sequence[str]) -> list[list[float]]:
        chances = [random.Random(text) for text in texts]
        return [[chance.gauss(0, 1) for _ in range(24)] for chance in chances]

    store = Store(saver, index=index(scattered, dims=24))
    keys = [f"{number:02}" for number in range(11)]
    for number in range(11):
        shuffled = random.Random(number).sample(keys, len(keys))
        ask(store, "batch", [PutOp((f"n{number}",), key, {"text": "same"}) for key in shuffled])
        pages = [
            [item.key for item in ask(store, "search", (f"n{number}",), query="a question", limit=4, offset=offset)]
            for offset in range(0, len(keys), 4)
        ]
        assert [key for page in pages for key in page] == keys


@pytest.mark.parametrize("field", ["", "[", "7", "[7]", '"text"', "{}"])
def test_a_damaged_choice_is_reported_and_reindex_computes_the_usual_fields(
    open_saver: Callable[..., Saver], field: str
) -> None:
    saver = open_saver()
    store = Store(saver, index=index())
    store.put(("docs",), "1", {"text": "a", "title": "b"}, index=["title"])
    store.put(("docs",), "2", {"text": "a"})

    def damage(vectors: VectorStore) -> Program[None]:
        rows = yield from vectors.whole_rows([ItemKey("docs", "1")])
        damaged = [row._replace(vector=Vector(field, CHOICE, b"")) for row in rows if row.vector.number == CHOICE]
        yield from vectors.replace([ItemKey("docs", "1")], damaged)

    run(saver._driver, write(damage, rows_over(saver, "vectors")))
    problems = [problem.location for problem in store.verify().problems]
    assert problems == ([f"item '1' of namespace 'docs', vector {field!r}"] if field else [])
    assert store.reindex() == 1
    assert found(store.search(("docs",), query="a")) == [("1", 1.0), ("2", 1.0)]
    assert (store.verify().problems, store.reindex()) == ([], 0)


def test_many_items(saver: Saver, ask: Ask) -> None:
    plain, store = Store(saver), Store(saver, index=index())
    for start in range(0, 5000, 1000):
        ask(
            plain,
            "batch",
            [PutOp((f"n{n % 3}",), f"{n}", {"text": "ab"[n % 2] * 3}) for n in range(start, start + 1000)],
        )
    assert ask(store, "reindex") == 5000
    assert [score for _, score in found(ask(store, "search", (), query="a", limit=5000))] == [1.0] * 2500 + [0.0] * 2500
    keys = [
        key
        for page in range(5)
        for key, _ in found(ask(store, "search", ("n1",), query="b", limit=400, offset=400 * page))
    ]
    assert len(keys) == len(set(keys)) == 1667
    assert ask(store, "reindex") == 0


def test_an_owner_finds_the_own_items_only(open_saver: Callable[..., Saver], ask: Ask) -> None:
    saver = open_saver()
    everything = Store(saver, index=index())
    ada, bob = (Store(saver.for_owner(name), index=index()) for name in ("ada", "bob"))
    ask(ada, "put", ("docs",), "1", {"text": "a"})
    ask(bob, "put", ("docs",), "2", {"text": "a"})
    assert found(ask(ada, "search", ("docs",), query="a")) == [("1", 1.0)]
    with pytest.raises(PermissionError):
        ask(bob, "put", ("docs",), "1", {"text": "b"})
    ask(bob, "delete", ("docs",), "1")
    assert found(ask(ada, "search", ("docs",), query="a")) == [("1", 1.0)]
    ask(everything, "put", ("docs",), "1", {"text": "ab"})
    assert found(ask(ada, "search", ("docs",), query="a")) == [("1", 0.7071)]
    assert found(ask(everything, "search", ("docs",), query="a")) == [("2", 1.0), ("1", 0.7071)]
    assert (ask(ada, "report").vectors_of_model, ask(everything, "report").vectors_of_model) == (1, 2)


def test_a_keyring_seals_vectors(tmp_path: Path, ask: Ask) -> None:
    path = tmp_path / "items.db"
    keyring = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32))
    plain = {"text": "abcdefgh"}
    with SqliteSaver(path, keyring=keyring) as saver:
        store = Store(saver, index=index())
        ask(store, "put", ("docs",), "1", plain)
        assert found(ask(store, "search", ("docs",), query="abcdefgh")) == [("1", 1.0)]
        with closing(sqlite3.connect(path)) as connection:
            ((data,),) = connection.execute("SELECT vector FROM threadmark_store_vector").fetchall()
        assert len(data) > DIMS * 4
        assert data[8:12] * 3 not in data
        ask(store, "put", ("docs",), "2", plain)
        with closing(sqlite3.connect(path)) as connection, connection:  # move it to another item
            connection.execute("UPDATE threadmark_store_vector SET vector = ? WHERE key = '2'", (data,))
        with pytest.raises(CorruptDataError, match="moved here"):
            ask(store, "search", ("docs",), query="a")


def test_a_damaged_vector_is_named(tmp_path: Path, ask: Ask) -> None:
    path = tmp_path / "items.db"
    with SqliteSaver(path) as saver:
        store = Store(saver, index=index())
        ask(store, "put", ("docs",), "1", {"text": "a"})
        for data, message in ((b"abc", "3 bytes instead of 32"), (b"\xff" * 32, "not finite")):
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("UPDATE threadmark_store_vector SET vector = ?", (data,))
            with pytest.raises(CorruptDataError, match=message):
                ask(store, "search", ("docs",), query="a")
        ask(store, "put", ("docs",), "1", {"text": "a"})
        assert found(ask(store, "search", ("docs",), query="a")) == [("1", 1.0)]


def test_vectors_of_values_that_changed_without_them_do_not_count(tmp_path: Path, ask: Ask) -> None:
    path = tmp_path / "items.db"
    with SqliteSaver(path) as saver:
        store = Store(saver, index=index())
        for key in "123":
            ask(store, "put", ("docs",), key, {"text": "a"})
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE threadmark_store_vector SET checksum = 1 WHERE key = '1'")
            connection.execute("DELETE FROM threadmark_store_item WHERE key = '2'")
        assert found(ask(store, "search", ("docs",), query="a")) == [("3", 1.0), ("1", None)]
        assert ask(store, "reindex") == 1
        assert found(ask(store, "search", ("docs",), query="a")) == [("1", 1.0), ("3", 1.0)]
        assert ask(store, "report").vectors_of_model == 2


def test_a_query_without_an_index_is_ignored_with_one_warning(
    saver: Saver, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(saver)
    ask(store, "put", ("docs",), "1", {"text": "a"}, index=["text"])
    with caplog.at_level(logging.WARNING, "threadmark.store"):
        for _ in range(2):
            assert found(ask(store, "search", ("docs",), query="a")) == [("1", None)]
    assert [record.message for record in caplog.records] == [
        "a search has a query, but the store has no `index` and no `text_search`: it returns the newest items"
    ]
    assert store.embeddings is None
