"""Plans of the statements on SQLite that take several keys: none reads a whole table."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from threadmark.backends import Program
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.steps import Many
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
