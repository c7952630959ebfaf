"""Finding what changed in a value, and storing it as slices of stored segments. Nothing here does I/O."""

from threadmark.rope.deduplicate import deduplicate, patch
from threadmark.rope.manifest import MOST_REPEATED, Deduplicated, Manifest, Part, Slice, segment_keys
from threadmark.rope.packed import join, keys_in, layout, pack, unpack
from threadmark.rope.reuse import Source

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
