"""The bound on a value's length by its stored bytes: never refused after a put, never more from crafted rows."""

import random
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from threadmark.errors import CorruptDataError
from threadmark.format.digests import proof, segment_key
from threadmark.format.rope import MOST_REPEATED, Slice, Source, deduplicate, pack
from threadmark.format.stored import EXPANSION_BYTES, MOST_COMPRESSED, Allowance, Stored, expand, shrink
from threadmark.memory import MemorySaver

NOTHING = 0

# Text of few different pieces, many times over.
REPEATED = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 400)), min_size=1, max_size=12).map(
    lambda runs: b"".join(_piece(number) * times for number, times in runs)
)


def _piece(number: int) -> bytes:
    return random.Random(number).randbytes(40) if number else bytes(40)


@settings(deadline=None)
@given(st.lists(REPEATED, min_size=1, max_size=6), st.sampled_from([0, 3]))
def test_what_is_put_needs_no_allowance(values: list[bytes], beside: int) -> None:
    """However much a value repeats itself, and the values before it."""
    segments: dict[bytes, bytes] = {}
    sources: list[Source] = []
    for data in values:
        keys = [*segments][:beside]
        deduplicated = deduplicate(data, sources[-3:], beside=keys)
        segments |= {key: shrink(segment) for key, segment in deduplicated.fresh.items()}
        stored = Stored("m", deduplicated.packed, proof(data).digest)
        assert stored.data(segments, Allowance(NOTHING)) == data
        sources.append(Source(data, deduplicated.packed))


@settings(deadline=None)
@given(REPEATED)
def test_a_segment_is_not_compressed_beyond_measure(data: bytes) -> None:
    row = shrink(data)
    assert len(data) <= MOST_COMPRESSED * len(row)
    assert expand(row, len(data)) == data


def test_zeros_are_compressed_as_far_as_that() -> None:
    for size in (256, 1000, 128 * 30, 300_000, 10_000_000):
        row = shrink(bytes(size))
        assert expand(row, size) == bytes(size)
        assert size / MOST_COMPRESSED <= len(row) <= size / MOST_COMPRESSED + 30


def test_every_reader_of_zstd_reads_a_row_that_was_made_longer() -> None:
    row = shrink(bytes(300_000))
    reader = zstandard.ZstdDecompressor().stream_reader(row[1:], read_across_frames=True)
    assert reader.read(1_000_000) == bytes(300_000)


@pytest.mark.parametrize("location", [5, 6, 8, 9, 1000])
def test_a_damaged_beginning_is_refused(location: int) -> None:
    row = bytearray(shrink(bytes(300_000)))
    row[location] ^= 1
    with pytest.raises(CorruptDataError):
        expand(bytes(row), 300_000)


def _crafted(data: bytes, row: bytes, times: int = 1) -> tuple[Stored, dict[bytes, bytes]]:
    """A value that repeats one segment, with the digest that it should have."""
    key = segment_key(data)
    manifest = (Slice(key, len(data), 0, len(data)),) * times
    return Stored("m", pack(manifest), proof(data * times).digest), {key: row}


def test_what_was_compressed_further_is_read_within_the_allowance() -> None:
    """By another program, or by a saver whose options trust it."""
    zeros = bytes(300_000)
    stored, segments = _crafted(zeros, b"\x01" + zstandard.ZstdCompressor().compress(zeros))
    assert stored.data(segments) == zeros
    stored, segments = _crafted(bytes(10_000_000), b"\x01" + zstandard.ZstdCompressor().compress(bytes(10_000_000)))
    with pytest.raises(CorruptDataError, match=r"max_expansion_bytes=\d+") as refused:
        stored.data(segments)
    enough = int(str(refused.value).rpartition("=")[2].partition(" ")[0])
    assert stored.data(segments, Allowance(enough)) == bytes(10_000_000)
    with pytest.raises(CorruptDataError):
        stored.data(segments, Allowance(enough - 1))


def test_the_values_of_a_checkpoint_have_one_allowance() -> None:
    allowance = Allowance()
    size = EXPANSION_BYTES * 2 // 3
    for number in range(2):
        data = bytes([number]) * size
        stored, segments = _crafted(data, b"\x01" + zstandard.ZstdCompressor().compress(data))
        if number:
            with pytest.raises(CorruptDataError):
                stored.data(segments, allowance)
            allowance.renew()
        assert stored.data(segments, allowance) == data


def test_a_value_may_repeat_its_segments_so_many_times() -> None:
    data = random.Random(5).randbytes(100_000)
    stored, segments = _crafted(data, b"\x00" + data, MOST_REPEATED)
    assert stored.data(segments, Allowance(NOTHING)) == data * MOST_REPEATED
    stored, segments = _crafted(data, b"\x00" + data, MOST_REPEATED + 1)
    with pytest.raises(CorruptDataError):
        stored.data(segments, Allowance(NOTHING))


@pytest.mark.parametrize(("segments", "parts"), [(49, 49), (1, 513)])
def test_a_manifest_of_more_than_it_may_have_is_refused(segments: int, parts: int) -> None:
    slices = [Slice(bytes([number]) * 12, 1, 0, 1) for number in range(segments)]
    packed = pack(tuple(slices[number % segments] for number in range(parts)))
    with pytest.raises(CorruptDataError, match=r"more than 512 parts|48 are the most"):
        Stored("m", packed, bytes(16)).data({})


def test_values_that_repeat_themselves_are_read_again_by_a_saver_that_allows_nothing() -> None:
    chance = random.Random(9)
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    with MemorySaver(max_expansion_bytes=0, cache_bytes=0) as saver:
        text = chance.randbytes(3000)
        for step in range(8):
            values: dict[str, Any] = {"zeros": bytes(5_000_000 + step), "list": [text] * 8 ** (step % 4)}
            versions: Any = {"zeros": step, "list": step}
            checkpoint: Any = {"id": f"{step}", "channel_values": values, "channel_versions": versions}
            config = saver.put(config, checkpoint, {}, versions)
            saver.put_writes(config, [("list", [text] * 9)], "task")
            found = saver.get_tuple(config)
            assert found is not None
            assert found.checkpoint["channel_values"] == values
        assert saver.verify().problems == []
