"""The memory of recent encodings: bounded in bytes, and only of the epoch it was made in."""

import random
import threading

import pytest

from signals.strikes import Interruptions, Step
from threadmark.errors import CorruptDataError
from threadmark.format.digests import proof
from threadmark.format.header import Header
from threadmark.format.rope import Source, deduplicate
from threadmark.format.stored import Stored
from threadmark.saver import loading
from threadmark.saver.caches import EncodingCache, Known
from threadmark.saver.proving import checkpoint_row, prove_checkpoint
from threadmark.store.contract import CheckpointRow, Outline

_HEADER = Header({}, {}, b"", None)


def _stored(data: bytes) -> Stored:
    return Stored("m", deduplicate(data, []).packed, proof(data).digest)


def _known(epoch: int, data: bytes = b"header") -> Known:
    return Known(epoch, "rank", _HEADER, Source(data), b"digest")


def test_it_never_holds_more_than_its_capacity() -> None:
    chance = random.Random(1)
    for capacity in (0, 1000, 100_000):
        encoding_cache = EncodingCache(capacity)
        for number in range(500):
            data = chance.randbytes(chance.choice([100, 1000, 20_000]))
            encoding_cache.see_values("thread", 1, [(_stored(data), Source(data, deduplicate(data, []).packed))])
            encoding_cache.see_checkpoint(f"thread {number}", "", str(number), _known(1, data))
            encoding_cache.see_writes("thread", "", str(number), [("channel", proof(data).digest)])
            assert 0 <= encoding_cache.used <= capacity
        encoding_cache.clear()
        assert encoding_cache.used == 0


def test_the_least_recently_used_goes_first() -> None:
    encoding_cache = EncodingCache(5 * (1000 + 700))
    values = [bytes([number]) * 1000 for number in range(9)]
    for number, data in enumerate(values):
        encoding_cache.see_values("thread", 1, [(_stored(data), Source(data, deduplicate(data, []).packed))])
        assert encoding_cache.data("thread", proof(values[0]).digest) == values[0], number
    assert encoding_cache.data("thread", proof(values[1]).digest) is None
    assert encoding_cache.data("thread", proof(values[8]).digest) == values[8]


def test_bytes_are_known_in_every_epoch_but_segments_only_in_theirs() -> None:
    encoding_cache, data = EncodingCache(1 << 20), b"x" * 1000
    encoding_cache.see_values("thread", 7, [(_stored(data), Source(data, deduplicate(data, []).packed))])
    digest = proof(data).digest
    assert encoding_cache.data("thread", digest) == data
    assert encoding_cache.source("thread", digest, 7) == Source(data, deduplicate(data, []).packed)
    assert encoding_cache.source("thread", digest, 8) is None
    assert encoding_cache.source("thread", digest, None) is None
    assert encoding_cache.data("other", digest) is None


def test_a_checkpoint_is_known_until_the_epoch_changes() -> None:
    encoding_cache = EncodingCache(1 << 20)
    encoding_cache.see_checkpoint("thread", "ns", "id", _known(1))
    assert encoding_cache.checkpoint("thread", "ns", "id") == _known(1)
    assert encoding_cache.checkpoint("thread", "", "id") is None
    encoding_cache.see_epoch("thread", 2)
    assert encoding_cache.checkpoint("thread", "ns", "id") is None


def test_after_a_removal_a_value_is_known_with_the_slices_of_its_own_checkpoint_only() -> None:
    cache = EncodingCache(1 << 20)
    own, others = (bytes([number]) * 1000 for number in (1, 2))
    values = {name: _stored(data) for name, data in (("own", own), ("others", others))}
    of_another = Source(others, deduplicate(others + own, []).packed)
    cache.see_values("thread", 1, [(values["own"], values["own"].source(own)), (values["others"], of_another)])
    cache.see_checkpoint("thread", "", "id", _known(1)._replace(header=_HEADER._replace(values=values)))
    cache.outlive("thread", "", "id", 2)
    assert cache.checkpoint("thread", "", "id") is not None
    assert cache.source("thread", values["own"].digest, 2) == values["own"].source(own)
    assert cache.source("thread", values["others"].digest, 2) is None


def test_what_a_step_wrote_to_a_channel_is_found_for_the_next() -> None:
    encoding_cache = EncodingCache(1 << 20)
    values = [bytes([number]) * 300 for number in range(3)]
    for data in values:
        encoding_cache.see_values("thread", 1, [(_stored(data), Source(data, deduplicate(data, []).packed))])
    for digest in (proof(values[0]).digest, b"", b"unknown digest..", proof(values[1]).digest):
        encoding_cache.see_writes("thread", "", "id", [("channel", digest)])
    assert [source.data for source in encoding_cache.written("thread", "", "id", "channel", 1)] == [
        values[1],
        values[0],
    ]
    assert encoding_cache.written("thread", "", "id", "another", 1) == []
    assert encoding_cache.written("thread", "", "other", "channel", 1) == []
    assert encoding_cache.written("thread", "", "id", "channel", 2) == []


def test_the_value_of_a_channel_that_was_emptied_is_found_again() -> None:
    encoding_cache, data = EncodingCache(1 << 20), b"value" * 60
    encoding_cache.see_values("thread", 1, [(_stored(data), Source(data, deduplicate(data, []).packed))])
    encoding_cache.see_emptied("thread", "", [("channel", proof(data).digest), ("another", b"unknown digest..")])
    assert [source.data for source in encoding_cache.emptied("thread", "", "channel", 1)] == [data]
    assert encoding_cache.emptied("thread", "", "another", 1) == []
    assert encoding_cache.emptied("thread", "ns", "channel", 1) == []
    assert encoding_cache.emptied("thread", "", "channel", 2) == []


