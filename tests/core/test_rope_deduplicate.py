"""The bytes that a put stores: always the value, never beyond the bounds, and for an edit little more than the edit."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rope_limits import MOST_SEGMENTS, check_limits
from threadmark.format.rope import (
    Deduplicated,
    Slice,
    Source,
    deduplicate,
    join,
    keys_in,
    layout,
    pack,
    patch,
    segment_keys,
    unpack,
)


class Thread:
    """The stored segments of one thread, each put checked against the bounds."""

    def __init__(self) -> None:
        self.segments: dict[bytes, bytes] = {}
        self.stored = 0

    def put(self, data: bytes, *sources: Source) -> Source:
        return self.keep(data, deduplicate(data, sources))

    def patch(self, data: bytes, source: Source | None) -> Source:
        return self.keep(data, patch(data, source))

    def keep(self, data: bytes, deduplicated: Deduplicated) -> Source:
        for key, segment in deduplicated.fresh.items():
            self.stored += 0 if key in self.segments else len(segment)
            self.segments[key] = segment
        self.stored += len(deduplicated.packed)
        check_limits(data, deduplicated, self.segments)
        return Source(data, deduplicated.packed)

    def cost(self, data: bytes, *sources: Source) -> int:
        before = self.stored
        self.put(data, *sources)
        return self.stored - before


units = st.sampled_from([b"\x00", b"a", b"ab", b"record: ", bytes(range(64))])
chunks = st.builds(lambda unit, times: unit * times, units, st.integers(0, 90)) | st.binary(max_size=120)
locations = st.floats(0, 1)


def edited(data: bytes, kind: int, location: float, extent: float, chunk: bytes) -> bytes:
    at = int(location * len(data))
    end = at + int(extent * extent * (len(data) - at))
    match kind:
        case 0:
            return data[:at] + chunk + data[end:]
        case 1:
            return data + chunk
        case 2:
            return data[at:] + data[:at]
        case 3:
            return data[:at] + data[end:at:-1] + data[end:]
        case 4:
            return (data + chunk + data)[:20_000]
        case _:
            return data[at:end]


steps = st.tuples(
    st.integers(0, 5), locations, locations, chunks, st.lists(st.integers(1, 30), max_size=4), st.booleans()
)


@settings(max_examples=150, deadline=None)
@given(chunks, st.lists(steps, min_size=1, max_size=40))
def test_any_history_of_edits_is_stored_within_bounds(
    first: bytes, history: list[tuple[int, float, float, bytes, list[int], bool]]
) -> None:
    thread = Thread()
    stored = [thread.put(first)]
    for kind, location, extent, chunk, back, unrelated in history:
        origin = stored[-min(len(stored), (back or [1])[0])]
        data = edited(origin.data, kind, location, extent, chunk)
        sources = [] if unrelated else [stored[-min(len(stored), step)] for step in back]
        stored.append(thread.put(data, *sources))
        assert deduplicate(data, sources) == deduplicate(data, list(sources))


@settings(max_examples=150, deadline=None)
@given(chunks, st.lists(st.tuples(st.integers(0, 5), locations, locations, chunks, st.booleans()), max_size=40))
def test_any_history_of_amendments_is_stored_within_bounds(
    first: bytes, history: list[tuple[int, float, float, bytes, bool]]
) -> None:
    thread = Thread()
    value = thread.patch(first, None)
    for kind, location, extent, chunk, deduplicated in history:
        data = edited(value.data, kind, location, extent, chunk)
        # A patched value may have been made of many segments before, by another release or while it was long.
        value = thread.put(data, value) if deduplicated else thread.patch(data, value)


def test_a_short_value_that_changes_in_the_same_places_seldom_needs_a_segment() -> None:
    chance = random.Random(8)
    constant = [chance.randbytes(120) for _ in range(6)]
    patched, deduplicated = Thread(), Thread()
    value = other = None
    for _ in range(200):
        data = chance.randbytes(20).join(constant)
        value = patched.patch(data, value)
        other = deduplicated.put(data, *[other] if other else [])
        assert len(segment_keys(value.manifest)) == 1
    assert len(patched.segments) <= 4
    assert patched.stored + 60 * len(patched.segments) < 0.7 * (deduplicated.stored + 60 * len(deduplicated.segments))


def test_most_puts_of_a_long_header_add_no_segment() -> None:
    chance = random.Random(12)
    channels = [chance.randbytes(150) for _ in range(120)]
    patched, deduplicated = Thread(), Thread()
    value = other = None
    for _ in range(150):
        for channel in chance.sample(range(120), 2):
            channels[channel] = chance.randbytes(70) + channels[channel][70:]
        data = b"".join(channels)
        value = patched.patch(data, value)
        other = deduplicated.put(data, *[other] if other else [])
    assert len(deduplicated.segments) == 150
    assert len(patched.segments) < 80
    assert patched.stored + 60 * len(patched.segments) < deduplicated.stored + 60 * len(deduplicated.segments)


@pytest.mark.parametrize(
    ("lengths", "locations", "extent"),
    [
        pytest.param([1000], 1, 60, id="wandering"),
        pytest.param([1600], 6, 80, id="restless"),
        pytest.param([2000], 3, 50, id="long"),
        pytest.param([2000, 2100], 1, 80, id="around the longest"),
        pytest.param([400, 1800], 1, 80, id="half of it comes and goes"),
        pytest.param([3000], 1, 40, id="too long to stay literals"),
    ],
)
def test_amending_never_costs_much_more_than_weaving(lengths: list[int], locations: int, extent: int) -> None:
    chance = random.Random(9)
    patched, deduplicated = Thread(), Thread()
    whole = bytearray(chance.randbytes(3000))
    value = other = None
    for step in range(300):
        for _ in range(locations):
            at = chance.randrange(1500)
            whole[at : at + extent] = chance.randbytes(extent)
        data = bytes(whole[: lengths[step % len(lengths)]])
        value = patched.patch(data, value)
        other = deduplicated.put(data, *[other] if other else [])
    assert patched.stored + 60 * len(patched.segments) < 1.25 * (deduplicated.stored + 60 * len(deduplicated.segments))


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_over_thousands_of_edits(seed: int) -> None:
    chance = random.Random(seed)
    thread = Thread()
    value = thread.put(chance.randbytes(chance.choice([300, 4000, 30_000])))
    older = [value]
    for _ in range(1500):
        chunk = chance.randbytes(int(chance.expovariate(1 / 80)))
        extent = 1 / max(1, chance.expovariate(1 / 20))
        kind = chance.choice([0, 0, 0, 0, 1, 1, 2, 5 if len(value.data) > 3000 else 1])
        data = edited(value.data, kind, chance.random(), 1.0 if kind == 5 else extent / 2, chunk)
        value = thread.put(data[:40_000] or chunk, value, *older[: chance.choice([0, 0, 1, 3])])
        older = [*older[-10:], value]


def test_equal_arguments_give_equal_results() -> None:
    chance = random.Random(5)
    thread = Thread()
    first = thread.put(chance.randbytes(5000))
    second = thread.put(first.data[:2000] + chance.randbytes(300) + first.data[2500:], first)
    data = second.data[1000:] + first.data[2000:2500] + chance.randbytes(200)
    assert deduplicate(data, [second, first]) == deduplicate(bytes(bytearray(data)), (second, first))


def test_empty_and_tiny_values_need_no_segment() -> None:
    assert deduplicate(b"", [])[:2] == (pack(()), {})
    assert deduplicate(b"tiny", [Source(b"tiny")])[:2] == (pack((b"tiny",)), {})


def test_a_value_without_sources_is_one_segment() -> None:
    data = random.Random(6).randbytes(100_000)
    packed, fresh, _ = deduplicate(data, [])
    assert list(fresh.values()) == [data]
    assert unpack(packed) == (Slice(next(iter(fresh)), len(data), 0, len(data)),)


def test_the_key_function_names_the_segments() -> None:
    data = bytes(range(200))
    packed, fresh, _ = deduplicate(data, [], key=lambda segment: bytes([len(segment)]) * 12)
    assert fresh == {b"\xc8" * 12: data}
    assert keys_in(packed) == (b"\xc8" * 12,)


BASE = random.Random(7).randbytes(50_000)
EDITS: list[tuple[str, Callable[[bytes], bytes], int]] = [
    ("the same again", lambda old: old, 0),
    ("appended", lambda old: old + b"n" * 300, 300),
    ("prepended", lambda old: b"n" * 300 + old, 300),
    ("inserted", lambda old: old[:20_000] + b"n" * 300 + old[20_000:], 300),
    ("replaced", lambda old: old[:20_000] + b"n" * 300 + old[20_300:], 300),
    ("removed", lambda old: old[:20_000] + old[21_000:], 0),
    ("trimmed", lambda old: old[3000:], 0),
    ("a count and the end", lambda old: b"\xdc\x01\x02" + old[3:] + b"n" * 300, 303),
    ("a wider count", lambda old: b"\xdd\x00\x01\x02" + old[2:] + b"n" * 300, 304),
    ("moved", lambda old: old[10_000:30_000] + old[:10_000] + old[30_000:], 0),
    ("replaced by something else", lambda old: bytes(byte ^ 85 for byte in old), 50_000),
]


@pytest.mark.parametrize(("edit", "new"), [edit[1:] for edit in EDITS], ids=[edit[0] for edit in EDITS])
def test_an_edit_costs_what_is_new_and_less_than_a_hundred_bytes(edit: Callable[[bytes], bytes], new: int) -> None:
    thread = Thread()
    assert thread.cost(edit(BASE), thread.put(BASE)) <= new + 100


def test_thirty_edits_in_one_value_cost_a_few_bytes_each() -> None:
    chance = random.Random(8)
    data = bytearray(BASE)
    for _ in range(30):
        at = chance.randrange(len(data))
        data[at : at + chance.choice([0, 10])] = chance.randbytes(10)
    thread = Thread()
    assert thread.cost(bytes(data), thread.put(BASE)) <= 30 * (10 + 10)


def scattered(data: bytes, edits: int) -> bytes:
    """The same bytes with a number of them changed, evenly spread."""
    changed = bytearray(data)
    for number in range(edits):
        changed[number * len(data) // edits] ^= 255
    return bytes(changed)


@pytest.mark.parametrize("edits", [200, 270, 300, 2000])
def test_a_value_edited_everywhere_at_once_stays_within_bounds(edits: int) -> None:
    thread = Thread()
    value = thread.put(BASE * 8)
    assert thread.cost(scattered(value.data, edits), value) <= len(value.data) + 100


def test_a_value_edited_everywhere_for_long_is_written_anew_now_and_then() -> None:
    chance = random.Random(12)
    thread = Thread()
    value = thread.put(BASE)
    before, steps = thread.stored, 1000
    for _ in range(steps):
        at = chance.randrange(len(value.data))
        value = thread.put(value.data[:at] + chance.randbytes(30) + value.data[at + 30 :], value)
    assert (thread.stored - before) / steps <= len(BASE) / 40


def test_a_value_costs_nothing_that_stood_in_a_pending_write() -> None:
    thread = Thread()
    channel = thread.put(BASE)
    new = random.Random(9).randbytes(700)
    write = thread.put(b"\x91" + new, channel)
    assert thread.cost(b"\xdc\x01\x02" + BASE + new + b"end", channel, write) <= 100


def test_a_packet_that_repeats_a_prompt_costs_its_own_fields() -> None:
    thread = Thread()
    prompt = random.Random(10).randbytes(20_000)
    packets = [thread.put(b"index 0" + prompt + b"first")]
    for number in range(1, 16):
        assert thread.cost(b"index %d" % number + prompt + b"own fields", *packets) <= 100


def test_what_is_read_beside_a_value_may_be_long_and_costs_it_nothing() -> None:
    files = {f"file {number}": random.Random(number).randbytes(5000).hex() for number in range(30)}
    whole = b"".join(path.encode() + text.encode() for path, text in files.items())
    held = deduplicate(whole, [])
    source = Source(whole, held.packed)
    file = whole[120_000:130_000].replace(whole[123_000:123_010], b"an edit")
    alone = deduplicate(file, [source])
    assert sum(map(len, alone.fresh.values())) > 9000
    beside = deduplicate(file, [source], beside=keys_in(held.packed))
    assert sum(map(len, beside.fresh.values())) < 100
    assert join(layout(beside.packed), held.fresh | beside.fresh) == file


def test_there_are_never_more_segments_than_a_manifest_may_name_whatever_is_beside() -> None:
    pieces = [random.Random(number).randbytes(300) for number in range(200)]
    sources = [Source(piece, deduplicate(piece, []).packed) for piece in pieces]
    beside = [key for source in sources for key in segment_keys(source.manifest)]
    deduplicated = deduplicate(b"".join(pieces), sources, beside=beside)
    assert len(keys_in(deduplicated.packed)) <= MOST_SEGMENTS


def appended(length: int, times: int) -> Thread:
    chance = random.Random(length)
    thread = Thread()
    value = Source(b"")
    for number in range(times):
        value = thread.put(number.to_bytes(4, "big") + value.data[4:] + chance.randbytes(length), value)
    return thread


@pytest.mark.parametrize(("length", "times"), [(600, 500), (600, 700), (2000, 500)])
def test_appends_are_stored_within_three_times_their_bytes_manifests_included(length: int, times: int) -> None:
    assert appended(length, times).stored <= 3 * length * times


@pytest.mark.parametrize(("length", "times"), [(20, 3000), (150, 4000), (400, 1500)])
def test_however_many_and_small_the_appends_a_byte_is_written_three_times_at_most(length: int, times: int) -> None:
    assert sum(map(len, appended(length, times).segments.values())) <= 3 * length * times


def test_a_list_that_loses_its_oldest_items_keeps_to_the_bounds_and_costs_its_new_ones() -> None:
    chance = random.Random(11)
    thread = Thread()
    items = [chance.randbytes(500) for _ in range(40)]
    value = thread.put(b"".join(items))
    before = thread.stored
    for _ in range(400):
        items = [*items[1:], chance.randbytes(500)]
        value = thread.put(b"".join(items), value)
    assert (thread.stored - before) / 400 <= 3 * 500
