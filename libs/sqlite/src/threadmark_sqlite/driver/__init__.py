"""The drivers, which run programs on SQLite for blocking callers and for asyncio. All I/O is in this package."""

from threadmark_sqlite.driver.connection import Settings
from threadmark_sqlite.driver.file import FileDriver
from threadmark_sqlite.driver.shared import SharedDriver

__all__ = ["FileDriver", "Settings", "SharedDriver"]
