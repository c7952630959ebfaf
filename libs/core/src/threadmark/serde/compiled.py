"""The compiled counterpart of the inner loops of encoding and decoding, where it is in use (decision 22).

It writes builtin types, and takes apart and builds the objects that look like one before them. Everything else it gives
to the functions in this package, which are the reference.
"""

from typing import TYPE_CHECKING

from threadmark.runtime.compiled import IN_USE

if TYPE_CHECKING or IN_USE:
    from threadmark_speed import given, objects, packing, plain, putting, reading

__all__ = ["given", "in_use", "objects", "packing", "plain", "putting", "reading"]

in_use: bool = IN_USE
"""Whether serializers use it. What they have made is kept, so only tests change this."""