def test_the_last_values_of_a_thread_are_known_but_not_its_headers() -> None:
    encoding_cache = EncodingCache(1 << 20)
    values = [bytes([number]) * 300 for number in range(40)]
    for data in values:
        encoding_cache.see_values("thread", 1, [(_stored(data), Source(data, deduplicate(data, []).packed))])
    recent = [source.data for source in encoding_cache.recent("thread", 1)]
    assert recent == values[-1 : -1 - len(recent) : -1]
    assert 0 < len(recent) < 40
    assert encoding_cache.recent("thread", 2) == encoding_cache.recent("other", 1) == []


def test_many_packets_of_one_change_leave_the_other_last_values_known() -> None:
    encoding_cache = EncodingCache(1 << 20)
    value, packets = b"v" * 400, [bytes([number]) * 300 for number in range(16)]
    for change in ([value], packets):
        found = [(_stored(data), Source(data, deduplicate(data, []).packed)) for data in change]
        encoding_cache.see_values("thread", 1, found)
    assert [source.data for source in encoding_cache.recent("thread", 1)] == [packets[-1], value]
    assert all(encoding_cache.data("thread", proof(packet).digest) == packet for packet in packets)


def test_literals_are_not_remembered() -> None:
    encoding_cache = EncodingCache(1 << 20)
    encoding_cache.see_values("thread", 1, [(Stored("m", b"small", b""), Source(b"small"))])
    assert encoding_cache.used == 0


def test_many_threads_use_it_at_once() -> None:
    encoding_cache = EncodingCache(50_000)
    values = [bytes([number]) * 2000 for number in range(60)]
    wrong: list[bytes] = []

    def use(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(1500):
            data = chance.choice(values)
            encoding_cache.see_values("thread", 1, [(_stored(data), Source(data, deduplicate(data, []).packed))])
            encoding_cache.see_writes("thread", "", "id", [("channel", proof(data).digest)])
            other = chance.choice(values)
            if (found := encoding_cache.data("thread", proof(other).digest)) not in (None, other):
                wrong.append(found or b"")
            encoding_cache.written("thread", "", "id", "channel", 1)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []
    assert encoding_cache.used <= 50_000


def test_an_interrupt_at_any_instruction_leaves_what_it_holds_within_its_capacity() -> None:
    encoding_cache, location, reached = EncodingCache(3000), 0, True
    values = [bytes([number]) * 700 for number in range(9)]
    interruptions = Interruptions(KeyboardInterrupt)

    def see() -> None:
        for data in values[:1]:
            encoding_cache.see_values("thread", 1, [(_stored(data), Source(data))])

    while reached:
        location += 1
        step = Step(location)
        interruptions.during(see, step)
        reached = step.reached
        for data in values[2:5]:
            encoding_cache.see_values("thread", 1, [(_stored(data), Source(data))])
        assert encoding_cache.used == sum(cost for cost, _ in encoding_cache._entries.values()) <= 3000
    assert interruptions.raised > 50


def test_a_row_that_was_proven_is_proven_by_comparison_and_another_one_by_its_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever of the row has changed, its number's type included, is seen."""
    proven: list[CheckpointRow] = []

    def noted(row: CheckpointRow) -> None:
        proven.append(row)
        prove_checkpoint(row)

    monkeypatch.setattr(loading, "prove_checkpoint", noted)
    body = Stored("h1", _HEADER.to_bytes(), b"").body
    row = checkpoint_row(Outline("thread", "", "id", "rank", None, 1, "{}"), body, "run")
    encoding_cache = EncodingCache(10_000)
    remembered = Known(1, "rank", _HEADER, Source(_HEADER.to_bytes()), body, False, row)
    encoding_cache.see_checkpoint("thread", "", "id", remembered)
    found = loading.remembered(row._replace(run_id=None), (), encoding_cache, 1)
    assert found is not None
    assert found.header is _HEADER
    assert not proven
    assert loading.remembered(row, (), encoding_cache, 2) is None
    for changed in (
        row._replace(check=bytes(12)),
        row._replace(outline=row.outline._replace(metadata='{"a":1}')),
        row._replace(outline=row.outline._replace(rank="other")),
        row._replace(outline=row.outline._replace(parent="")),
        row._replace(outline=row.outline._replace(created_at=1.0)),  # type: ignore[arg-type]  # of a damaged file
        row._replace(header=body + b"\0"),
    ):
        assert loading.remembered(changed, (), encoding_cache) is None
        with pytest.raises(CorruptDataError, match="is not as it was written"):
            loading.CheckpointLoader(changed, (), encoding_cache)
    assert len(proven) == 6


def test_all_data_is_all_or_nothing() -> None:
    encoding_cache = EncodingCache(10_000)
    values = [(Stored("m", b"\0", bytes([number]) * 16), Source(bytes([number]))) for number in range(2)]
    encoding_cache.see_values("thread", 1, values)
    digests = [stored.digest for stored, _ in values]
    assert encoding_cache.all_data("thread", digests) == {digests[0]: b"\0", digests[1]: b"\1"}
    assert encoding_cache.all_data("thread", [*digests, b"unknown"]) is None
    assert encoding_cache.all_data("other", digests) is None
    assert encoding_cache.all_data("thread", []) == {}
