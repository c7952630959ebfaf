"""Reading from SQLite's index of the log (`-shm`) how far the log was copied into the file.

SQLite itself tells that only after it has copied all it could. On POSIX, opening and closing the index would give up
all locks that this process has on it, SQLite's included, so it is read through the descriptor that SQLite has open. On
Windows locks belong to a descriptor, so there it is opened, and the bytes that SQLite locks are left out.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct

from threadmark_sqlite.driver.database_files import FileId, Files, file_id, id_of

_OPEN_FILES = "/dev/fd"
"""The folder in which a process finds the numbers of its open files."""

_FIELDS = Struct("=I12xI76xI28xI")
"""The version, the pages in the log, how many were copied, how many were to be (https://sqlite.org/walformat.html)."""
_LOCKS = range(120, 128)
"""The bytes that SQLite locks while it reads or writes. On Windows a locked byte cannot be read."""
_VERSION = 3007000


def is_copied_in_part(files: Files) -> bool:
    """Whether SQLite has begun to copy the log into the file, and not all that is in the log by now is in the file.

    Returns False if unknown, too.
    """
    return any(map(_is_begun_and_not_ended, _heads(files)))


def open_id_of(path: str) -> FileId | None:
    """Return the identity of the file at a path, or None unless this process has it open."""
    known = id_of(path)
    for number in _open_files() if known is not None else ():
        with suppress(OSError):  # it was closed by another thread
            if file_id(os.fstat(number)) == known:
                return known
    return None


def head_at(path: str) -> bytes:
    """Open the index at a path, and return its beginning, with zeros for the bytes that SQLite locks."""
    with Path(path).open("rb", buffering=0) as index:
        head = index.read(_LOCKS.start)
        index.seek(_LOCKS.stop)
        return head + bytes(len(_LOCKS)) + index.read(_FIELDS.size - _LOCKS.stop)


def _is_begun_and_not_ended(head: bytes) -> bool:
    if len(head) < _FIELDS.size:
        return False
    version, pages, copied, begun = _FIELDS.unpack(head)
    return bool(version == _VERSION and begun and copied < pages)


def _heads(files: Files) -> Iterator[bytes]:
    """The beginnings of the files that may be the index."""
    if sys.platform == "win32":
        with suppress(OSError):
            yield head_at(f"{files.path}-shm")
    else:
        for number in _open_files():
            with suppress(OSError):  # it was closed by another thread
                if file_id(os.fstat(number)) == files.wal_index:
                    yield os.pread(number, _FIELDS.size, 0)


def _open_files() -> Iterator[int]:
    with suppress(OSError):
        yield from [int(each.name) for each in Path(_OPEN_FILES).iterdir()]
