"""Whether an entry of a cache is what its thread stored under its key. Only then is it used."""

from collections.abc import Callable, Mapping
from functools import partial

from threadmark.digests import segment_key
from threadmark.errors import CorruptDataError, MissingDependencyError
from threadmark.sealed import opens_segment
from threadmark.sealing import Keyring
from threadmark.stored import announced_size, expand

LARGEST = 16 * 1024 * 1024
"""Larger segments are not cached: to expand a forged one could otherwise take 128 times its length in memory."""

SegmentProof = Callable[[str, bytes, bytes], bool]
"""Is given a thread's id, a key and bytes. Returns whether they are the segment of that thread with that key."""


def segment_proof(keyring: Keyring | None) -> SegmentProof:
    """Return how the entries of a saver with this keyring are proven.

    A segment that is not sealed is named by a digest of its bytes. One that is sealed opens only in its thread and
    under its key. Neither proof relies on the cache, so no entry can be forged, cut short or moved.
    """
    return _is_named_by_digest if keyring is None else partial(opens_segment, keyring)


def proven(proof: SegmentProof, thread_id: str, entries: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return those entries that are proven."""
    return {key: data for key, data in entries.items() if proof(thread_id, key, data)}


def _is_named_by_digest(_: str, key: bytes, data: bytes) -> bool:
    try:
        size = announced_size(data)
        return size <= LARGEST and segment_key(expand(data, size)) == key
    except (CorruptDataError, MissingDependencyError):  # where the database has the same bytes, it raises this
        return False
