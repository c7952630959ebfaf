"""Compiled versions of the parts of Threadmark that are worth compiling.

You never call this package: if it is installed, `threadmark.runtime.compiled` finds it, and core and the SQLite backend
use its modules in place of theirs. Each module here does the same as its counterpart in Python, which stays the
reference and runs if this package is missing.
"""

import sys

__all__ = ["CONTRACT", "MODULES"]

CONTRACT = 10
"""Grows when the contract between core and these modules changes: core leaves out a package for another one."""

MODULES: tuple[str, ...] = (
    "arguments",
    "checks",
    "columns",
    *(() if sys.platform == "win32" else ("files",)),  # its system calls do not exist on Windows
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
