"""The memory of recent encodings: bounded in bytes, and only of the epoch it was made in."""

import random
import threading

from signals.strikes import Interruptions, Step
from threadmark.digests import proof
from threadmark.header import HEADER_TAG, Header
from threadmark.recall import Known, Recall
from threadmark.rope import Source, pack, weave
from threadmark.stored import Stored

_HEADER = Header({}, {}, b"", None)


def _stored(data: bytes) -> Stored:
    return Stored("m", pack(weave(data, []).manifest), proof(data).digest)


def _known(epoch: int, data: bytes = b"header") -> Known:
    return Known(epoch, "rank", _HEADER, Source(data, ()), b"digest")


def test_it_never_holds_more_than_its_capacity() -> None:
    chance = random.Random(1)
    for capacity in (0, 1000, 100_000):
        recall = Recall(capacity)
        for number in range(500):
            data = chance.randbytes(chance.choice([100, 1000, 20_000]))
            recall.see_value("thread", 1, _stored(data), Source(data, weave(data, []).manifest))
            recall.see_checkpoint(f"thread {number}", "", str(number), _known(1, data))
            recall.see_write("thread", "", str(number), "channel", proof(data).digest)
            assert 0 <= recall.used <= capacity
        recall.clear()
        assert recall.used == 0


def test_the_least_recently_used_goes_first() -> None:
    recall = Recall(5 * (1000 + 700))
    values = [bytes([number]) * 1000 for number in range(9)]
    for number, data in enumerate(values):
        recall.see_value("thread", 1, _stored(data), Source(data, weave(data, []).manifest))
        assert recall.data("thread", proof(values[0]).digest) == values[0], number
    assert recall.data("thread", proof(values[1]).digest) is None
    assert recall.data("thread", proof(values[8]).digest) == values[8]


def test_bytes_are_known_in_every_epoch_but_segments_only_in_theirs() -> None:
    recall, data = Recall(1 << 20), b"x" * 1000
    recall.see_value("thread", 7, _stored(data), Source(data, weave(data, []).manifest))
    digest = proof(data).digest
    assert recall.data("thread", digest) == data
    assert recall.source("thread", digest, 7) == Source(data, weave(data, []).manifest)
    assert recall.source("thread", digest, 8) is None
    assert recall.source("thread", digest, None) is None
    assert recall.data("other", digest) is None


def test_a_checkpoint_is_known_until_the_epoch_changes() -> None:
    recall = Recall(1 << 20)
    recall.see_checkpoint("thread", "ns", "id", _known(1))
    assert recall.checkpoint("thread", "ns", "id") == _known(1)
    assert recall.checkpoint("thread", "", "id") is None
    recall.see_epoch("thread", 2)
    assert recall.checkpoint("thread", "ns", "id") is None


def test_what_a_step_wrote_to_a_channel_is_found_for_the_next() -> None:
    recall = Recall(1 << 20)
    values = [bytes([number]) * 300 for number in range(3)]
    for data in values:
        recall.see_value("thread", 1, _stored(data), Source(data, weave(data, []).manifest))
    for digest in (proof(values[0]).digest, b"", b"unknown digest..", proof(values[1]).digest):
        recall.see_write("thread", "", "id", "channel", digest)
    assert [source.data for source in recall.written("thread", "", "id", "channel", 1)] == [values[1], values[0]]
    assert recall.written("thread", "", "id", "another", 1) == []
    assert recall.written("thread", "", "other", "channel", 1) == []
    assert recall.written("thread", "", "id", "channel", 2) == []


def test_the_last_values_of_a_thread_are_known_but_not_its_headers() -> None:
    recall = Recall(1 << 20)
    values = [bytes([number]) * 300 for number in range(40)]
    for data in values:
        recall.see_value("thread", 1, _stored(data), Source(data, weave(data, []).manifest))
    header = b"header" * 100
    recall.see_value("thread", 1, _stored(header)._replace(tag=HEADER_TAG), Source(header, ()))
    recent = [source.data for source in recall.recent("thread", 1)]
    assert recent == values[-1 : -1 - len(recent) : -1]
    assert 0 < len(recent) < 40
    assert recall.recent("thread", 2) == recall.recent("other", 1) == []


def test_literals_are_not_remembered() -> None:
    recall = Recall(1 << 20)
    recall.see_value("thread", 1, Stored("m", b"small", b""), Source(b"small", (b"small",)))
    assert recall.used == 0


def test_many_threads_use_it_at_once() -> None:
    recall = Recall(50_000)
    values = [bytes([number]) * 2000 for number in range(60)]
    wrong: list[bytes] = []

    def use(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(1500):
            data = chance.choice(values)
            recall.see_value("thread", 1, _stored(data), Source(data, weave(data, []).manifest))
            recall.see_write("thread", "", "id", "channel", proof(data).digest)
            other = chance.choice(values)
            if (found := recall.data("thread", proof(other).digest)) not in (None, other):
                wrong.append(found or b"")
            recall.written("thread", "", "id", "channel", 1)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []
    assert recall.used <= 50_000


def test_an_interrupt_at_any_instruction_leaves_what_it_holds_within_its_capacity() -> None:
    recall, place, reached = Recall(3000), 0, True
    values = [bytes([number]) * 700 for number in range(9)]
    interruptions = Interruptions(KeyboardInterrupt)

    def see() -> None:
        for data in values[:1]:
            recall.see_value("thread", 1, _stored(data), Source(data, (data,)))

    while reached:
        place += 1
        step = Step(place)
        interruptions.during(see, step)
        reached = step.reached
        for data in values[2:5]:
            recall.see_value("thread", 1, _stored(data), Source(data, (data,)))
        assert recall.used == sum(entry.cost for entry in recall._entries.values()) <= 3000
    assert interruptions.raised > 50
