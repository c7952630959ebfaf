"""Vectors that Postgres compares with the extension pgvector. The tests of every backend are in `test_search.py`."""

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count
from typing import Any

import psycopg
import pytest
from langgraph.store.base import PutOp
from langgraph.store.postgres import PostgresStore as LangGraphsStore

from patience import wait_until
from postgres.cluster import with_pgvector
from threadmark import CorruptDataError, Keyring, MemorySaver, replicated
from threadmark_postgres import PostgresSaver
from threadmark_store import Store

_DIMS = 24
_numbers = count()


class Embeddings:
    """Makes a vector of each text by chance, and notes the texts."""

    def __init__(self, dims: int = _DIMS) -> None:
        self.asked: list[str] = []
        self._dims = dims

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return [[random.Random(f"{text}{place}").gauss() for place in range(self._dims)] for text in texts]


@pytest.fixture
def url() -> str:
    """A database that does not have the extension yet."""
    return with_pgvector().database(f"vectors_{next(_numbers)}")


@pytest.fixture
def database(url: str) -> Iterator[psycopg.Connection[Any]]:
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        yield connection


def _index(embed: Embeddings | None = None, dims: int = _DIMS, **others: Any) -> Any:
    return {"dims": dims, "embed": embed or Embeddings(dims), "fields": ["text"], **others}


def _put(store: Store, keys: Sequence[str]) -> None:
    store.batch([PutOp(("notes",), key, {"text": key}) for key in keys])


def _keys(store: Store, query: str, limit: int = 100, **options: Any) -> list[str]:
    return [item.key for item in store.search(("notes",), query=query, limit=limit, **options)]


def _stored(database: psycopg.Connection[Any]) -> list[tuple[bool, int]]:
    """Whether the vectors are in the extension's column, and their bytes in the other one."""
    statement = "SELECT DISTINCT embedding IS NOT NULL, length(vector) FROM threadmark_store_vector ORDER BY 1"
    return database.execute(statement).fetchall()


def test_the_order_is_that_of_numpy(url: str, database: psycopg.Connection[Any]) -> None:
    database.execute("CREATE EXTENSION vector")
    names = [f"{number}" for number in range(1000)]
    with PostgresSaver(url) as saver:
        ours, other = Store(saver, index=_index()), Store(MemorySaver(), index=_index())
        for store in ours, other:
            for start in range(0, len(names), 100):
                _put(store, names[start : start + 100])
        assert (ours.report().vectors, other.report().vectors) == ("pgvector", "numpy")
        assert _stored(database) == [(True, 0)]
        for query in "12", "a", "b":
            for limit, offset in (10, 0), (50, 200), (2000, 0):
                found = [store.search(("notes",), query=query, limit=limit, offset=offset) for store in (ours, other)]
                assert [item.key for item in found[0]] == [item.key for item in found[1]]
                assert [item.score for item in found[0]] == pytest.approx([item.score for item in found[1]], abs=1e-6)
        assert _keys(ours, "7", limit=1, filter={"text": "999"}) == ["999"]  # which is not among the best


def test_equal_vectors_come_in_the_order_of_their_keys(url: str, database: psycopg.Connection[Any]) -> None:
    database.execute("CREATE EXTENSION vector")
    with PostgresSaver(url) as saver:
        store = Store(saver, index=_index())
        keys = [f"{number:03}" for number in range(300)]
        random.Random(1).shuffle(keys)
        store.batch([PutOp(("notes",), key, {"text": "same"}) for key in keys])
        pages = [_keys(store, "same", limit=70, offset=offset) for offset in range(0, 300, 70)]
        assert [key for page in pages for key in page] == sorted(keys)


def test_an_item_with_many_vectors_leaves_room_for_others(url: str, database: psycopg.Connection[Any]) -> None:
    database.execute("CREATE EXTENSION vector")
    with PostgresSaver(url) as saver:
        store = Store(saver, index=_index() | {"fields": ["texts[*]"]})
        store.put(("notes",), "many", {"texts": ["near"] * 500})
        store.put(("notes",), "few", {"texts": ["far"]})
        assert _keys(store, "near", limit=2) == ["many", "few"]


