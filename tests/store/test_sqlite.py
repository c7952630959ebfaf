"""Plans of the statements on SQLite that take several keys or a namespace, and the order of rows in the file."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import PutOp

from threadmark.backends import Program
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.steps import Many
from threadmark_store import Store
from threadmark_store.backends import rows_over
from threadmark_store.entries import EntryKey
from threadmark_store.shapes import ItemKey, Scope

_KEYS = [ItemKey("users.ada", str(number)) for number in range(3)]
_CACHED = [EntryKey(bytes([number]), b"n") for number in range(3)]

PROGRAMS: dict[str, Callable[[Any], Program[Any]]] = {
    "items": lambda items: items.items(_KEYS),
    "vectors": lambda vectors: vectors.rows(_KEYS),
    "words": lambda words: words.rows(_KEYS),
    "cached": lambda cached: cached.find(_CACHED, None),
    "deleted items": lambda items: items.delete(_KEYS, None),
    "deleted vectors": lambda vectors: vectors.delete(_KEYS, None),
    "deleted words": lambda words: words.delete(_KEYS, None),
    "found words": lambda words: words.find(Scope("users"), ["rose", "tree", "green"]),
    "searched items": lambda items: items.search(Scope("users"), None, 10, 0),
    "noted cached": lambda cached: cached.note(_CACHED, [], None, 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_keys_are_found_by_an_index(tmp_path: Path, name: str) -> None:
    with SqliteSaver(tmp_path / "items.db") as saver:
        saver.setup()
        table = rows_over(saver, name.rpartition(" ")[2])
        with sqlite3.connect(tmp_path / "plans.db") as plans:
            for step in table.create():
                plans.execute(step.sql)
            asked: Any = next(PROGRAMS[name](table))
            params = asked.params[0] if isinstance(asked, Many) else asked.params
            found = [detail for *_, detail in plans.execute(f"EXPLAIN QUERY PLAN {asked.sql}", params)]
    assert any(detail.startswith("SEARCH threadmark_store_") for detail in found)
    assert not any(detail.startswith("SCAN threadmark_store_") for detail in found)


def test_items_that_are_put_together_lie_in_the_order_of_their_keys(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "items.db") as saver, sqlite3.connect(tmp_path / "items.db") as file:
        Store(saver).batch([PutOp((name,), key, {}) for key in "ca" for name in ("users", "apps", "ideas")])
        found = file.execute("SELECT namespace, key FROM threadmark_store_item ORDER BY rowid").fetchall()
    assert found == [(name, key) for name in ("apps", "ideas", "users") for key in "ac"]


def test_a_search_reads_each_page_of_the_file_once(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "items.db") as saver, sqlite3.connect(tmp_path / "items.db") as file:
        store = Store(saver)
        store.setup()
        asked: Any = next(store._items.search(Scope("users"), None, 10, 0))
        found = [detail for *_, detail in file.execute(f"EXPLAIN QUERY PLAN {asked.sql}", asked.params)]
    by_row = "SEARCH threadmark_store_item USING INTEGER PRIMARY KEY (rowid=?)"
    assert found.count(by_row) == 2  # the rows of the namespace, and those of the answer
    assert any("USING COVERING INDEX threadmark_store_item_key" in detail for detail in found)
