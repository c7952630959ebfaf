"""The driver, which runs programs on Postgres for blocking callers and for asyncio. All I/O is in this package."""

from threadmark_postgres.driver import aio, blocking
from threadmark_postgres.driver.driver import PostgresDriver
from threadmark_postgres.driver.held import HeldTransaction
from threadmark_postgres.driver.read_only import ReadOnlyDriver
from threadmark_postgres.driver.replica import ReplicaDriver
from threadmark_postgres.driver.settings import Settings
from threadmark_postgres.driver.within import WithinAsyncConnection, WithinConnection

__all__ = [
    "HeldTransaction",
    "PostgresDriver",
    "ReadOnlyDriver",
    "ReplicaDriver",
    "Settings",
    "WithinAsyncConnection",
    "WithinConnection",
    "aio",
    "blocking",
]
