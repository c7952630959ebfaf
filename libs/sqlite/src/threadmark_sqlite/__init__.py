"""Threadmark's SQLite backend."""

from threadmark_sqlite.migrations import ddl
from threadmark_sqlite.options import Durability, SqliteOptions
from threadmark_sqlite.report import SqliteReport
from threadmark_sqlite.saver import SqliteSaver

__all__ = ["Durability", "SqliteOptions", "SqliteReport", "SqliteSaver", "ddl"]
