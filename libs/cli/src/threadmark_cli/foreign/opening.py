"""Whether a file or a server has a database of LangGraph's own saver, and what reads it. Nothing is made by asking."""

from pathlib import Path

from threadmark_cli.foreign.postgres import PostgresTables
from threadmark_cli.foreign.saver import ForeignSaver
from threadmark_cli.foreign.sqlite import SqliteTables


def in_file(path: Path) -> ForeignSaver | None:
    """Return what reads a SQLite file's tables of LangGraph's, where there are some and nothing of ours."""
    tables = SqliteTables.found_in(str(path))
    return None if tables is None else ForeignSaver(tables)


def in_postgres(url: str) -> ForeignSaver | None:
    """Return what reads a Postgres database's tables of LangGraph's, where there are some and nothing of ours."""
    tables = PostgresTables.found_in(url)
    return None if tables is None else ForeignSaver(tables)
