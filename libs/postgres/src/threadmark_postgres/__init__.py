"""Checkpoints in Postgres: `PostgresSaver`, and `ddl` to make its tables yourself."""

from threadmark.backends import MissingDependencyError

try:
    import psycopg as _  # noqa: F401 - it fails if it finds no libpq, and its error names no package
except ImportError as missing:
    cause = str(missing).rpartition(": ")[2]
    raise MissingDependencyError(
        f"psycopg cannot be used ({cause}): pip install 'threadmark-postgres[binary]', which brings libpq along, "
        "or install libpq (Debian: apt-get install libpq5)",
        name=missing.name or "psycopg",
    ) from missing

from threadmark_postgres.migrations import ddl
from threadmark_postgres.options import PostgresOptions
from threadmark_postgres.report import PostgresReport
from threadmark_postgres.saver import PostgresSaver

__all__ = ["PostgresOptions", "PostgresReport", "PostgresSaver", "ddl"]
