"""A filled Postgres database, to be damaged cell by cell and mended again."""

from collections.abc import Iterator
from typing import Any

import psycopg

from damage import Damage, Expected, Field, describe, fill
from threadmark import Saver

KEYS = {
    "thread": ("thread_id",),
    "segment": ("thread_id", "key"),
    "checkpoint": ("thread_id", "ns", "rank"),
    "write": ("thread_id", "ns", "checkpoint_id", "task_id", "idx"),
    "head": ("thread_id", "ns"),
}


class Database:
    """A filled database whose tables are made whole again after each damage."""

    def __init__(self, connection: psycopg.Connection[Any], saver: Saver) -> None:
        self.saver = saver
        self.expected: Expected = fill(saver)
        describe(saver)
        self._connection = connection
        self._types: dict[tuple[str, str], str] = {}
        for table in KEYS:
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
            key = tuple(values[name] for name in KEYS[table])
            for column, value in values.items():
                if isinstance(value, (str, bytes, int)) and not isinstance(value, bool):
                    data = value.encode() if isinstance(value, str) else value
                    yield Field(table, column, key, values["thread_id"], data)

    def inflict(self, damage: Damage) -> bool:
        """Change the field; False if the server refuses: two rows of one key, bytes that are no text."""
        field = damage.field
        where = " AND ".join(f"{name} = %s" for name in KEYS[field.table])
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
