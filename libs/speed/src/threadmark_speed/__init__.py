"""Compiled versions of the parts of Threadmark that are worth compiling.

You never call this package: `threadmark.runtime.compiled` finds it, and core and the SQLite backend use its modules in
place of theirs. Each module here does the same as its counterpart in Python, which stays the reference and runs if
this package has no compiled code. Systems without a compiled wheel get one in Python only.
"""

import sys
from pathlib import Path

__all__ = ["COMPILED", "CONTRACT", "MODULES"]

COMPILED = any(path.suffix in {".so", ".pyd"} for path in Path(__file__).parent.iterdir())
"""Whether there is compiled code. Without it core runs its own, and gives no warning."""

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
"""The compiled modules, where there is compiled code."""
