"""A copy of a SQLite file of one moment, made while others go on writing."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from threadmark import StoreError
from threadmark.runtime.files import MODES_TELL_WHO_READS, sync_file, sync_folder
from threadmark_cli.exits import DatabaseError, RefusedError
from threadmark_cli.sqlite_files import LOGS, read_file

_PAGES = 2000
"""How many are copied between two reports of progress, and two moments in which Ctrl-C is heard."""


def back_up(source: Path, target: Path, report: Callable[[int, int], object]) -> int:
    """Copy a SQLite file, all of one moment, to a file that is not there yet. Returns its size.

    The target gets its name when it is whole and on the disk; if this fails, or is interrupted, nothing is left.

    Args:
        source: The file. Writers to it do not wait.
        target: The copy.
        report: Called with the number of pages that are copied, and of all.
    """
    if target.exists():
        raise RefusedError(f"the file {str(target)!r} is there already: choose another name, or remove it")
    _expect_no_log(target)
    if not target.parent.is_dir():
        raise DatabaseError(f"there is no folder {str(target.parent)!r}")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise DatabaseError(f"the folder {str(target.parent)!r} cannot be written to: {error.strerror}") from error
    os.close(handle)
    part = Path(name)
    try:
        _copy(source, part, report)
        if MODES_TELL_WHO_READS:  # elsewhere a mode only says "read-only", and such a file cannot be removed
            shutil.copymode(source, part)
        try:
            os.link(part, target)  # unlike a rename, this replaces no file that was just put there
        except FileExistsError as error:
            raise RefusedError(f"the file {str(target)!r} has come meanwhile: choose another name") from error
        except OSError:  # a file system that has no links
            part.replace(target)
        sync_folder(target.parent)
        return target.stat().st_size
    finally:
        for suffix in ("", "-shm", *LOGS):
            Path(f"{part}{suffix}").unlink(missing_ok=True)


def _expect_no_log(target: Path) -> None:
    """Refuse a place with the log of a database that was there before: SQLite would add its commits to the copy."""
    for suffix in LOGS:
        log = Path(f"{target}{suffix}")
        if log.exists():
            raise RefusedError(
                f"the file {str(log)!r} is there, left by another database: SQLite would add its commits to the "
                "copy; if no process uses it, remove it, or choose another name"
            )


def _copy(source: Path, target: Path, report: Callable[[int, int], object]) -> None:
    def copy(connection: sqlite3.Connection) -> None:
        # It is in a transaction: the pages that are copied later are those of the same moment, and a writer does not
        # make the copy begin again.
        with closing(sqlite3.connect(target, isolation_level=None)) as made:
            connection.backup(made, pages=_PAGES, progress=lambda _, left, total: report(total - left, total), sleep=0)

    try:
        read_file(source, copy)
    except sqlite3.Error as error:
        raise StoreError(f"{str(source)!r} cannot be copied: {error}") from error
    with target.open("rb+") as file:  # Windows syncs only what may be written to
        sync_file(file.fileno())
