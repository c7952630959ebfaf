"""Items of LangGraph's stores on SQLite and Postgres: taken over with times, fields and vectors, and back; words."""

import asyncio
import itertools
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore, ensure_embeddings
from langgraph.store.memory import InMemoryStore as LangGraphsMemory
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

from postgres import cluster
from search_backends import opening
from threadmark import ConfigError, MemorySaver
from threadmark_store import InMemoryStore, Store
from threadmark_store.shapes import StoreMoved

NS = ("users", "ada")
VALUE = {"text": "tree", "n": 1.0, "deep": {"list": [None, True, "é"]}}
OLD = datetime(2025, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

_numbers = itertools.count()

Blocking = Callable[[], AbstractContextManager[Any]]
Waiting = Callable[[], AbstractAsyncContextManager[Any]]


@pytest.fixture(params=["sqlite", "postgres"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Blocking, Waiting]]:
    """LangGraph's two stores on one new database."""
    if request.param == "sqlite":
        path = str(tmp_path / "theirs.db")
        yield lambda: SqliteStore.from_conn_string(path), lambda: AsyncSqliteStore.from_conn_string(path)
        return
    name = f"moved_items_{next(_numbers)}"
    url = cluster.shared().database(name)
    yield lambda: PostgresStore.from_conn_string(url), lambda: AsyncPostgresStore.from_conn_string(url)
    cluster.shared().execute(f"DROP DATABASE {name} WITH (FORCE)")


def _fill(theirs: BaseStore) -> None:
    store: Any = theirs
    store.setup()
    store.put(NS, "diet", VALUE)
    store.put(NS, "draft", {"text": "river"}, ttl=90)
    mark = "?" if isinstance(theirs, SqliteStore) else "%s"
    with store._cursor() as cursor:
        old: Any = str(OLD.replace(tzinfo=None)) if mark == "?" else OLD
        cursor.execute(f"UPDATE store SET created_at = {mark} WHERE key = 'diet'", (old,))


def _check(ours: Store) -> None:
    diet, draft = ours.get(NS, "diet"), ours.get(NS, "draft", refresh_ttl=False)
    assert diet is not None
    assert draft is not None
    assert (diet.value, diet.created_at) == (VALUE, OLD)
    assert timedelta(0) <= datetime.now(UTC) - draft.updated_at < timedelta(minutes=1)


def test_items_are_taken_over_and_go_back(stores: tuple[Blocking, Waiting]) -> None:
    opened, _ = stores
    with opened() as theirs:
        _fill(theirs)
        ours = InMemoryStore()
        assert ours.migrate(theirs, dry_run=True) == StoreMoved(2, 0, 0, [])
        assert ours.stats().items == 0
        assert ours.migrate(theirs) == StoreMoved(2, 0, 0, [])
        _check(ours)
        before = _rows(theirs)
        for key in ("diet", "draft"):
            theirs.delete(NS, key)
        assert ours.export(theirs) == StoreMoved(2, 0, 0, [])
        assert _rows(theirs) == before
        assert ours.export(theirs) == ours.migrate(theirs) == StoreMoved(0, 2, 0, [])
        ours.put(NS, "diet", {"n": 2})
        assert ours.migrate(theirs) == StoreMoved(0, 1, 1, [])
        assert ours.export(theirs).items == 1
        assert theirs.get(NS, "diet").value == {"n": 2}


def test_a_later_version_goes_also_if_only_a_type_or_the_time_to_live_differs(stores: tuple[Blocking, Waiting]) -> None:
    opened, _ = stores
    with opened() as theirs:
        theirs.setup()
        ours = InMemoryStore()
        ours.put(NS, "k", {"done": 1}, ttl=90)
        assert ours.export(theirs) == StoreMoved(1, 0, 0, [])
        ours.put(NS, "k", {"done": True}, ttl=90)
        assert ours.export(theirs) == StoreMoved(1, 0, 0, [])
        ((value, _, life),) = _rows(theirs)
        assert (value["done"] is True, life) == (True, 90)
        ours.put(NS, "k", {"done": True}, ttl=None)
        assert ours.export(theirs) == StoreMoved(1, 0, 0, [])
        ((_, _, life),) = _rows(theirs)
        assert life is None
        with theirs._cursor() as cursor:
            (row,) = cursor.execute("SELECT expires_at FROM store").fetchall()
        assert (row["expires_at"] if isinstance(row, dict) else row[0]) is None
        assert ours.export(theirs) == StoreMoved(0, 1, 0, [])


def _rows(theirs: Any) -> list[tuple[Any, ...]]:
    """Return the items as LangGraph's store reads them, and how long they live."""
    with theirs._cursor() as cursor:
        rows = cursor.execute("SELECT * FROM store ORDER BY key").fetchall()
    lives = [row["ttl_minutes"] if isinstance(row, dict) else row[6] for row in rows]
    found = sorted(theirs.search((), refresh_ttl=False), key=lambda item: str(item.key))
    times = [[_utc(each) for each in (item.created_at, item.updated_at)] for item in found]
    return list(zip([item.value for item in found], times, lives, strict=True))


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def test_asyncio_stores_are_awaited(stores: tuple[Blocking, Waiting]) -> None:
    opened, aopened = stores

    async def move() -> None:
        ours = InMemoryStore()
        async with aopened() as theirs:
            with pytest.raises(ConfigError, match="await the method whose name begins with `a`"):
                await asyncio.to_thread(ours.migrate, theirs)
            assert await ours.amigrate(theirs) == StoreMoved(2, 0, 0, [])
            _check(ours)
            await theirs.adelete(NS, "diet")
            assert await ours.aexport(theirs) == StoreMoved(1, 1, 0, [])
        with opened() as blocking:
            assert await ours.aexport(blocking) == StoreMoved(0, 2, 0, [])

    with opened() as theirs:
        _fill(theirs)
    asyncio.run(move())


def test_fields_and_vectors_of_the_same_model_are_taken_over(tmp_path: Path) -> None:
    asked: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[1.0, 0.0] for _ in texts]

    index: Any = {"dims": 2, "embed": embed, "fields": ["text"]}
    with SqliteStore.from_conn_string(str(tmp_path / "theirs.db")) as theirs:
        theirs.setup()
        for statement in theirs.VECTOR_MIGRATIONS:
            theirs.conn.executescript(statement)
        names = {"usual": ["text"], "other": ["tags[*].0", "tags[*].1"], "hidden": [], "odd": ["text", "a.1"]}
        for key, some in names.items():
            theirs.put(NS, key, {"text": f"text of {key}", "tags": ["x", "y"], "a.1": "b"})
            for name in some:
                row = (".".join(NS), key, name, struct.pack("<2f", 3, 4))
                theirs.conn.execute(
                    "INSERT INTO store_vectors (prefix, key, field_name, embedding) VALUES (?, ?, ?, ?)", row
                )
        their_index: Any = {**index, "embed": ensure_embeddings(embed)}
        theirs.index_config = their_index
        other_index: Any = {**index, "model": "another"}
        ours, another = InMemoryStore(index=index), InMemoryStore(index=other_index)
        assert ours.migrate(theirs).items == 4
        assert asked == []
        assert another.migrate(theirs).items == 4
    assert sorted(asked) == ["text of odd", "text of usual", "x", "y"]
    for store in (ours, another):
        assert store.verify(decode=True).problems == []
        assert store.stats().vectors == 4
        scored = {item.key for item in store.search((), query="q") if item.score is not None}
        assert scored == {"usual", "other", "odd"}
    assert store.reindex() == 0, "the chosen fields are kept"


