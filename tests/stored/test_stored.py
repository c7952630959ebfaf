"""Databases that earlier releases wrote stay readable, and can be written on."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from damage import fill
from postgres.cluster import shared
from threadmark import MemorySaver, Saver
from threadmark.program import Transaction
from threadmark.thread_store import ThreadOutline, ThreadScope
from threadmark_postgres import PostgresSaver
from threadmark_sqlite import SqliteSaver

DATABASES = sorted(Path(__file__).parent.glob("*.sqlite"))
SCRIPTS = sorted(Path(__file__).parent.glob("*.sql"))


@pytest.fixture
def url() -> Iterator[str]:
    yield shared().database("old_database")
    shared().execute("DROP DATABASE old_database WITH (FORCE)")


@pytest.mark.parametrize("database", DATABASES, ids=lambda path: path.stem)
def test_an_old_database_reads_as_it_was_written(database: Path, tmp_path: Path) -> None:
    path = tmp_path / database.name
    shutil.copy(database, path)
    with SqliteSaver(path) as saver:
        check_contents(saver)


@pytest.mark.parametrize("schema", ["stored", None])
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_old_database_of_a_server_reads_as_it_was_written(script: Path, url: str, schema: str | None) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(script.read_bytes())
        if schema is None:
            connection.execute(f"ALTER DATABASE {connection.info.dbname} SET search_path = stored".encode())
    with PostgresSaver(url, schema=schema) as saver:
        check_contents(saver)
        threads = {outline.row.thread_id: outline for outline in listed(saver)}
        assert list(threads) == ["one", "two", "only a write"]
        only_a_write = threads.pop("only a write")
        assert only_a_write.updated_at == only_a_write.row.created_at
        assert all(outline.updated_at > outline.row.created_at for outline in threads.values())


def check_contents(saver: Saver) -> None:
    """Fail unless a saver finds what `fill` stores, and can go on with it."""
    expected = fill(MemorySaver())
    found = {tuple(item.config["configurable"].values()): item for item in saver.list(None)}
    assert found == expected
    assert saver.verify().problems == []
    newest = next(iter(saver.list(None)))
    saver.put_writes(newest.config, [("late", 1)], "late task")
    assert ("late task", "late", 1) in (next(iter(saver.list(None))).pending_writes or [])


def listed(saver: Saver) -> list[ThreadOutline]:
    """The threads in the order of their last update, which is that in which `make.py` stored them."""
    store = saver._context.store
    scope = ThreadScope(sort="updated", descending=False)
    return saver._driver.run(Transaction(lambda: store.thread_page(scope, None, 0, 10), writes=False))


def test_there_is_a_database_of_every_format() -> None:
    assert DATABASES
    assert SCRIPTS
