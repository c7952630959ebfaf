"""Whether a URL leads to a database of LangGraph's own saver, and what reads it."""

from pathlib import Path

from threadmark_cli.foreign.postgres import PostgresTables
from threadmark_cli.foreign.rows import Tables
from threadmark_cli.foreign.saver import ForeignSaver
from threadmark_cli.foreign.sqlite import SqliteTables

_POSTGRES = ("postgres://", "postgresql://")


def foreign_saver(url: str, file: Path | None) -> ForeignSaver | None:
    """Return what reads LangGraph's tables, where there are some and none of ours. Nothing is made by asking.

    Args:
        url: The database.
        file: Its path, if it is a file of SQLite.
    """
    tables: Tables | None = None
    if file is not None:
        tables = SqliteTables.found_in(str(file))
    elif url.startswith(_POSTGRES):
        tables = PostgresTables.found_in(url)
    return None if tables is None else ForeignSaver(tables)
