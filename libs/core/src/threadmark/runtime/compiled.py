"""Whether the compiled parts are used: where the package threadmark_speed is installed, unless that is switched off.

Core has everything in Python, which is the reference. A module of core that has a compiled counterpart takes that where
`IN_USE` says so. A package that cannot be used (it was built for another Python or system, is damaged, or is of another
release) is left out with one warning: everything works without it, only slower.
"""

import os
import warnings
from importlib.util import find_spec

from threadmark.errors import ConfigError

SWITCH = "THREADMARK_PURE_PYTHON"
"""The variable of the environment that leaves the compiled parts out, set to 1."""

_PACKAGE = "threadmark_speed"
_CONTRACT = 5
"""What core expects of the compiled modules. Another version of the package may offer something else."""


def _are_wanted() -> bool:
    switched = os.environ.get(SWITCH, "")
    if switched not in ("", "0", "1"):
        raise ConfigError(f"{SWITCH} in the environment must be 1, 0 or empty, not {switched!r}")
    return switched != "1"


def _are_there() -> bool:
    """Whether all compiled modules are there. A source tree in which they were not compiled counts as not installed."""
    if find_spec(_PACKAGE) is None:
        return False
    import threadmark_speed

    specs = [find_spec(f"{_PACKAGE}.{name}") for name in threadmark_speed.MODULES]
    if not specs or None in specs:
        return False
    if threadmark_speed.CONTRACT != _CONTRACT:
        raise ImportError(f"it was made for another release of threadmark (contract {threadmark_speed.CONTRACT})")
    for spec in specs:
        if spec is not None and spec.loader is not None:
            spec.loader.create_module(
                spec
            )  # loads the file, and runs nothing that imports core, which is not there yet
    return True


def _choice() -> tuple[bool, str, bool]:
    """Return whether the compiled parts are used, the same in words, and whether they are there and cannot be."""
    if not _are_wanted():
        return False, f"switched off by {SWITCH}", False
    try:
        is_there = _are_there()
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it, core works without it
        warnings.warn(
            f"threadmark-speed cannot be used and is left out ({error}): everything works in Python, only slower. "
            f"Install it again in the version of threadmark, or set {SWITCH}=1",
            RuntimeWarning,
            stacklevel=2,
        )
        return False, f"left out: {error}", True
    return is_there, "in use" if is_there else "not installed", False


IN_USE, STATE, IS_BROKEN = _choice()
"""Whether the compiled parts are used in this process; the same in words, for `threadmark doctor`; and whether they are
installed and cannot be used."""
