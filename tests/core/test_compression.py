"""Segments in their stored form: with zstandard, without it, and damaged."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threadmark.errors import CorruptDataError, MissingDependencyError
from threadmark.format import stored
from threadmark.format.stored import SMALLEST, expand, shrink

TEXT = b"A sentence that comes again and again. " * 100


@settings(deadline=None)
@given(st.binary(max_size=2000) | st.binary(min_size=1, max_size=20).map(lambda unit: unit * 300))
def test_a_segment_comes_back_and_grows_by_one_byte_at_most(data: bytes) -> None:
    row = shrink(data)
    assert expand(row, len(data)) == data
    assert len(row) <= len(data) + 1


def test_a_segment_is_compressed_where_that_pays() -> None:
    assert len(shrink(TEXT)) < len(TEXT) // 10
    assert shrink(TEXT[: SMALLEST - 1]) == b"\x00" + TEXT[: SMALLEST - 1]
    noise = random.Random(1).randbytes(4000)
    assert shrink(noise) == b"\x00" + noise


def test_without_the_extra_segments_are_stored_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    compressed = shrink(TEXT)
    monkeypatch.setattr(stored, "_INSTALLED", False)
    assert shrink(TEXT) == b"\x00" + TEXT
    assert expand(shrink(TEXT), len(TEXT)) == TEXT
    with pytest.raises(MissingDependencyError, match=r"pip install 'threadmark\[zstd\]'"):
        expand(compressed, len(TEXT))


@pytest.mark.parametrize("stored", [b"", b"\x00", b"\x00abcd", b"\x01", b"\x01\x28\xb5\x2f\xfd", b"\x02abc", b"abc"])
def test_stored_bytes_that_are_no_segment_of_that_size_are_refused(stored: bytes) -> None:
    with pytest.raises(CorruptDataError):
        expand(stored, 3)


@pytest.mark.parametrize("size", [0, 1, len(TEXT) - 1, len(TEXT) + 1, 1 << 62])
def test_a_frame_that_holds_another_size_is_refused_before_it_is_expanded(size: int) -> None:
    with pytest.raises(CorruptDataError, match="does not announce"):
        expand(shrink(TEXT), size)


def test_what_follows_a_frame_is_refused() -> None:
    with pytest.raises(CorruptDataError):
        expand(shrink(TEXT) + b"more", len(TEXT))


def test_damaged_frames_are_refused_or_have_the_size_that_was_stored() -> None:
    chance = random.Random(2)
    stored = shrink(bytes(chance.choices(b"some letters", k=3000)))
    refused = 0
    for _ in range(5000):
        damaged = bytearray(stored)
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        if chance.random() < 0.3:
            del damaged[chance.randrange(len(damaged)) :]
        try:
            assert len(expand(bytes(damaged), 3000)) == 3000
        except CorruptDataError:
            refused += 1
    assert refused > 1000


def test_many_threads_compress_and_expand_at_once() -> None:
    def there_and_back(seed: int) -> bool:
        data = bytes(random.Random(seed).choices(b"abcd", k=50_000))
        return all(expand(shrink(data), len(data)) == data for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(there_and_back, range(32)))
