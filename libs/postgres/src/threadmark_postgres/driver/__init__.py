"""The driver, which runs programs on Postgres for blocking callers and for asyncio. All I/O is in this package."""

from threadmark_postgres.driver import aio, blocking
from threadmark_postgres.driver.driver import PostgresDriver
from threadmark_postgres.driver.read_only import ReadOnlyDriver
from threadmark_postgres.driver.replica import ReplicaDriver
from threadmark_postgres.driver.settings import Settings

__all__ = ["PostgresDriver", "ReadOnlyDriver", "ReplicaDriver", "Settings", "aio", "blocking"]
