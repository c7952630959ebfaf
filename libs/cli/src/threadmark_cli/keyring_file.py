"""The keys of a sealed database, from a file: a command line is seen by everybody on the machine."""

import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from threadmark import Keyring
from threadmark.runtime.files import MODES_TELL_WHO_READS

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_keyring(path: str, warn: Callable[[str], object]) -> Keyring:
    """Return the keyring in a file. Warns if others may read it."""
    with suppress(OSError):  # reading it says so
        mode = Path(path).stat().st_mode
        if MODES_TELL_WHO_READS and stat.S_ISREG(mode) and mode & _OTHERS:
            warn(f"others may read the keyring {path}: chmod 600 {path}")
    return Keyring.from_file(path)
