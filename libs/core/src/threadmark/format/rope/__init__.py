"""Finding the changes in a value, and storing it as slices of stored segments. Nothing here does I/O."""

from threadmark.format.rope.deduplicating import deduplicate, patch
from threadmark.format.rope.packed import (
    MOST_REPEATED,
    Deduplicated,
    Manifest,
    Part,
    Slice,
    join,
    keys_in,
    layout,
    pack,
    segment_keys,
    unpack,
)
from threadmark.format.rope.reuse import Source

__all__ = [
    "MOST_REPEATED",
    "Deduplicated",
    "Manifest",
    "Part",
    "Slice",
    "Source",
    "deduplicate",
    "join",
    "keys_in",
    "layout",
    "pack",
    "patch",
    "segment_keys",
    "unpack",
]
