"""The parts of Threadmark that are worth compiling.

Nothing here is called by users: `threadmark.runtime.compiled` finds the package where it is installed, and core then
uses its modules in place of its own, as the SQLite backend does. Each module here does what one of theirs does, which
stays the reference and is what runs where this package is missing.
"""

import sys

__all__ = ["CONTRACT", "MODULES"]

CONTRACT = 9
"""Grows when what core expects of these modules changes: core leaves out a package that was made for another one."""

MODULES: tuple[str, ...] = (
    "checks",
    "columns",
    *(() if sys.platform == "win32" else ("files",)),  # which asks the system in a way that is not Windows'
    "given",
    "manifests",
    "matches",
    "objects",
    "packing",
    "packs",
    "plain",
    "proving",
    "putting",
    "reading",
    "rope",
    "seam",
)
"""The compiled modules. A source tree in which they were not compiled counts as not installed."""
