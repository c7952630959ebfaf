"""Bytes as slices of stored segments: what changed, found and written down. Nothing here does I/O."""

from threadmark.rope.manifest import KEY_SIZE, MOST_REPEATED, Manifest, Part, Slice, segment_key, segment_keys
from threadmark.rope.packed import join, keys_in, layout, pack, unpack
from threadmark.rope.reuse import Source
from threadmark.rope.weave import Woven, amend, weave

__all__ = [
    "KEY_SIZE",
    "MOST_REPEATED",
    "Manifest",
    "Part",
    "Slice",
    "Source",
    "Woven",
    "amend",
    "join",
    "keys_in",
    "layout",
    "pack",
    "segment_key",
    "segment_keys",
    "unpack",
    "weave",
]
