"""The report on a SQLite file and the library that reads it, which `SqliteSaver.report` returns."""

import sqlite3
from typing import NamedTuple

from threadmark.backends import Format, Operation, Program, implementation, read_existing
from threadmark_sqlite.migrations import recorded_format
from threadmark_sqlite.options import Durability
from threadmark_sqlite.sql import reports
from threadmark_sqlite.steps import execute

_MOST_FREE = 0.5
"""The share of free pages above which a large file gets a warning."""
_MANY_BYTES = 64_000_000


class SqliteReport(NamedTuple):
    """A report on a saver's database. A field is None if the database has no Threadmark tables."""

    sqlite: str
    """The version of the library."""
    durability: Durability
    """What this saver's commits wait for. It is a setting of the saver, not of the file."""
    format: int | None
    """The number of the last migration."""
    least_reader: int | None
    """The least format that a process must know to read."""
    least_writer: int | None
    """The same to write. It is the format in which processes write."""
    bytes: int | None
    """The size of the file, free pages included. Data that is still in the log is not counted."""
    free_bytes: int | None
    """The size of the pages that are not used."""
    other_tables: tuple[str, ...]
    """Tables that are not Threadmark's."""
    warnings: tuple[str, ...]
    """Settings and states that may lose threads or waste space."""
    implementation: str
    """Which code this process runs: "compiled (contract 10)", or "Python" and why."""


class _Facts(NamedTuple):
    format: Format
    page_bytes: int
    pages: int
    free_pages: int
    other_tables: tuple[str, ...]


def report(durability: Durability) -> Operation[SqliteReport]:
    """Return a report on the database. It does not create tables."""
    bare = SqliteReport(sqlite3.sqlite_version, durability, None, None, None, None, None, (), (), implementation())
    facts = yield from read_existing(_facts)
    if facts is None:
        return bare
    return bare._replace(
        format=facts.format.number,
        least_reader=facts.format.least_reader,
        least_writer=facts.format.least_writer,
        bytes=facts.pages * facts.page_bytes,
        free_bytes=facts.free_pages * facts.page_bytes,
        other_tables=facts.other_tables,
        warnings=tuple(_warnings(facts, durability)),
    )


def _facts() -> Program[_Facts]:
    found = yield from recorded_format()
    ((page_bytes,),) = yield from execute(reports.PAGE_BYTES)
    ((pages,),) = yield from execute(reports.PAGES)
    ((free_pages,),) = yield from execute(reports.FREE_PAGES)
    others = yield from execute(reports.OTHER_TABLES)
    return _Facts(found, page_bytes, pages, free_pages, tuple(name for (name,) in others))


def _warnings(facts: _Facts, durability: Durability) -> list[str]:
    found = []
    if durability != "full":
        found.append("with durability='normal' a power cut may undo the last commits")
    free = facts.free_pages * facts.page_bytes
    if free > _MANY_BYTES and facts.free_pages > facts.pages * _MOST_FREE:
        found.append(f"{free:,} bytes of the file are free pages: VACUUM gives them back to the disk")
    return found
