"""Reading from SQLite's index of the log (`-shm`) how far the log was copied into the file.

SQLite itself tells that only after it has copied all it could. Opening and closing the index would give up all locks
that this process has on it, SQLite's included. So it is read through the descriptor that SQLite has open.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct

from threadmark_sqlite.driver.database_files import FileId, file_id

_OPEN_FILES = "/dev/fd"
"""The folder in which a process finds the numbers of its open files. Windows has nothing like it."""

_FIELDS = Struct("=I12xI76xI28xI")
"""The version, the pages in the log, how many were copied, how many were to be (https://sqlite.org/walformat.html)."""
_VERSION = 3007000


def is_copied_in_part(index: FileId | None) -> bool:
    """Whether SQLite has begun to copy the log into the file, and not all that is in the log by now is in the file.

    Returns False if unknown, too.
    """
    for number in _open_files():
        try:
            if file_id(os.fstat(number)) == index:
                return _is_begun_and_not_ended(os.pread(number, _FIELDS.size, 0))
        except OSError:
            continue  # it was closed by another thread
    return False


def _is_begun_and_not_ended(head: bytes) -> bool:
    if len(head) < _FIELDS.size:
        return False
    version, pages, copied, begun = _FIELDS.unpack(head)
    return bool(version == _VERSION and begun and copied < pages)


def _open_files() -> Iterator[int]:
    with suppress(OSError):
        yield from [int(each.name) for each in Path(_OPEN_FILES).iterdir()]
