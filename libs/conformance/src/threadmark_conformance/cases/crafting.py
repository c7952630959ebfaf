"""Forged rows with valid checks and digests: reading them takes no more memory than they account for."""

from collections.abc import Mapping
from importlib.util import find_spec

import msgpack
import pytest

from threadmark.errors import CorruptDataError
from threadmark.format.digests import KEY_SIZE, VALUE_DIGEST_SIZE
from threadmark.format.header import HEADER_TAG, Header
from threadmark.format.rope import Slice, pack
from threadmark.format.stored import Stored
from threadmark.saver.proving import checkpoint_row, write_row
from threadmark.store.contract import Change, Outline
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at

_KEY = bytes(KEY_SIZE)
_DIGEST = bytes(VALUE_DIGEST_SIZE)
_PLAIN = msgpack.packb({"v": 4, "ts": "2026-01-01T00:00:00+00:00"})


async def a_value_that_repeats_a_segment_without_measure_is_damaged(world: World) -> None:
    segment = bytes(20_000)
    manifest = (Slice(_KEY, len(segment), 0, len(segment)),) * 500
    await _refuse(world, Stored("m", pack(manifest), _DIGEST), {_KEY: b"\x00" + segment})


async def a_segment_that_is_next_to_nothing_compressed_is_damaged(world: World) -> None:
    if find_spec("zstandard") is None:
        return
    import zstandard

    frame = zstandard.ZstdCompressor().compress(bytes(16 * 1024 * 1024))
    await _refuse(world, _of_one_segment(16 * 1024 * 1024), {_KEY: b"\x01" + frame})


async def a_segment_that_announces_more_than_there_is_memory_is_damaged(world: World) -> None:
    # The beginning of zstd's frames, the announced length in eight bytes, and an empty last block.
    frame = b"\x28\xb5\x2f\xfd\xe0" + (80_000_000_000).to_bytes(8, "little") + b"\x01\x00\x00"
    await _refuse(world, _of_one_segment(80_000_000_000), {_KEY: b"\x01" + frame})


def _of_one_segment(size: int) -> Stored:
    return Stored("m", pack((Slice(_KEY, size, 0, size),)), _DIGEST)


async def _refuse(world: World, value: Stored, segments: Mapping[bytes, bytes]) -> None:
    """Check that a channel and a pending write with such a value are refused by every read, and others are read."""
    await Run(world.saver, "other").step({"a": 1})
    outline = Outline("crafted", "", "1", "1", None, 1, "{}")
    header = Header({"a": 1}, {"a": value}, _PLAIN, None)
    checkpoint = checkpoint_row(outline, Stored(HEADER_TAG, header.to_bytes(), b"").body, None)
    write = write_row("crafted", "", "2", "task", 0, "", "a", value.body)
    change = Change("crafted", None, 1, segments, [checkpoint], [write], None)
    await world.in_store(lambda store: store.add(change))
    saver = world.another()
    with pytest.raises(CorruptDataError, match=r"thread 'crafted'.*checkpoint '1'.*channel 'a'.*max_expansion_bytes"):
        await saver.aget_tuple(at("crafted"))
    with pytest.raises(CorruptDataError, match=r"thread 'crafted'.*channel 'a'.*left out 1"):
        assert len([found async for found in saver.alist(None)]) == 1
    problems = (await saver.averify("crafted")).problems
    assert [problem.kind for problem in problems] == ["damaged", "damaged"]
    assert "channel 'a'" in problems[0].location
    assert "task 'task'" in problems[1].location
    await saver.adelete_thread("crafted")
