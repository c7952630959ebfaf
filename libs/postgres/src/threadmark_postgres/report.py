"""The report on a Postgres server and database, which `PostgresSaver.report` returns."""

from collections.abc import Sequence
from typing import NamedTuple

from threadmark.backends import Operation, Program, implementation, read_existing
from threadmark_postgres.migrations import missing_indexes
from threadmark_postgres.schema import in_schema
from threadmark_postgres.sql import reports
from threadmark_postgres.steps import execute

_SAFE_COMMITS = {"on", "remote_write", "remote_apply", "local"}
"""Values of `synchronous_commit` under which a commit is on the server's own disk when it is acknowledged."""


class PostgresReport(NamedTuple):
    """A report on a saver's database. A field is None if the database has no Threadmark tables."""

    server: str | None
    """Its version."""
    database: str | None
    format: int | None
    """The number of the last migration."""
    least_reader: int | None
    """The least format that a process must know to read."""
    least_writer: int | None
    """The same to write. It is the format in which processes write."""
    synchronous_commit: str | None
    fsync: str | None
    full_page_writes: str | None
    in_recovery: bool | None
    """Whether the server is a standby, which stores nothing."""
    bytes: int | None
    """The size of Threadmark's tables with their indexes."""
    langgraph_tables: tuple[str, ...]
    """The tables of LangGraph's own saver that the search path finds."""
    warnings: tuple[str, ...]
    """Settings that may lose threads or keep the saver from storing any."""
    implementation: str
    """Which code this process runs: "compiled (contract 10)", or "Python" and why."""


def report(schema: str | None) -> Operation[PostgresReport]:
    """Return a report on the database. It does not create tables."""
    found = yield from read_existing(_report, schema)
    bare = PostgresReport(None, None, None, None, None, None, None, None, None, None, (), (), implementation())
    return bare if found is None else found


def _report(schema: str | None) -> Program[PostgresReport]:
    (row,) = yield from execute(in_schema(reports.REPORT, schema))
    server, synchronous_commit, fsync, full_page_writes, in_recovery, database, *formats, size, tables = row
    number, least_reader, least_writer = formats
    found = PostgresReport(
        server,
        database,
        number,
        least_reader,
        least_writer,
        synchronous_commit,
        fsync,
        full_page_writes,
        in_recovery,
        size,
        tuple(tables),
        (),
        implementation(),
    )
    missing = yield from missing_indexes(schema)
    return found._replace(warnings=tuple(_warnings(found, missing)))


def _warnings(found: PostgresReport, missing: Sequence[str]) -> list[str]:
    warnings = []
    if found.fsync != "on":
        warnings.append("fsync is off: a power cut may destroy the database")
    if found.full_page_writes != "on":
        warnings.append("full_page_writes is off: a power cut may leave torn pages")
    if found.synchronous_commit not in _SAFE_COMMITS:
        warnings.append("synchronous_commit is off: a crash of the server may undo the last commits")
    if found.in_recovery:
        warnings.append("the server is a standby: it stores nothing")
    warnings += [f"the index {name} is missing: saver.setup() builds it while others write" for name in missing]
    return warnings
