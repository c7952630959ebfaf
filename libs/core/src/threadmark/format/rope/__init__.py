"""Finding what changed in a value, and storing it as slices of stored segments. Nothing here does I/O.

The functions that every put and get calls have compiled counterparts, which are used where they are installed.
"""

from threadmark.format.rope.packed import MOST_REPEATED, Deduplicated, Manifest, Part, Slice, pack, segment_keys, unpack
from threadmark.format.rope.reuse import Source
from threadmark.runtime.compiled import IN_USE

if IN_USE:
    from threadmark_speed.manifests import join, keys_in, layout
    from threadmark_speed.rope import deduplicate, patch
else:
    from threadmark.format.rope.deduplicating import deduplicate, patch
    from threadmark.format.rope.packed import join, keys_in, layout

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
