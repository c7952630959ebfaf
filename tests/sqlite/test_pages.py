"""A page of rows is the page of outlines with the contents of their rows, and a short listing takes few statements."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from threadmark.program import Transaction
from threadmark.store.contract import CheckpointRow, Outline, Scope
from threadmark_conformance.engine import at, checkpoint, early_id
from threadmark_sqlite import SqliteSaver


@pytest.fixture
def saver() -> Iterator[SqliteSaver]:
    """A saver with two threads, one of which has a child's namespace and a checkpoint after a clock was set back."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database, SqliteSaver(database) as made:
        for thread, ns, numbers in (("t", "", [1, 2, 9, 3]), ("t", "child:1", [4]), ("ü\0", "", [5, 6])):
            config: Any = at(thread, ns)
            for number in numbers:
                put: Any = {**checkpoint({"a": number}), "id": early_id(number)}
                config = made.put(config, put, {"step": number}, {"a": number})
                made.put_writes(config, [("a", number)], "task")
        yield made


def _both(
    saver: SqliteSaver, scope: Scope, after: Outline | None, limit: int
) -> tuple[list[CheckpointRow] | None, list[Outline]]:
    store, driver = saver._context.store, saver._driver
    rows = driver.run(Transaction(lambda: store.page_of_rows(scope, after, limit), writes=False))
    return rows, driver.run(Transaction(lambda: store.page(scope, after, limit), writes=False))


@pytest.mark.parametrize(
    "scope", [Scope(), Scope("t"), Scope("t", ""), Scope("ü\0"), Scope("t", before=early_id(3)), Scope("none")]
)
def test_a_page_of_rows_is_the_page_of_outlines(saver: SqliteSaver, scope: Scope) -> None:
    rows, page = _both(saver, scope, None, 100)
    assert rows is not None
    assert [row.outline for row in rows] == page
    store, driver = saver._context.store, saver._driver
    for row in rows:
        same = driver.run(Transaction(store.rows, (row.outline.thread_id, [row.outline.key]), writes=False))
        assert same == [row]
    if len(page) > 1:
        rows, rest = _both(saver, scope, page[0], 1)
        assert rest == page[1:2]
        assert rows is not None
        assert [row.outline for row in rows] == rest


def test_a_short_listing_asks_for_a_page_the_head_and_the_writes() -> None:
    statements: list[str] = []
    database = sqlite3.connect(":memory:", isolation_level=None)
    with closing(database), SqliteSaver(database) as other:
        for number in range(5):
            put: Any = {**checkpoint({"a": number}), "id": early_id(number)}
            other.put_writes(other.put(at("t"), put, {}, {"a": number}), [("a", number)], "task")
        database.set_trace_callback(statements.append)
        found = list(other.list(at("t"), limit=3))
    assert [each.checkpoint["channel_values"]["a"] for each in found] == [4, 3, 2]
    assert [statement.split()[0] for statement in statements] == ["BEGIN", "SELECT", "SELECT", "SELECT", "COMMIT"]
