"""Checkpoints in a SQLite file: `SqliteSaver`, and `ddl` to make its tables yourself."""

from threadmark_sqlite.migrations import ddl
from threadmark_sqlite.options import Durability, SqliteOptions
from threadmark_sqlite.report import SqliteReport
from threadmark_sqlite.saver import SqliteSaver

__all__ = ["Durability", "SqliteOptions", "SqliteReport", "SqliteSaver", "ddl"]
