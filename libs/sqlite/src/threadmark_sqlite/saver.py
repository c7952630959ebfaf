"""The constructor of `SqliteSaver`: it turns a path, a URL or a connection into a driver and a store."""

import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import unquote

from threadmark.backends import (
    ConfigError,
    Driver,
    Saver,
    SaverOptions,
    arun,
    check_seconds,
    options_in,
    run,
    short_repr,
    slow_after,
)
from threadmark_sqlite.driver import FileDriver, Settings, SharedDriver
from threadmark_sqlite.driver.connection import MEMORY, path_in, reads_only
from threadmark_sqlite.driver.held import HeldInMemory, HeldOnFile
from threadmark_sqlite.driver.within import WithinDriver, expect_own_file
from threadmark_sqlite.options import Durability, SqliteOptions
from threadmark_sqlite.report import SqliteReport, report
from threadmark_sqlite.sql import connections
from threadmark_sqlite.store import SqliteStore

if TYPE_CHECKING:
    import aiosqlite

    from threadmark_sqlite.driver.aio_savepoints import HeldOnLoop, WithinOnLoop

_SCHEME = "sqlite://"
_READ_ONLY = "mode=ro"


class SqliteSaver(Saver):
    """Saves to a SQLite file that any number of threads, event loops and processes can use at once.

    `database` is a path, a URL, `":memory:"`, a `sqlite3.Connection` or an `aiosqlite.Connection`. If you pass a
    connection to a file, the saver takes its path and opens connections by itself; it is read-only if yours is. A
    connection to a database in memory is used itself, and you close it. To only read, pass a read-only connection or a
    URL that ends with `?mode=ro`. A saver that you do not close is closed when the interpreter exits.

    With `durability="normal"` commits are several times faster, but a power cut may undo the last ones; a crash of the
    process never does. A transaction that takes `slow` seconds or more is logged as a warning; with None none is.
    """

    def __init__(
        self,
        database: "str | os.PathLike[str] | sqlite3.Connection | aiosqlite.Connection",
        *,
        durability: Durability = "full",
        timeout: float = 30.0,
        slow: float | None = 1.0,
        **options: Unpack[SaverOptions],
    ) -> None:
        if durability not in connections.DURABILITY:
            raise ConfigError(f"durability must be 'full' or 'normal', not {durability!r}")
        check_seconds(timeout, "timeout")
        driver = _driver(database, Settings(MEMORY, durability, timeout, slow=slow_after(slow)))
        super().__init__(SqliteStore(), driver, **options)
        self._durability: Durability = durability
        if isinstance(driver, SharedDriver):  # in memory
            self._keep_local_classes()

    def _held_transaction(self) -> "HeldOnFile | HeldInMemory | HeldOnLoop":
        driver = self._driver
        if isinstance(driver, FileDriver):
            return HeldOnFile(driver)
        if isinstance(driver, SharedDriver):
            return HeldInMemory(driver)
        from threadmark_sqlite.driver.aio import AiosqliteDriver
        from threadmark_sqlite.driver.aio_savepoints import HeldOnLoop

        if isinstance(driver, AiosqliteDriver):
            return HeldOnLoop(driver)
        raise self._refusal()

    def _driver_within(self, connection: Any) -> "WithinDriver | WithinOnLoop":
        driver = self._driver
        settings: Settings = driver.settings  # type: ignore[attr-defined]  # each of this backend's drivers has them
        if isinstance(connection, sqlite3.Connection):
            if isinstance(driver, SharedDriver):
                _expect_same(connection, driver.connection, settings)
            else:
                expect_own_file(_path_of(connection), settings)
            return WithinDriver(connection, settings)
        if not _is_aiosqlite(connection):
            raise ConfigError(f"expected a sqlite3 or aiosqlite connection, got {type(connection).__name__}")
        from threadmark_sqlite.driver.aio import AiosqliteDriver
        from threadmark_sqlite.driver.aio_savepoints import WithinOnLoop

        if settings.path == MEMORY:
            _expect_same(connection, driver.connection if isinstance(driver, AiosqliteDriver) else None, settings)
        return WithinOnLoop(connection, settings)

    def report(self) -> SqliteReport:
        """Return the version, durability, size, foreign tables and warnings of the database.

        It does not create tables.
        """
        return run(self._driver, report(self._durability))

    async def areport(self) -> SqliteReport:
        """Like `report`, for asyncio."""
        return await arun(self._driver, report(self._durability))


