# cython: language_level=3
"""A compiled function in front of its reference, as `threadmark.runtime.compiled` puts it there."""

from cython cimport final

from threadmark_speed.packing import CannotPackError
from threadmark_speed.plain import NeedsReferenceError

cdef bint are_on = True


def switch(bint on):
    """Set whether compiled functions are called, or their references: for tests. Returns the old setting."""
    global are_on
    before, are_on = are_on, on
    return before


@final
cdef class Counterpart:
    """Calls `compiled`, and `reference` if that answers None or says that only the reference can tell."""

    cdef readonly object compiled, reference
    cdef readonly bint is_whole
    """Whether `compiled` does all that the reference does, so that None is an answer."""
    cdef dict __dict__  # for the attributes that `functools.update_wrapper` sets

    def __init__(self, compiled not None, reference not None, bint is_whole):
        self.compiled, self.reference, self.is_whole = compiled, reference, is_whole

    def __call__(self, *args, **named):
        if not are_on:
            return self.reference(*args, **named)
        if self.is_whole:
            return self.compiled(*args, **named)
        try:
            found = self.compiled(*args, **named)
        except (CannotPackError, NeedsReferenceError):
            return self.reference(*args, **named)
        return self.reference(*args, **named) if found is None else found
