"""Whether the compiled parts are used: where the package threadmark_speed is installed, unless that is switched off.

Core has everything in Python, which is the reference. A module of core that has a compiled counterpart takes that where
`IN_USE` says so.
"""

import os
from importlib.util import find_spec

from threadmark.errors import ConfigError

SWITCH = "THREADMARK_PURE_PYTHON"
"""The variable of the environment that leaves the compiled parts out, set to 1."""

_CONTRACT = 4
"""What core expects of the compiled modules. Another version of the package may offer something else."""


def _are_wanted() -> bool:
    switched = os.environ.get(SWITCH, "")
    if switched not in ("", "0", "1"):
        raise ConfigError(f"{SWITCH} in the environment must be 1, 0 or empty, not {switched!r}")
    return switched != "1"


def _are_there() -> bool:
    if find_spec("threadmark_speed") is None:
        return False
    import threadmark_speed

    modules = [find_spec(f"threadmark_speed.{name}") for name in threadmark_speed.MODULES]
    return threadmark_speed.CONTRACT == _CONTRACT and None not in modules and bool(modules)


IN_USE = _are_wanted() and _are_there()
"""Whether the compiled parts are used in this process."""
