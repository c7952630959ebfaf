"""The differences between systems in files: how they get onto the disk, and what tells who may read them."""

import os
import sys

if sys.platform != "win32":
    import fcntl

MODES_TELL_WHO_READS = sys.platform != "win32"
"""Whether the mode of a file says who may read it. On Windows its access control list does, and a mode is made up."""


def sync_file(descriptor: int) -> None:
    """Return when the data of a file that is open for writing is on the disk.

    On macOS `fsync` leaves it in the cache of the disk. A file system that knows no other way, such as one of a
    network, refuses the full sync.
    """
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError:
            os.fsync(descriptor)
    else:
        os.fsync(descriptor)


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Return when the names in a folder are on the disk. On Windows no program can wait for that."""
    if sys.platform != "win32":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            sync_file(descriptor)
        finally:
            os.close(descriptor)