def test_an_extension_that_comes_later(url: str, database: psycopg.Connection[Any]) -> None:
    embed = Embeddings()
    with PostgresSaver(url) as saver, PostgresSaver(url) as another:
        before = Store(saver, index=_index(embed))
        _put(before, ["1", "2"])
        assert before.report().vectors == "numpy"
        expected = [(item.key, item.score) for item in before.search((), query="3")]
        database.execute("CREATE EXTENSION vector")
        store = Store(another, index=_index(embed))
        assert store.report().vectors == "pgvector"
        assert [(item.key, item.score) for item in store.search((), query="3")] == expected
        _put(store, ["3"])
        assert _stored(database) == [(False, 4 * _DIMS), (True, 0)]
        for each in store, before:  # the one that was open before sees it, too
            assert each.report().vectors == "pgvector"
            assert _keys(each, "3")[0] == "3"
            assert sorted(_keys(each, "3")) == ["1", "2", "3"]
        _put(before, ["4"])
        embed.asked.clear()
        assert store.reindex() == 0
        assert embed.asked == []
        assert _stored(database) == [(True, 0)]
        assert sorted(_keys(store, "3")) == ["1", "2", "3", "4"]
        assert store.verify().problems == []


def test_an_extension_that_is_dropped(url: str, database: psycopg.Connection[Any]) -> None:
    database.execute("CREATE EXTENSION vector")
    with PostgresSaver(url) as saver:
        _put(Store(saver, index=_index()), ["1", "2"])
        database.execute("DROP EXTENSION vector CASCADE")
        store = Store(saver, index=_index())
        assert store.report().vectors == "numpy"
        assert store.reindex() == 2
        assert _keys(store, "2") == ["2", "1"]
        database.execute("CREATE EXTENSION vector")
        store = Store(saver, index=_index())
        assert store.reindex() == 0
        database.execute("DROP EXTENSION vector CASCADE")
        database.execute("CREATE EXTENSION vector")
        store = Store(saver, index=_index())
        assert store.reindex() == 2
        assert _keys(store, "2") == ["2", "1"]


@pytest.mark.parametrize("damaged", [b"abc", b"\xff" * 4 * _DIMS])
def test_a_damaged_vector_stays_for_numpy_to_name(url: str, database: psycopg.Connection[Any], damaged: bytes) -> None:
    with PostgresSaver(url) as saver:
        _put(Store(saver, index=_index()), ["1", "2", "3"])
        database.execute("UPDATE threadmark_store_vector SET vector = %s WHERE key = '2'", [damaged])
        database.execute("CREATE EXTENSION vector")
        store = Store(saver, index=_index())
        assert store.reindex() == 0
        assert _stored(database) == [(False, len(damaged)), (True, 0)]
        with pytest.raises(CorruptDataError, match="item '2'"):
            _keys(store, "1")
        _put(store, ["2"])
        assert sorted(_keys(store, "1")) == ["1", "2", "3"]


def test_a_role_that_may_not_change_the_table(url: str, database: psycopg.Connection[Any]) -> None:
    with PostgresSaver(url) as saver:
        _put(Store(saver, index=_index()), ["1"])
    role = f"reader_{next(_numbers)}"
    database.execute("CREATE EXTENSION vector")
    database.execute(f"CREATE ROLE {role} LOGIN".encode())
    database.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}".encode())
    with PostgresSaver(url.replace("postgres@", f"{role}@")) as saver:
        store = Store(saver, index=_index())
        _put(store, ["2"])
        assert store.report().vectors == "numpy"
        assert _keys(store, "2") == ["2", "1"]


def test_sealed_vectors_are_compared_by_numpy(url: str, database: psycopg.Connection[Any]) -> None:
    database.execute("CREATE EXTENSION vector")
    keyring = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32), source="the tests")
    with PostgresSaver(url) as saver:
        _put(Store(saver, index=_index()), ["1"])
    assert _stored(database) == [(True, 0)]
    with PostgresSaver(url, keyring=keyring) as saver:
        saver.reencrypt(plain="seal")
        store = Store(saver, index=_index())
        _put(store, ["2"])
        ((in_column, size),) = _stored(database)
        assert (in_column, size > 4 * _DIMS) == (False, True)
        assert _keys(store, "2") == ["2", "1"]
        assert store.reindex() == 0


