"""The limits of every value that the rope has stored, compiled or not."""

from collections.abc import Collection, Mapping

from threadmark.format.rope import Deduplicated, Slice, pack, segment_keys, unpack
from threadmark.format.rope.packed import join, layout

MOST_SEGMENTS = 48
MOST_PARTS = 512
SLACK = 1024
MOST_REPEATED = 4


def check_limits(
    data: bytes, deduplicated: Deduplicated, segments: Mapping[bytes, bytes], beside: Collection[bytes] = ()
) -> None:
    """Fail unless the manifest makes the value of these segments, within every limit, in the only way to write it."""
    manifest = unpack(deduplicated.packed)
    assert pack(manifest) == deduplicated.packed
    assert deduplicated.manifest in {None, manifest}
    assert join(layout(deduplicated.packed), segments) == data
    keys = segment_keys(manifest)
    assert len(deduplicated.fresh) <= 1
    assert set(deduplicated.fresh) <= set(keys)
    assert len(keys) <= MOST_SEGMENTS
    assert len(manifest) <= MOST_PARTS
    assert sum(len(segments[key]) for key in keys if key not in beside) <= 2 * len(data) + SLACK
    literal = sum(len(part) for part in manifest if not isinstance(part, Slice))
    assert len(data) <= MOST_REPEATED * (sum(len(segments[key]) for key in keys) + literal)
