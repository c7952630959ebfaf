"""Damaged rows: a read gives what was put, or an error that names the place, and never something else."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from damage import Damage, Expected, Field, check, check_counts, check_listing, damages, fill
from postgres.cluster import Cluster
from threadmark import CorruptDataError, Saver
from threadmark_postgres import PostgresSaver

ROUNDS = 60

_KEY = {
    "thread": ("thread_id",),
    "segment": ("thread_id", "key"),
    "checkpoint": ("thread_id", "ns", "rank"),
    "write": ("thread_id", "ns", "checkpoint_id", "task_id", "idx"),
    "head": ("thread_id", "ns"),
}
_NO_DAMAGE = Damage("none", Field("", "", (), "", 0), 0)


class Database:
    """A filled database whose tables are made whole again after each damage."""

    def __init__(self, connection: psycopg.Connection[Any], saver: Saver) -> None:
        self.saver = saver
        self.expected: Expected = fill(saver)
        self._connection = connection
        self._types: dict[tuple[str, str], str] = {}
        for table in _KEY:
            self.execute(f"CREATE TABLE whole_{table} AS SELECT * FROM threadmark_{table}")

    def execute(self, statement: str, params: tuple[Any, ...] = ()) -> psycopg.Cursor[Any]:
        return self._connection.execute(statement.encode(), params)

    def mend(self, table: str) -> None:
        """Make a table whole."""
        self.execute(f"DELETE FROM threadmark_{table}")
        self.execute(f"INSERT INTO threadmark_{table} SELECT * FROM whole_{table}")

    def fields(self, table: str) -> Iterator[Field]:
        """Every field of a table that can be damaged."""
        cursor = self.execute(f"SELECT * FROM whole_{table}")
        columns = [column.name for column in cursor.description or ()]
        for row in cursor.fetchall():
            values = dict(zip(columns, row, strict=True))
            key = tuple(values[name] for name in _KEY[table])
            for column, value in values.items():
                if isinstance(value, (str, bytes, int)) and not isinstance(value, bool):
                    data = value.encode() if isinstance(value, str) else value
                    yield Field(table, column, key, values["thread_id"], data)

    def inflict(self, damage: Damage) -> bool:
        """Change the field; False where the server refuses: two rows of one key, bytes that are no text."""
        field = damage.field
        where = " AND ".join(f"{name} = %s" for name in _KEY[field.table])
        try:
            value = damage.value.decode() if self._is_text(field) and isinstance(damage.value, bytes) else damage.value
            statement = f"UPDATE threadmark_{field.table} SET {field.column} = %s WHERE {where}"
            self.execute(statement, (value, *field.row))
        except (UnicodeDecodeError, psycopg.Error):
            return False
        return True

    def _is_text(self, field: Field) -> bool:
        kind = self.execute(
            "SELECT data_type FROM information_schema.columns WHERE table_name = %s AND column_name = %s",
            (f"threadmark_{field.table}", field.column),
        ).fetchone()
        return bool(kind and kind[0] == "text")


@pytest.fixture(scope="module")
def database(cluster: Cluster) -> Iterator[Database]:
    url = cluster.database("damaged")
    with psycopg.connect(url, autocommit=True) as connection, PostgresSaver(url, cache_bytes=0) as saver:
        yield Database(connection, saver)


@pytest.fixture(autouse=True)
def mended(database: Database) -> Iterator[None]:
    """Whatever a test leaves behind, the next one finds the database whole."""
    yield
    for table in _KEY:
        database.mend(table)


@pytest.mark.parametrize("table", _KEY)
def test_damaged_rows_give_the_right_value_or_an_error(database: Database, table: str) -> None:
    saver, expected, refused = database.saver, database.expected, 0
    sums = saver.stats()
    for damage in damages(list(database.fields(table)), ROUNDS, seed=5):
        if database.inflict(damage):
            refused += check(saver, expected, damage)
            check_listing(saver, expected, damage)
            check_counts(saver, sums)
            database.mend(table)
    assert check(saver, expected, _NO_DAMAGE) == 0
    assert refused > 0


@pytest.mark.parametrize("table", _KEY)
def test_rows_that_are_gone_are_missed(database: Database, table: str) -> None:
    saver, expected = database.saver, database.expected
    columns = _KEY[table]
    for row in database.execute(f"SELECT {', '.join(columns)} FROM whole_{table}").fetchall()[::4]:
        where = " AND ".join(f"{column} = %s" for column in columns)
        database.execute(f"DELETE FROM threadmark_{table} WHERE {where}", row)
        damage = Damage("delete", Field(table, "", row, row[0], b""), b"")
        assert check(saver, expected, damage) > 0
        check_listing(saver, expected, damage)
        database.mend(table)


def test_what_is_at_hand_for_the_newest_checkpoint_is_not_relied_on(database: Database) -> None:
    database.execute("UPDATE threadmark_head SET needs = '{}'")
    assert check(database.saver, database.expected, _NO_DAMAGE) == 0


def test_damage_is_never_copied(database: Database) -> None:
    database.execute("UPDATE threadmark_checkpoint SET metadata = '{}'")
    with pytest.raises(CorruptDataError, match="thread 'one'"):
        database.saver.copy_thread("one", "three")
    assert database.saver.get({"configurable": {"thread_id": "three"}}) is None
    database.mend("checkpoint")