def open_url(url: str, **options: Unpack[SqliteOptions]) -> SqliteSaver:
    """Return a saver for `sqlite:///relative.db`, `sqlite:////absolute.db` or `sqlite://:memory:`.

    If the URL ends with `?mode=ro`, the saver is read-only and writes nothing to the file.
    """
    if not url.startswith(_SCHEME):
        raise ConfigError(f"{url!r} is not a SQLite URL: write 'sqlite:///relative.db' or 'sqlite:////absolute.db'")
    rest, written = options_in(url, SqliteOptions)
    return SqliteSaver(rest, **{**written, **options})


def _expect_same(connection: object, own: object, settings: Settings) -> None:
    """Raise ConfigError unless the connection is the saver's own: no other one sees a database in memory."""
    if connection is not own:
        raise ConfigError(
            f"the connection given is not that of this saver, and {settings} is only on its own: "
            "use transaction(), or make the saver with your connection"
        )


def _settings_of_url(url: str, settings: Settings) -> Settings:
    rest = url.removeprefix(_SCHEME)
    if rest in (MEMORY, ""):
        return settings
    path, question, options = rest.partition("?")
    if not path.startswith("/") or path == "/":
        raise ConfigError(f"{url!r} names no file: write 'sqlite:///{rest.lstrip('/') or 'file.db'}'")
    if "#" in rest or (question and options != _READ_ONLY):
        raise ConfigError(
            f"{url!r} has an unknown option: a URL may end with ?{_READ_ONLY}, and only threadmark.open reads others "
            "from it (docs/reference/options.md). Give one as an argument, and write ? and # in a name as %3F and %23"
        )
    return settings._replace(path=_absolute(unquote(path[1:])), read_only=bool(question))


def _absolute(path: str) -> str:
    return str(Path(path).absolute())


def _driver(database: Any, settings: Settings) -> Driver:
    if isinstance(database, sqlite3.Connection):
        path = _path_of(database)
        if not path:
            return SharedDriver(database, settings, owned=False)
        if not Path(path).exists():
            raise ConfigError(f"the file of the connection given, {path!r}, was deleted or moved away: open a new one")
        return FileDriver(settings._replace(path=path, read_only=_is_read_only(database)))
    if isinstance(database, (str, os.PathLike)):
        settings = _settings_of(database, settings)
        if settings.path == MEMORY:
            connection = sqlite3.connect(MEMORY, isolation_level=None, check_same_thread=False)
            return SharedDriver(connection, settings, owned=True)
        return FileDriver(settings)
    if _is_aiosqlite(database):
        from threadmark_sqlite.driver.aio import AiosqliteDriver

        return AiosqliteDriver(database, settings)
    raise ConfigError(f"expected a path, a URL or a connection, got {type(database).__name__}")


def _settings_of(database: "str | os.PathLike[str]", settings: Settings) -> Settings:
    path = os.fspath(database)
    if path.startswith(_SCHEME):
        return _settings_of_url(path, settings)
    if isinstance(database, str) and path.startswith("file:"):
        raise ConfigError(
            f"{path!r} looks like a URI of SQLite: write 'sqlite:///file.db' or 'sqlite:///file.db?{_READ_ONLY}', "
            "give a connection opened with uri=True, or a pathlib.Path for a file of that name"
        )
    scheme, separator, _ = path.partition("://")
    is_url = separator and "/" not in scheme and len(scheme) != 1  # a letter is a drive of Windows
    if isinstance(database, str) and is_url:  # the rest may be a password
        raise ConfigError(
            f"a {scheme!r} URL is no SQLite database: give it to threadmark.open, "
            "or a pathlib.Path for a file of that name"
        )
    if not path:
        raise ConfigError(f"an empty path: give a file, or {MEMORY!r}")
    if "\0" in path:
        raise ConfigError(f"the path {short_repr(path)} has a NUL character, which no file's name has")
    return settings if path == MEMORY else settings._replace(path=_absolute(path))


def _path_of(connection: sqlite3.Connection) -> str:
    """Return the path of a connection's file, an empty string for a database in memory."""
    return path_in(_asked(connection, connections.FILES))


def _is_read_only(connection: sqlite3.Connection) -> bool:
    """Return whether a connection is read-only, for whatever reason."""
    return reads_only(_asked(connection, connections.READS_ONLY), _asked(connection, connections.PLAN_OF_WRITING))


def _asked(connection: sqlite3.Connection, question: str) -> list[Any]:
    try:
        cursor = connection.cursor()
        cursor.row_factory = None
        return cursor.execute(question).fetchall()
    except sqlite3.ProgrammingError as error:
        raise ConfigError(f"the connection given cannot be used ({error}): give an open one, or a path") from error


def _is_aiosqlite(database: object) -> bool:
    return any(f"{kind.__module__}.{kind.__name__}" == "aiosqlite.core.Connection" for kind in type(database).__mro__)
