"""Segments shared by checkpoints that are read together let no damage pass, and none hides another's."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from threadmark import CheckpointTuple, CorruptDataError, MemorySaver
from threadmark.format import digests
from threadmark.format.digests import proof, segment_key
from threadmark.format.rope import Slice, pack
from threadmark.format.stored import Stored
from threadmark.memory.tables import Thread
from threadmark.program import Program
from threadmark.saver.caches import SegmentCache
from threadmark.saver.operations import listing
from threadmark.store.contract import CheckpointRow, Key
from threadmark_conformance.engine import checkpoint

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
STEPS = 12


@pytest.fixture
def saver(monkeypatch: pytest.MonkeyPatch) -> MemorySaver:
    """A channel that grows and is edited, over many pieces, and one that keeps a large value."""
    monkeypatch.setattr(digests, "PIECE", 256)
    saver = MemorySaver(cache_bytes=1 << 20)
    chance = random.Random(5)
    kept, config = chance.randbytes(3000), CONFIG
    messages: list[bytes] = []
    for step in range(STEPS):
        messages = [*messages, chance.randbytes(500)]
        messages[step // 2] = chance.randbytes(500)
        values = {"messages": messages, "kept": kept}
        checkpoint: Any = {
            "v": 4,
            "id": f"1f1e501f-9a39-6dfa-aadb-{step:012x}",
            "ts": "",
            "channel_values": values,
            "channel_versions": {"messages": step + 1, "kept": 1},
            "versions_seen": {},
        }
        new_versions = checkpoint["channel_versions"] if step == 0 else {"messages": step + 1}
        config = saver.put(config, checkpoint, {"step": step}, new_versions)
        saver.put_writes(config, [("messages", [chance.randbytes(400)])], "task")
    saver._context.encoding_cache.clear()
    return saver


def _thread(saver: MemorySaver) -> Thread:
    tables = saver._driver._tables  # type: ignore[attr-defined]  # the dictionaries behind the saver
    thread: Thread = tables.threads["t"]
    return thread


def _listed(saver: MemorySaver, config: Any) -> tuple[list[CheckpointTuple], CorruptDataError | None]:
    """The items of a listing, and the error that it ends with."""
    found = []
    try:
        for item in saver.list(config):
            found.append(item)  # noqa: PERF402 - the items before the error count
    except CorruptDataError as error:
        return found, error
    return found, None


def test_a_damaged_segment_never_gives_a_wrong_value_in_a_listing(saver: MemorySaver) -> None:
    whole = list(saver.list(CONFIG))
    assert len(whole) == STEPS
    segments = _thread(saver).segments
    for key, stored in list(segments.items()):
        segments[key] = stored[:-1] + bytes([stored[-1] ^ 1])
        found, error = _listed(saver, CONFIG)
        assert found == whole[: len(found)]
        assert error is not None
        assert "thread 't'" in error.location
        segments[key] = stored
    assert _listed(saver, CONFIG) == (whole, None)


def test_a_damaged_checkpoint_leaves_the_others_of_its_batch_readable(saver: MemorySaver) -> None:
    whole = list(saver.list(CONFIG))
    checkpoints = _thread(saver).checkpoints
    for key, row in list(checkpoints.items()):
        checkpoints[key] = row._replace(check=bytes(12))
        found, error = _listed(saver, None)
        assert found == [item for item in whole if item.config["configurable"]["checkpoint_id"] != key[1]]
        assert error is not None
        assert key[1] in error.location
        checkpoints[key] = row


def test_nothing_listed_is_shared(saver: MemorySaver) -> None:
    first, second, *_ = saver.list(CONFIG)
    first.checkpoint["channel_values"]["messages"].clear()
    first.checkpoint["channel_versions"].clear()
    assert len(second.checkpoint["channel_values"]["messages"]) == STEPS - 1
    assert second.checkpoint["channel_versions"]


def test_values_come_the_same_whatever_was_read_before_them(saver: MemorySaver) -> None:
    whole = list(saver.list(CONFIG))
    assert [saver.get_tuple(item.config) for item in whole] == whole
    assert list(saver.list(CONFIG)) == whole


def test_a_shelf_forgets_what_is_not_kept() -> None:
    segment_cache = SegmentCache({b"a": b"\x00x", b"b": b"\x00y"})
    assert segment_cache.lacking([b"b", b"c", b"c"]) == [b"c"]
    segment_cache.keep({b"a"})
    assert segment_cache.lacking([b"a", b"b"]) == [b"b"]
    assert segment_cache.data(Stored("m", b"literal", b"")) == b"literal"


def test_a_value_whose_segments_are_not_kept_is_not_remembered_either() -> None:
    data = random.Random(1).randbytes(500)
    value = Stored("m", pack((Slice(segment_key(data), 500, 0, 500),)), proof(data).digest)
    segment_cache = SegmentCache({segment_key(data): b"\x00" + data})
    assert segment_cache.data(value, "a") == data
    segment_cache.keep(set())
    assert segment_cache.weight == 0
    with pytest.raises(CorruptDataError, match="missing"):
        segment_cache.data(value, "a")


@pytest.mark.parametrize(("heavy", "batches"), [(1 << 20, [16, 44]), (60_000, [16, 6, 6, 6, 6, 6, 6, 6, 2])])
def test_a_listing_reads_fewer_at_a_time_where_they_are_heavy(
    monkeypatch: pytest.MonkeyPatch, heavy: int, batches: list[int]
) -> None:
    monkeypatch.setattr(listing, "_HEAVY", heavy)
    saver, config = MemorySaver(cache_bytes=0), CONFIG
    for step in range(60):
        value = random.Random(step).randbytes(4500)
        config = saver.put(config, checkpoint({"a": value}, {"a": step}), {}, {"a": step})
    read: list[int] = []
    rows = saver._context.store.rows

    def counted(thread_id: str, keys: Sequence[Key]) -> Program[list[CheckpointRow]]:
        read.append(len(keys))
        return rows(thread_id, keys)

    monkeypatch.setattr(saver._context.store, "rows", counted)
    assert len(list(saver.list(CONFIG))) == 60
    assert read == batches


def test_equal_values_in_other_segments_are_proven_each() -> None:
    data = random.Random(1).randbytes(500)
    segments = {segment_key(part): b"\x00" + part for part in (data, data[:250], data[250:])}
    manifests = [
        tuple(Slice(segment_key(part), len(part), 0, len(part)) for part in parts)
        for parts in ([data], [data[:250], data[250:]])
    ]
    one, other = (Stored("m", pack(manifest), proof(data).digest) for manifest in manifests)
    segment_cache = SegmentCache(segments)
    assert segment_cache.data(one, "a") == segment_cache.data(other, "a") == segment_cache.data(one, "a") == data
    segment_cache = SegmentCache({key: segments[key] for key in one.segment_keys()})
    assert segment_cache.data(one, "a") == data
    with pytest.raises(CorruptDataError):
        segment_cache.data(other, "a")


def test_damage_that_a_delta_channel_is_read_from_is_named_with_its_place(saver: MemorySaver) -> None:
    newest = next(iter(saver.list(CONFIG))).config
    history = saver.get_delta_channel_history(config=newest, channels=["messages"])
    segments = _thread(saver).segments
    refused = 0
    for key, stored in list(segments.items()):
        segments[key] = stored[:-1] + bytes([stored[-1] ^ 1])
        saver._context.encoding_cache.clear()
        try:
            assert saver.get_delta_channel_history(config=newest, channels=["messages"]) == history
        except CorruptDataError as error:
            assert "thread 't'" in error.location
            refused += 1
        segments[key] = stored
    assert 0 < refused < len(segments)
