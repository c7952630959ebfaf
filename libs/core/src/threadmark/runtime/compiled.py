"""The seam between core and its compiled part, the package `threadmark_speed`: the one place that chooses.

Everything is written in Python, which is the reference. A function with a compiled counterpart says so:

    @counterpart("checks.check_of")
    def check_of(listed): ...

If the package is installed, its function of that name replaces the one in the module, and calls the reference for the
cases that it does not handle. A package without compiled code is passed over in silence. One that cannot be used (it
was built for another Python or system, is damaged, or has another contract) is left out with one warning: everything
works without it, only slower.
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, update_wrapper
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeVar

from threadmark.errors import ConfigError

T = TypeVar("T", bound=Callable[..., Any])

SWITCH = "THREADMARK_PURE_PYTHON"
"""The variable of the environment that leaves the compiled parts out, set to 1."""


class Counterpart(NamedTuple):
    """A compiled function or class, as it is called, and the reference that it stands for."""

    compiled: Any
    reference: Any
    is_whole: bool


COUNTERPARTS: dict[str, Counterpart] = {}
"""All that are in use, by the reference's name. It is empty if nothing is compiled."""

_PACKAGE = "threadmark_speed"
_CONTRACT = 10
"""The contract of core with the compiled modules. Another version of the package may offer something else."""


def counterpart(name: str, *leading: object, is_whole: bool = False) -> Callable[[T], T]:
    """Decorate a reference whose compiled counterpart is called instead, if compiled parts are in use.

    Args:
        name: The module of `threadmark_speed` and the function or class in it.
        *leading: The arguments of the compiled function before the arguments of a call: classes and functions of core.
        is_whole: The counterpart is complete. Any other returns None, or raises CannotPackError or
            NeedsReferenceError, if the reference must be called.
    """

    def decorate(reference: T) -> T:
        module, _, member = name.partition(".")
        if not IN_USE or module not in import_module(_PACKAGE).MODULES:
            return reference
        try:
            compiled = getattr(import_module(f"{_PACKAGE}.{module}"), member)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, core works without it
            _give_up(error)
            return reference
        bound = partial(compiled, *leading) if leading else compiled
        standing: Any = bound
        if not isinstance(reference, type):
            standing = update_wrapper(
                import_module(f"{_PACKAGE}.seam").Counterpart(bound, reference, is_whole), reference
            )
        COUNTERPARTS[f"{reference.__module__}.{reference.__qualname__}"] = Counterpart(bound, reference, is_whole)
        return standing  # type: ignore[no-any-return]  # it is equivalent to the reference

    return decorate


@contextmanager
def only_references() -> Iterator[None]:
    """Call references only, in all threads, for the time of a block: for tests and benchmarks."""
    switch = import_module(f"{_PACKAGE}.seam").switch if IN_USE else bool
    before = switch(False)
    try:
        yield
    finally:
        switch(before)


def _are_enabled() -> bool:
    switched = os.environ.get(SWITCH, "")
    if switched not in ("", "0", "1"):
        raise ConfigError(f"{SWITCH} in the environment must be 1, 0 or empty, not {switched!r}")
    return switched != "1"


class _Choice(NamedTuple):
    is_compiled: bool
    words: str
    is_broken: bool = False


def _choice() -> _Choice:
    if not _are_enabled():
        return _Choice(is_compiled=False, words=f"Python (switched off by {SWITCH})")
    try:
        missing = _missing()
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it, core works without it
        return _left_out(error)
    if missing:
        return _Choice(is_compiled=False, words=f"Python ({missing})")
    return _Choice(is_compiled=True, words=f"compiled (contract {_CONTRACT})")


def _missing() -> str:
    """Return why there is no compiled code here, or "" if there is. Raise an error if it cannot be used."""
    if find_spec(_PACKAGE) is None:
        return "threadmark-speed is not installed"
    import threadmark_speed

    if not getattr(threadmark_speed, "COMPILED", True):
        return "threadmark-speed is installed without compiled code"
    if threadmark_speed.CONTRACT != _CONTRACT:
        raise ImportError(
            f"it was built for another release: it has contract {threadmark_speed.CONTRACT} and needs {_CONTRACT}"
        )
    for name in threadmark_speed.MODULES:
        spec = find_spec(f"{_PACKAGE}.{name}")
        if spec is None or spec.loader is None:
            raise ImportError(f"its module {name} is missing, or built for another Python or system")
        spec.loader.create_module(spec)  # loads the file, and runs nothing that imports core, which is not there yet
    return ""


def _left_out(error: Exception) -> _Choice:
    warnings.warn(
        f"threadmark-speed cannot be used and is left out ({error}): everything works in Python, only slower. "
        f"Install it again in the version of threadmark, or set {SWITCH}=1",
        RuntimeWarning,
        stacklevel=2,
    )
    return _Choice(is_compiled=False, words=f"Python (threadmark-speed is left out: {error})", is_broken=True)


def _give_up(error: Exception) -> None:
    """Call references only, from now on: a module that could be loaded has failed while it was imported."""
    global IN_USE, IS_BROKEN, _WORDS
    IN_USE, _WORDS, IS_BROKEN = _left_out(error)
    COUNTERPARTS.clear()
    seam = sys.modules.get(f"{_PACKAGE}.seam")
    if seam is not None:
        seam.switch(False)


def implementation() -> str:
    """Return which code this process runs, in words: `compiled (contract 10)`, or `Python` and why."""
    return _WORDS


IN_USE, _WORDS, IS_BROKEN = _choice()
"""Whether the compiled parts are used in this process; the same in words; and whether they are installed and cannot be
used."""
