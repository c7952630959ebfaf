"""`SqliteSaver`: from a path, a URL or a connection to the driver that serves it."""

import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack
from urllib.parse import unquote

from threadmark import ConfigError, Saver
from threadmark.program import Driver
from threadmark.saver import SaverOptions
from threadmark_sqlite import sql
from threadmark_sqlite.driver import FileDriver, Settings, SharedDriver
from threadmark_sqlite.store import SqliteStore

if TYPE_CHECKING:
    import aiosqlite

_MEMORY = ":memory:"
_SCHEME = "sqlite://"


class SqliteSaver(Saver):
    """Saves to a SQLite file that any number of threads, event loops and processes may use at once.

    `database` is a path, a URL, `":memory:"`, a `sqlite3.Connection` or an `aiosqlite.Connection`. Of a connection to a
    file only the path is used; a connection to a database in memory is used itself, and stays the caller's to close.
    With `durability="normal"` a power cut may undo the last commits (a crash of the process never does), and
    commits are several times faster.
    """

    def __init__(
        self,
        database: "str | os.PathLike[str] | sqlite3.Connection | aiosqlite.Connection",
        *,
        durability: str = "full",
        timeout: float = 30.0,
        **options: Unpack[SaverOptions],
    ) -> None:
        if durability not in sql.SYNCHRONOUS:
            raise ConfigError(f"durability must be 'full' or 'normal', not {durability!r}")
        driver = _driver(database, Settings(_MEMORY, durability, timeout))
        super().__init__(SqliteStore(), driver, **options)

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Self:
        """The saver for `sqlite:///relative.db`, `sqlite:////absolute.db` or `sqlite://:memory:`."""
        if not url.startswith(_SCHEME):
            raise ConfigError(f"{url!r} is no SQLite URL: write 'sqlite:///relative.db' or 'sqlite:////absolute.db'")
        return cls(url, **options)


def _path_of_url(url: str) -> str:
    rest = url.removeprefix(_SCHEME)
    if rest in (_MEMORY, ""):
        return _MEMORY
    if not rest.startswith("/") or rest == "/":
        raise ConfigError(f"{url!r} names no file: write 'sqlite:///{rest.lstrip('/') or 'file.db'}'")
    if "?" in rest or "#" in rest:
        raise ConfigError(f"{url!r}: a SQLite URL takes no options: give them as arguments, and ? and # as %3F and %23")
    return unquote(rest[1:])


def _driver(database: Any, settings: Settings) -> Driver:
    if isinstance(database, sqlite3.Connection):
        path = _path_of(database)
        if path:
            return FileDriver(settings._replace(path=path))
        return SharedDriver(database, settings, owned=False)
    if isinstance(database, (str, os.PathLike)):
        path = os.fspath(database)
        if path.startswith(_SCHEME):
            path = _path_of_url(path)
        if path == _MEMORY:
            connection = sqlite3.connect(_MEMORY, isolation_level=None, check_same_thread=False)
            return SharedDriver(connection, settings, owned=True)
        if not path:
            raise ConfigError(f"an empty path: give a file, or {_MEMORY!r}")
        return FileDriver(settings._replace(path=str(Path(path).absolute())))
    if _is_aiosqlite(database):
        from threadmark_sqlite.driver.aio import AiosqliteDriver

        return AiosqliteDriver(database, settings)
    raise ConfigError(f"a {type(database).__name__} is no SQLite database: give a path or a connection")


def _path_of(connection: sqlite3.Connection) -> str:
    """The file behind a connection, empty for a database in memory."""
    try:
        cursor = connection.cursor()
        cursor.row_factory = None
        rows = cursor.execute(sql.FILES).fetchall()
    except sqlite3.ProgrammingError as error:
        raise ConfigError(f"the connection given cannot be used ({error}): give an open one, or a path") from error
    path = next((path for _, name, path in rows if _text(name) == "main"), "")
    return _text(path or "")


def _text(column: str | bytes) -> str:
    """A text column, whatever text factory the connection has."""
    return column if isinstance(column, str) else os.fsdecode(column)


def _is_aiosqlite(database: object) -> bool:
    return any(f"{kind.__module__}.{kind.__name__}" == "aiosqlite.core.Connection" for kind in type(database).__mro__)
