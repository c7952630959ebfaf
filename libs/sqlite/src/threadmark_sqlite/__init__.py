"""Threadmark's SQLite backend."""

from threadmark_sqlite.saver import SqliteSaver

__all__ = ["SqliteSaver"]
