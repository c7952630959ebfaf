"""The backends that the suite runs on. Another one plugs in by one more function here, and its line in BACKENDS."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from threadmark import Saver
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark.sealing import Keyring
from threadmark_conformance import Backend, Opener
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.store import SqliteStore


@contextmanager
def memory(_: Path) -> Iterator[Opener]:
    """Dictionaries; savers on them share the driver, which holds them."""
    driver = MemoryDriver()

    def open_saver(**options: Any) -> Saver:
        return Saver(MemoryStore(), driver, **options)

    yield open_saver


@contextmanager
def sqlite_file(folder: Path) -> Iterator[Opener]:
    """A SQLite file; every saver has its own connections, as in another process."""

    def open_saver(**options: Any) -> Saver:
        return SqliteSaver(folder / "threads.db", durability="normal", **options)

    yield open_saver


@contextmanager
def sqlite_memory(_: Path) -> Iterator[Opener]:
    """A SQLite database in memory; savers on it share the driver, which holds its one connection."""
    with SqliteSaver(":memory:") as first:

        def open_saver(**options: Any) -> Saver:
            return Saver(SqliteStore(), first._driver, **options)

        yield open_saver


@contextmanager
def sealed(_: Path) -> Iterator[Opener]:
    """Dictionaries that hold sealed rows only."""
    driver = MemoryDriver()
    keyring = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32))

    def open_saver(**options: Any) -> Saver:
        return Saver(MemoryStore(), driver, keyring=keyring, **options)

    yield open_saver


BACKENDS: dict[str, Backend] = {
    "memory": memory,
    "memory sealed": sealed,
    "sqlite file": sqlite_file,
    "sqlite memory": sqlite_memory,
}
