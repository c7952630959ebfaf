"""The cells of a SQLite database, to be damaged one by one."""

import sqlite3
from collections.abc import Iterator

from damage import Damage, Field

_KEYS = {
    "threadmark_thread": ("thread",),
    "threadmark_segment": ("number",),
    "threadmark_checkpoint": ("number",),
    "threadmark_write": ("thread", "ns", "checkpoint_id", "task_id", "idx"),
    "threadmark_batch": ("thread", "ns", "checkpoint_id", "task_id", "idx"),
    "threadmark_head": ("thread_id", "ns"),
}
TABLES = tuple(_KEYS)


def row_key(table: str) -> tuple[str, ...]:
    """The columns that identify a row of a table."""
    return _KEYS[table]


def cells(database: sqlite3.Connection, *tables: str) -> Iterator[Field]:
    """Every column with a value of every row of these tables (of all tables)."""
    names = dict(database.execute("SELECT thread, thread_id FROM threadmark_thread").fetchall())
    for table in tables or TABLES:
        keys = row_key(table)
        cursor = database.execute(f"SELECT {', '.join(keys)}, * FROM {table}")
        columns = [column[0] for column in cursor.description][len(keys) :]
        for row in cursor.fetchall():
            values = dict(zip(columns, row[len(keys) :], strict=True))
            thread_id = values.get("thread_id") or names[values["thread"]]
            for column, value in values.items():
                if value is not None:
                    data = value.encode() if isinstance(value, str) else value
                    yield Field(table, column, row[: len(keys)], thread_id, data)


def inflict(database: sqlite3.Connection, damage: Damage) -> bool:
    """Change the field; False if the database itself refuses (two rows of one key)."""
    field = damage.field
    where = " AND ".join(f"{key} IS ?" for key in row_key(field.table))
    ((kind,),) = database.execute(f"SELECT typeof({field.column}) FROM {field.table} WHERE {where}", field.row)
    try:
        database.execute(
            f"UPDATE {field.table} SET {field.column} = CAST(? AS {kind}) WHERE {where}", (damage.value, *field.row)
        )
    except sqlite3.IntegrityError:
        return False
    return True
