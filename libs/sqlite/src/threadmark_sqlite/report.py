"""What a SQLite file and the library that reads it say about themselves, as `SqliteSaver.report` returns it."""

import sqlite3
from typing import NamedTuple

from threadmark.program import Operation, Program, read_existing
from threadmark.runtime.compiled import STATE
from threadmark_sqlite.options import Durability
from threadmark_sqlite.sql import connections, reports
from threadmark_sqlite.steps import execute

_MOST_FREE = 0.5
"""Of a file's pages. More free ones than that are worth a word, where they are many bytes."""
_MANY_BYTES = 64_000_000


class SqliteReport(NamedTuple):
    """What is known of a saver's database. None is what a database without our tables does not say."""

    sqlite: str
    """The version of the library."""
    durability: Durability
    """What this saver's commits wait for. It is the saver's, not the file's."""
    format: int | None
    """The number of the last migration."""
    bytes: int | None
    """Of the file, free pages included; what is still in its log is not counted."""
    free_bytes: int | None
    """Of pages that are not used."""
    other_tables: tuple[str, ...]
    """Tables that are not ours."""
    warnings: tuple[str, ...]
    """What may lose threads, or take space for nothing."""
    compiled: str = STATE
    """Whether this process uses the compiled part of core, in words."""


class _Facts(NamedTuple):
    format: int
    page_bytes: int
    pages: int
    free_pages: int
    other_tables: tuple[str, ...]


def report(durability: Durability) -> Operation[SqliteReport]:
    """Return what is known of the database. No tables are made for it."""
    bare = SqliteReport(sqlite3.sqlite_version, durability, None, None, None, (), ())
    facts = yield from read_existing(_facts)
    if facts is None:
        return bare
    return bare._replace(
        format=facts.format,
        bytes=facts.pages * facts.page_bytes,
        free_bytes=facts.free_pages * facts.page_bytes,
        other_tables=facts.other_tables,
        warnings=tuple(_warnings(facts, durability)),
    )


def _facts() -> Program[_Facts]:
    ((last,),) = yield from execute(connections.LAST_MIGRATION)
    ((page_bytes,),) = yield from execute(reports.PAGE_BYTES)
    ((pages,),) = yield from execute(reports.PAGES)
    ((free_pages,),) = yield from execute(reports.FREE_PAGES)
    others = yield from execute(reports.OTHER_TABLES)
    return _Facts(last, page_bytes, pages, free_pages, tuple(name for (name,) in others))


def _warnings(facts: _Facts, durability: Durability) -> list[str]:
    found = []
    if durability != "full":
        found.append("with durability='normal' a power cut may undo the last commits")
    free = facts.free_pages * facts.page_bytes
    if free > _MANY_BYTES and facts.free_pages > facts.pages * _MOST_FREE:
        found.append(f"{free:,} bytes of the file are free pages: VACUUM gives them back to the disk")
    return found
