"""Databases that earlier releases wrote stay readable, and can be written on."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

import sqlite_next_format
from damage import fill
from postgres.cluster import shared
from sqlite_file import looking_at
from stored.make import ABOUT, COPIED, ENTRY, REPLICA
from threadmark import MemorySaver, Saver, StoreError
from threadmark.program import Program, Transaction
from threadmark.store.replica import ReplicaStore
from threadmark_conformance.engine import at, checkpoint
from threadmark_postgres import PostgresSaver
from threadmark_postgres import migrations as postgres_migrations
from threadmark_sqlite import SqliteSaver, ddl
from threadmark_sqlite import migrations as sqlite_migrations

FOLDER = Path(__file__).parent
SQLITE = sorted(FOLDER.glob("*.sqlite"))
POSTGRES = sorted(FOLDER.glob("*.sql"))


@contextmanager
def opened(stored: Path, folder: Path, *, schema: str | None) -> Iterator[Saver]:
    """A saver on a copy of a stored database."""
    if stored.suffix == ".sqlite":
        path = folder / stored.name
        shutil.copy(stored, path)
        with SqliteSaver(path) as saver:
            yield saver
        return
    url = shared().database("old_database")
    try:
        with psycopg.connect(url) as connection:
            connection.execute(stored.read_bytes())
            if schema is None:
                connection.execute(f"ALTER DATABASE {connection.info.dbname} SET search_path = stored".encode())
        with PostgresSaver(url, schema=schema) as saver:
            yield saver
    finally:
        shared().execute("DROP DATABASE old_database WITH (FORCE)")


@pytest.mark.parametrize("schema", ["stored", None])
@pytest.mark.parametrize("stored", [*SQLITE, *POSTGRES], ids=lambda path: path.stem)
def test_an_old_database_reads_as_it_was_written(stored: Path, schema: str | None, tmp_path: Path) -> None:
    expected = fill(MemorySaver())
    with opened(stored, tmp_path, schema=schema) as saver:
        found = {tuple(item.config["configurable"].values()): item for item in saver.list(None)}
        assert found == expected
        assert saver.verify().problems == []
        newest = next(iter(saver.list(None)))
        saver.put_writes(newest.config, [("late", 1)], "late task")
        assert ("late task", "late", 1) in (next(iter(saver.list(None))).pending_writes or [])


@pytest.mark.parametrize("stored", [*SQLITE, *POSTGRES], ids=lambda path: path.stem)
def test_the_threads_of_an_old_database_are_listed(stored: Path, tmp_path: Path) -> None:
    with opened(stored, tmp_path, schema="stored") as saver:
        for thread_id, ns in (("subgraph only", "child:1"), ("new", "")):
            saver.put(at(thread_id, ns), checkpoint({"turn": 1}), {}, {"turn": 1})
        listed = saver.list_threads().threads
        assert [thread.id for thread in listed] == ["new", "subgraph only", "only a write", "two", "one"]
        for thread in listed[-2:]:
            newest = saver.get_tuple(at(thread.id))
            assert newest is not None
            assert (thread.newest, thread.checkpoints, thread.namespaces) == (newest.checkpoint["id"], 12, 2)
            assert thread.size_bytes == saver.stats(thread.id).bytes_stored
            assert thread.updated_at > thread.created_at
        assert all(thread.updated_at == thread.created_at for thread in listed if thread.id == "only a write")


@pytest.mark.parametrize("stored", [*SQLITE, *POSTGRES], ids=lambda path: path.stem)
def test_what_is_set_of_an_old_thread_comes_back(stored: Path, tmp_path: Path) -> None:
    with opened(stored, tmp_path, schema="stored") as saver:
        found = saver.get_thread("one")
        assert found is not None
        assert {name: getattr(found, name) for name in ABOUT} == ABOUT
        assert [thread.id for thread in saver.list_threads(owner="ada", text="strasse").threads] == ["one"]


@pytest.mark.parametrize("stored", [*SQLITE, *POSTGRES], ids=lambda path: path.stem)
def test_an_old_database_can_become_one_of_a_pair(stored: Path, tmp_path: Path) -> None:
    def program(store: ReplicaStore) -> Program[tuple[Any, ...]]:
        replica = yield from store.replica()
        position = yield from store.record("one", b"new entry", replica.term)
        copied = yield from store.copied(["deleted"])
        return replica, copied, (yield from store.summaries("one", 9)), (yield from store.outbox(None, 9)), position

    with opened(stored, tmp_path, schema="stored") as saver:
        store = saver._store
        assert isinstance(store, ReplicaStore)
        found = saver._driver.run(Transaction(program, (store,), writes=True))
        replica, copied, summaries, outbox, position = found
        assert (replica, copied) == (REPLICA, {"deleted": COPIED})
        assert [(entry.thread_id, entry.body) for entry in outbox] == [("deleted", ENTRY), ("one", b"new entry")]
        assert outbox[-1].position == position
        (two,) = [each for each in summaries if each.thread_id == "two"]
        newest = saver.get_tuple(at("two"))
        assert newest is not None
        assert (two.newest, two.checkpoints, two.position) == (newest.checkpoint["id"], 12, 0)
        assert saver.verify().problems == []


def test_a_script_brings_a_file_of_an_earlier_format_to_the_tables_of_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    with SqliteSaver(old) as saver:
        fill(saver)
    sqlite_next_format.install(monkeypatch)
    for path, script in ((old, ddl(since=sqlite_next_format.NUMBER - 1)), (new, ddl())):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.executescript(script)
    assert _tables(old) == _tables(new)
    with SqliteSaver(old) as saver, closing(sqlite3.connect(f"file:{old}?mode=ro", uri=True)) as connection:
        with SqliteSaver(connection) as reader:
            assert len(list(reader.list(None))) == len(list(saver.list(None))) > 0
        assert saver.report().format == sqlite_next_format.NUMBER


def test_a_file_of_an_earlier_format_cannot_be_read_until_it_was_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    with SqliteSaver(path) as saver:
        fill(saver)
    sqlite_next_format.install(monkeypatch)
    url = f"sqlite:///{path}?mode=ro"
    with SqliteSaver(url) as saver, pytest.raises(StoreError, match="has no tables of this release to read"):
        list(saver.list(None))
    with SqliteSaver(path) as saver:
        saver.setup()
    with SqliteSaver(url) as saver:
        assert list(saver.list(None))
    with looking_at(path) as connection:
        assert connection.execute("SELECT DISTINCT made_up FROM threadmark_thread").fetchall() == [(7,)]


def _tables(path: Path) -> dict[str, set[tuple[Any, ...]]]:
    """The columns of each table and index, in any order: those that were added come last."""
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
        return {
            name: {
                *(row[1:] for row in connection.execute("SELECT * FROM pragma_table_info(?)", (name,))),
                *(row[1:] for row in connection.execute("SELECT * FROM pragma_index_info(?)", (name,))),
            }
            for name in names
        }


def test_there_is_a_database_of_every_format() -> None:
    assert [path.stem for path in SQLITE] == [f"sqlite-{n + 1}" for n in range(sqlite_migrations.CURRENT)]
    assert [path.stem for path in POSTGRES] == [f"postgres-{n + 1}" for n in range(postgres_migrations.CURRENT)]