def test_vectors_with_more_dimensions_than_the_type_has(url: str, database: psycopg.Connection[Any]) -> None:
    database.execute("CREATE EXTENSION vector")
    with PostgresSaver(url) as saver:
        store = Store(saver, index=_index(dims=16_001))
        _put(store, ["1", "2"])
        assert _stored(database) == [(False, 4 * 16_001)]
        assert _keys(store, "2") == ["2", "1"]


def test_an_index_that_you_make_is_used(url: str, database: psycopg.Connection[Any]) -> None:
    """As `docs/how-to/store.md` makes it."""
    database.execute("CREATE EXTENSION vector")
    with PostgresSaver(url) as saver:
        store = Store(saver, index=_index(model="letters"))
        for start in range(0, 3000, 500):
            _put(store, [f"{number}" for number in range(start, start + 500)])
        database.execute(
            f"CREATE INDEX nearest ON threadmark_store_vector USING hnsw ((embedding::vector({_DIMS})) vector_ip_ops) "
            f"WHERE model = 'letters ({_DIMS})'".encode()
        )
        name = url.rpartition("/")[2]
        database.execute(f"ALTER DATABASE {name} SET hnsw.iterative_scan = 'strict_order'".encode())
        database.execute("VACUUM ANALYZE threadmark_store_vector")
    with PostgresSaver(url) as saver:
        store = Store(saver, index=_index(model="letters"))
        # Also once the server has decided how to prepare the statement. The index may miss some.
        first = [store.search((), query=f"{number}", limit=10)[0].key for number in range(20)]
        assert sum(key == f"{number}" for number, key in enumerate(first)) >= 15
    counted = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'nearest'"
    wait_until(lambda: database.execute(counted).fetchall() == [(20,)], "the index is not used")


def test_a_pair_asks_its_active_side(url: str, database: psycopg.Connection[Any]) -> None:
    database.execute("CREATE EXTENSION vector")
    other = MemorySaver()
    with PostgresSaver(url) as saver, other, replicated(saver, other) as pair:
        store = Store(pair, index=_index())
        _put(store, ["1", "2", "3"])
        assert store.report().vectors == "pgvector"
        assert _stored(database) == [(True, 0)]
        assert _keys(store, "2", limit=1) == ["2"]
        assert sorted(_keys(store, "2")) == ["1", "2", "3"]
        pair.drain()
        pair.promote("secondary")
        assert store.report().vectors == "numpy"
        store.reindex()
        assert _keys(store, "3", limit=1) == ["3"]


@pytest.mark.parametrize("kind", ["vector", "halfvec"])
def test_a_move_takes_over_the_vectors_of_langgraphs_store(
    url: str, database: psycopg.Connection[Any], kind: str
) -> None:
    embed = Embeddings()
    index: Any = {"ann_index_config": {"kind": "hnsw", "vector_type": kind}} | _index(embed, model="letters")
    with LangGraphsStore.from_conn_string(url, index=index) as theirs, PostgresSaver(url) as saver:
        theirs.setup()
        theirs.batch([PutOp(("notes",), f"{number}", {"text": f"{number}"}) for number in range(300)])
        plain = Store(MemorySaver(), index=_index(embed, model="letters"))
        _put(plain, [f"{number}" for number in range(300)])
        expected = plain.search(("notes",), query="7", limit=5)
        store = Store(saver, index=_index(embed, model="letters"))
        embed.asked.clear()
        assert store.migrate(theirs).items == 300
        assert embed.asked == []
        assert _stored(database) == [(True, 0)]
        found = store.search(("notes",), query="7", limit=5)
        assert found[0].key == "7"
        assert [item.score for item in found] == pytest.approx([item.score for item in expected], abs=1e-3)
