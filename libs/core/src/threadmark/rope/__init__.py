"""Finding what changed in a value, and storing it as slices of stored segments. Nothing here does I/O.

The functions that every put and get calls have compiled counterparts, which are used where they are installed.
"""

from threadmark.compiled import IN_USE
from threadmark.rope.manifest import MOST_REPEATED, Deduplicated, Manifest, Part, Slice, segment_keys
from threadmark.rope.packed import pack, unpack
from threadmark.rope.reuse import Source

if IN_USE:
    from threadmark_speed.manifests import join, keys_in, layout
    from threadmark_speed.rope import deduplicate, patch
else:
    from threadmark.rope.deduplicating import deduplicate, patch
    from threadmark.rope.packed import join, keys_in, layout

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
