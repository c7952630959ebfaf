"""Finding a database of LangGraph's own saver in a file or on a server. Looking creates nothing."""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from threadmark_cli.foreign import sql
from threadmark_cli.sqlite_files import read_file

if TYPE_CHECKING:
    from threadmark_cli.foreign.saver import ForeignSaver


def in_file(path: Path) -> "ForeignSaver | None":
    """Return a reader of LangGraph's tables in a SQLite file, if there are some and none of ours."""
    try:
        if not (path.is_file() and read_file(path, _has_only_theirs)):
            return None
    except (sqlite3.Error, OSError):  # opening it as ours reports the fault
        return None
    from threadmark_cli.foreign.saver import ForeignSaver
    from threadmark_cli.foreign.sqlite import SqliteTables

    return ForeignSaver(SqliteTables(str(path)))


def in_postgres(url: str) -> "ForeignSaver | None":
    """Return a reader of LangGraph's tables in a Postgres database, if there are some and none of ours."""
    from threadmark_cli.foreign.postgres import PostgresTables
    from threadmark_cli.foreign.saver import ForeignSaver

    tables = PostgresTables.found_in(url)
    return None if tables is None else ForeignSaver(tables)


def _has_only_theirs(connection: sqlite3.Connection) -> bool:
    theirs, ours = connection.execute(sql.SQLITE_CONTENTS).fetchone()
    return bool(theirs and not (ours and connection.execute(sql.HAS_OURS).fetchone()[0]))
