"""Compiled versions of the parts of Threadmark that are worth compiling.

You never call this package: `threadmark.runtime.compiled` finds it, and core and the SQLite backend use its modules in
place of their own. Each module here does the same as its counterpart in Python, which stays the reference and runs if
this package has no compiled code. For systems without a wheel of their own there is one without any.
"""

import sys
from pathlib import Path

__all__ = ["COMPILED", "CONTRACT", "MODULES"]

COMPILED = any(path.suffix in {".so", ".pyd"} for path in Path(__file__).parent.iterdir())
"""Whether there is compiled code. Without it core runs its own, and gives no warning."""

CONTRACT = 10
"""Grows when what core expects of these modules changes: core leaves out a package that was made for another one."""

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
