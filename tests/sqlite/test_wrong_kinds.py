"""Every column of every table with a value of another kind: an error names the thread, and the others are served."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from damage import Field, describe, fill, is_named
from going_on import over_all_threads, refused, with_one_thread
from sqlite_cells import TABLES, cells, row_key
from threadmark import CorruptDataError, Saver
from threadmark_sqlite import SqliteSaver

WRONG: tuple[object, ...] = ("a text", b"\xff\x00bytes", 1.5, -1, (1 << 63) - 1)


@pytest.fixture(scope="module")
def saver(database: sqlite3.Connection) -> Saver:
    return SqliteSaver(database, cache_bytes=0)


@pytest.fixture(scope="module")
def whole(database: sqlite3.Connection, saver: Saver) -> bytes:
    fill(saver)
    describe(saver)
    with saver.lease("two"):
        pass
    return database.serialize()


def fields(database: sqlite3.Connection, table: str) -> list[Field]:
    """One cell of each column, of the thread "two"."""
    found: dict[str, Field] = {}
    for field in cells(database, table):
        if field.thread_id == "two":
            found.setdefault(field.column, field)
    return list(found.values())


def damaged(database: sqlite3.Connection, whole: bytes, field: Field, value: object) -> bool:
    """Change one value of the whole database. Returns whether SQLite itself lets it be."""
    database.deserialize(whole)
    where = " AND ".join(f"{key} IS ?" for key in row_key(field.table))
    try:
        database.execute(f"UPDATE {field.table} SET {field.column} = ? WHERE {where}", (value, *field.row))
    except sqlite3.IntegrityError:
        return False
    return True


@pytest.mark.parametrize("value", WRONG, ids=repr)
@pytest.mark.parametrize("table", TABLES)
def test_what_goes_over_all_threads_goes_on(
    database: sqlite3.Connection, saver: Saver, whole: bytes, table: str, value: object
) -> None:
    database.deserialize(whole)
    right = {name: operation()[0] for name, operation in over_all_threads(saver)}
    database.deserialize(whole)
    for field in fields(database, table):
        if not damaged(database, whole, field, value):
            continue
        named = is_named(saver)
        for name, operation in over_all_threads(saver):
            what = f"{name} with {value!r} in {table}.{field.column}"
            result, problems = operation()
            assert all("'one'" not in problem.location for problem in problems), what
            if name == "threads":
                assert isinstance(result, dict)
                assert "one" in result, what
            elif name == "list":
                assert isinstance(result, list)
                assert {each.config["configurable"]["thread_id"] for each in result} >= {"one"}, what
            assert problems or named or result == right[name], what


@pytest.mark.parametrize("value", WRONG, ids=repr)
@pytest.mark.parametrize("table", TABLES)
def test_an_operation_on_the_thread_is_done_or_names_it(
    database: sqlite3.Connection, saver: Saver, whole: bytes, table: str, value: object
) -> None:
    database.deserialize(whole)
    for field in fields(database, table):
        if not damaged(database, whole, field, value):
            continue
        for name, operation in with_one_thread(saver, "two"):
            error = refused(operation, may_be_gone=field.column in ("live", "thread_id"))
            assert error is None or "two" in error.location, f"{name} with {value!r} in {table}.{field.column}: {error}"
        assert [info.id for info in saver.list_threads(limit=10).threads if info.id == "one"] == ["one"]
        assert saver.get_thread("two") is None or field.column == "thread_id"


@pytest.mark.parametrize("value", [b"\x00", "a text", 1.5], ids=repr)
@pytest.mark.parametrize("column", ["least_reader", "least_writer"])
def test_a_damaged_record_of_the_format_is_named(tmp_path: Path, column: str, value: object) -> None:
    path = tmp_path / "threads.db"
    SqliteSaver(path).setup()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"UPDATE threadmark_migration SET {column} = ?", (value,))
    with SqliteSaver(path) as saver, pytest.raises(CorruptDataError, match=r"table threadmark_migration.*damaged"):
        saver.list_threads()
