"""The compiled counterpart of the inner loops of encoding and decoding, where it is in use (decision 22).

It writes builtin types and takes apart and builds the objects that look like one before them. Everything else it gives
to the functions in this package, which are the reference.
"""

from threadmark.compiled import IN_USE

if IN_USE:
    from threadmark_speed import objects as OBJECTS
else:
    OBJECTS = None  # type: ignore[assignment]  # mypy has no type for a module that may not be there