def test_words_go_along_and_are_found() -> None:
    source = InMemoryStore()
    some = Store(source.saver, text_search=["text"])
    some.put(NS, "1", {"text": "the river", "more": "tree"})
    some.put(NS, "2", {"text": "a river", "more": "tree"}, index=["more"])
    every = Store(source.saver, text_search=True)
    every.put(NS, "3", {"any": ["a tree"], "pair": (1, 2)})
    target = Store(MemorySaver(), text_search=["text"])
    assert source.export(target) == StoreMoved(3, 0, 0, [])
    for query in ("river", "tree"):
        assert target.search((), query=query) == some.search((), query=query)
    assert (target.stats(), target.verify().problems) == (some.stats(), [])


def test_an_item_that_the_target_refuses_stays_behind_and_is_named(tmp_path: Path) -> None:
    long = "k" * 3000
    source, theirs = InMemoryStore(), LangGraphsMemory()
    for store in (source, theirs):
        for key in ("a", long, "z"):
            store.put(NS, key, {"n": 1})
    with opening("postgres", tmp_path) as opened:
        target = Store(opened())
        for move, there in ((source.export, target), (target.migrate, theirs)):
            moved = move(there)
            assert moved[:3] == (2, 0, 0)
            ((kind, location, problem),) = moved.problems
            assert (kind, location) == ("unreadable", f"item {long!r} of namespace 'users.ada'")
            assert "has a key of 3009 bytes with its namespace" in problem
            for key in ("a", "z"):
                assert target.get(NS, key) is not None
                target.delete(NS, key)


def test_something_that_is_no_store_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected a store, got str"):
        InMemoryStore().migrate("items.db")  # type: ignore[arg-type]  # that is the point
