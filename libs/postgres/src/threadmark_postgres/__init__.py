"""Threadmark's Postgres backend."""

from threadmark_postgres.migrations import ddl
from threadmark_postgres.options import PostgresOptions
from threadmark_postgres.saver import PostgresSaver

__all__ = ["PostgresOptions", "PostgresSaver", "ddl"]
