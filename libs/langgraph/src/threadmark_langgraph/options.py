"""The options of the savers under LangGraph's names, as types.

Only type checkers import this: at run time a backend is imported when a saver on it is made. The serializer is no
option here, because LangGraph's constructors have an argument for it.
"""

from threadmark.saver import StorageOptions
from threadmark_postgres.options import ConnectionOptions
from threadmark_sqlite.options import FileOptions


class SqliteOptions(FileOptions, StorageOptions, total=False):
    """The options of `SqliteSaver` and `AsyncSqliteSaver`."""


class PostgresOptions(ConnectionOptions, StorageOptions, total=False):
    """The options of `PostgresSaver` and `AsyncPostgresSaver`."""
